"""Evaluations: after training, twice in a row, during training, with failures, with unusual settings, before the environment closes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from pytest_hermes_env.play.auto_script import brief_policy, failing_in_one
from pytest_hermes_env.play.buffers import copied, picture
from pytest_hermes_env.play.faults import Fault, Faults
from pytest_hermes_env.play.held_out import items_asked
from pytest_hermes_env.play.journal import EvaluationReturned, Journal, note, recording
from pytest_hermes_env.play.scenario import SETTINGS, ItemSeen, Scenario
from pytest_hermes_env.play.scenarios.concurrent import wait_while_working
from pytest_hermes_env.play.scenarios.family import family
from pytest_hermes_env.play.stage import Stage

_FAULTS: dict[str, tuple[Fault, int | None]] = {
    "evaluate_one_reward_raises": ("reward_raises", 1),
    "evaluate_one_loop_raises": ("loop_raises", 1),
    "evaluate_reward_raises": ("reward_raises", None),
    "evaluate_loop_raises": ("loop_raises", None),
}
"""Scenario -> what fails, and how often; None means always."""


@family(
    {
        "training_before_evaluate": "a group is collected alone, as a reference for what it adds during an evaluation",
        "evaluate": "evaluate() runs after a training group has filled the buffers",
        "evaluate_few": "evaluate() runs on three of the items that it scored, as all evaluations from here on",
        "evaluate_during_training": "a group is collected from start to end while the rewards of evaluate() wait",
        "training_after_evaluate": "the same group is collected alone again: a full buffer no longer grows",
        "evaluate_twice": "evaluate() runs twice, one after the other",
        "evaluate_item_fails": "evaluate() runs while the model's server fails in one conversation, the first one that begins",
        "evaluate_one_reward_raises": "evaluate() runs while compute_reward raises once",
        "evaluate_one_loop_raises": "evaluate() runs while the agent loop of one rollout raises",
        "evaluate_reward_raises": "evaluate() runs while compute_reward raises",
        "evaluate_loop_raises": "evaluate() runs while the agent loop raises after its rollout",
        "evaluate_tools_fail": "evaluate() runs while every tool call of the agents, the set-up and the verifiers returns an error",
        "evaluate_cancelled_in_loop": "evaluate() is cancelled when the agent loop of a rollout is about to return",
        "evaluate_cancelled": "evaluate() is cancelled while a reward is being computed",
    },
    needs="setup",
    first=("training_before_evaluate", "evaluate", "evaluate_few"),
)
async def evaluations(stage: Stage) -> None:
    """Fill the buffers, then evaluate in each way."""

    async def evaluate() -> None:
        await stage.env.evaluate()
        note(EvaluationReturned())

    await stage.collect("training_before_evaluate", policy=brief_policy)
    full = await stage.play("evaluate", evaluate)
    asked = tuple(ItemSeen(value=copied(item), key=repr(picture(item))) for item in items_asked(stage.env, full))
    full = stage.scenarios["evaluate"] = replace(full, held_out=asked)
    await _on_few_items(stage, full)

    async def twice() -> None:
        await evaluate()
        await evaluate()

    with stage.held_out.few(stage.env):
        await _beside_training(stage)
        await stage.collect("training_after_evaluate", policy=brief_policy)
        await stage.play("evaluate_twice", twice, policy=brief_policy)
        await stage.play("evaluate_item_fails", evaluate, policy=failing_in_one(brief_policy))
        for name, (fault, most) in _FAULTS.items():
            await stage.play(name, evaluate, policy=brief_policy, faults=Faults(fault=fault, most=most))
        await stage.play("evaluate_tools_fail", evaluate, policy=brief_policy, fault="tools_fail")
        await stage.cancel("evaluate_cancelled_in_loop", evaluate, policy=brief_policy, fault="loop_hangs", is_needed=False)
        await stage.cancel("evaluate_cancelled", evaluate, policy=brief_policy, fault="reward_hangs", is_needed=False)


async def _on_few_items(stage: Stage, full: Scenario) -> None:
    """Try an evaluation on few items; where that differs from the full one in more than their number, all get all items."""
    held_out = stage.held_out
    held_out.learn(full)
    if not stage.plays("evaluate_few"):
        return
    if held_out.is_shortened:
        with held_out.few(stage.env):
            held_out.check(full, await stage.play("evaluate_few", stage.env.evaluate, policy=brief_policy))
    if not held_out.is_shortened:
        stage.scenarios["evaluate_few"] = replace(full, name="evaluate_few")


async def _beside_training(stage: Stage) -> None:
    """Start an evaluation, collect a whole group while its rewards wait, and let it end."""
    if (reason := stage.without_group) is not None:
        stage.skip(reason, "evaluate_during_training")
        return
    env = stage.env
    faults = Faults(fault="reward_waits")
    training = Journal(faults=Faults(), sandbox=stage.sandbox, model=stage.mock)
    notes: list[str] = []

    async def both() -> None:
        evaluation = asyncio.ensure_future(env.evaluate())
        reached = asyncio.ensure_future(faults.reached.wait())
        try:
            await asyncio.wait({evaluation, reached}, return_when=asyncio.FIRST_COMPLETED)
            reached.cancel()
            if not faults.reached.is_set():
                notes.append("the evaluation had ended without computing a reward when training began")
            with recording(training):
                group = asyncio.ensure_future(env.collect_trajectories(stage.item))
            if not await wait_while_working(stage, [group], lambda: len(training.events)):
                notes.append("training made no progress until the evaluation continued")
        finally:
            faults.released.set()
        await asyncio.gather(evaluation, group)

    def more(_: Journal) -> dict[str, Any]:
        return {"training_events": tuple(training.events), "note": "; ".join(notes)}

    await stage.play("evaluate_during_training", both, policy=brief_policy, faults=faults, more=more)


@family(
    {
        "training_with_settings": "a group is collected under a system prompt, limits and an extra_body that the scenario chooses",
        "evaluate_with_settings": "evaluate() runs under the same settings",
    },
    needs="setup",
    is_alone=True,
    settings=SETTINGS,
)
async def unusual_settings(stage: Stage) -> None:
    """Collect a group, then evaluate: which settings reach the agent?"""
    await stage.collect("training_with_settings", policy=brief_policy)
    with stage.held_out.few(stage.env):
        await stage.play("evaluate_with_settings", stage.env.evaluate, policy=brief_policy)


@family(
    {"closing": "a group is collected, evaluate() runs, and the environment is closed; then leaked resources are looked for"},
    needs="setup",
    is_alone=True,
)
async def whole_run(stage: Stage) -> None:
    """Train and evaluate. The driver closes the environment, then looks for resources that an instance of the run leaked."""
    await stage.fill_buffers()
    with stage.held_out.few(stage.env):
        await stage.play("closing", stage.env.evaluate, policy=brief_policy)
