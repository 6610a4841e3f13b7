"""Evaluations: after training, twice in a row, beside training, with an item that fails, with what raises in it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.rollout.faults import Faults
from pytest_hermes_env.rollout.journal import Journal, recording
from pytest_hermes_env.rollout.scenarios.family import Family
from pytest_hermes_env.rollout.unavailable import Cause, Unavailable

if TYPE_CHECKING:
    from pytest_hermes_env.rollout.stage import Policy, Stage

__all__ = ["FAMILY"]

PATIENCE_S = 2.0
"""How long the evaluation waits for training, in seconds: an environment may let one wait for the other."""


async def play(stage: Stage) -> None:
    """Fill the buffers, then evaluate in each way."""
    from pytest_hermes_env.rollout.auto_script import brief_policy, failing_in_one  # noqa: PLC0415 - loads the mock model

    if not await stage.prepare():
        return
    env = stage.env
    if stage.item is None:
        stage.skip(
            Unavailable(Cause.NOTHING_TO_TRAIN),
            "training_before_evaluate",
            "evaluate_beside_training",
            "training_after_evaluate",
        )
    else:
        await stage.collect("training_before_evaluate", policy=brief_policy)
    await stage.play("evaluate", env.evaluate)
    if stage.item is not None:
        await _beside_training(stage, brief_policy)
        await stage.collect("training_after_evaluate", policy=brief_policy)

    async def twice() -> None:
        await env.evaluate()
        await env.evaluate()

    await stage.play("evaluate_twice", twice, policy=brief_policy)
    await stage.play("evaluate_item_fails", env.evaluate, policy=failing_in_one(brief_policy))
    once = Faults(fault="reward_raises", most=1)
    await stage.play("evaluate_one_reward_raises", env.evaluate, policy=brief_policy, faults=once)
    once = Faults(fault="loop_raises", most=1)
    await stage.play("evaluate_one_loop_raises", env.evaluate, policy=brief_policy, faults=once)
    await stage.play("evaluate_reward_raises", env.evaluate, policy=brief_policy, fault="reward_raises")
    await stage.play("evaluate_loop_raises", env.evaluate, policy=brief_policy, fault="loop_raises")
    await stage.cancel("evaluate_cancelled", env.evaluate, policy=brief_policy, fault="reward_hangs", is_needed=False)


async def _beside_training(stage: Stage, policy: Policy) -> None:
    """Begin an evaluation, collect a whole group while its rewards wait, and let it end."""
    env = stage.env
    faults = Faults(fault="reward_waits")
    training = Journal(faults=Faults(), world=stage.world)
    notes: list[str] = []

    async def both() -> None:
        evaluation = asyncio.ensure_future(env.evaluate())
        reached = asyncio.ensure_future(faults.reached.wait())
        try:
            await asyncio.wait({evaluation, reached}, return_when=asyncio.FIRST_COMPLETED)
            reached.cancel()
            if not faults.reached.is_set():
                notes.append("the evaluation asked for no reward: it had ended when training began")
            with recording(training):
                group = asyncio.ensure_future(env.collect_trajectories(stage.item))
            _, pending = await asyncio.wait({group}, timeout=min(PATIENCE_S, stage.timeout_s / 2))
            if pending:
                notes.append("training went on only when the evaluation did")
        finally:
            faults.released.set()
        await asyncio.gather(evaluation, group)

    def more(_: Journal) -> dict[str, Any]:
        return {"beside": tuple(training.events), "note": "; ".join(notes)}

    await stage.play("evaluate_beside_training", both, policy=policy, faults=faults, more=more)


FAMILY = Family(
    name="evaluation",
    scenarios={
        "training_before_evaluate": "a group is collected alone; what it adds to the buffers is what it adds beside an evaluation",
        "evaluate": "evaluate() runs after a training group has filled the buffers",
        "evaluate_beside_training": "a group is collected from start to end while the rewards of evaluate() wait",
        "training_after_evaluate": "the same group is collected alone again: a buffer that is full adds nothing any more",
        "evaluate_twice": "evaluate() runs twice, one after the other",
        "evaluate_item_fails": "evaluate() runs while the model's server fails in one conversation, the first one that begins",
        "evaluate_one_reward_raises": "evaluate() runs while compute_reward raises once",
        "evaluate_one_loop_raises": "evaluate() runs while the agent loop of one rollout raises",
        "evaluate_reward_raises": "evaluate() runs while compute_reward raises",
        "evaluate_loop_raises": "evaluate() runs while the agent loop raises after its rollout",
        "evaluate_cancelled": "evaluate() is cancelled while a reward is being computed",
    },
    play=play,
)
