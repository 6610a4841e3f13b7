"""The reward on many results that a rollout could return, without a rollout."""

from __future__ import annotations

from pytest_hermes_env.play.probing.record import RewardProbes
from pytest_hermes_env.play.scenario import PROBES
from pytest_hermes_env.play.scenarios.family import family
from pytest_hermes_env.play.stage import Stage


@family(
    {PROBES: "compute_reward is called on results of every form that a rollout can return; no rollout runs"},
    needs="item",
    is_alone=True,
)
async def probed_reward(stage: Stage) -> None:
    """Call compute_reward on generated results of the first item."""
    await probe(stage, PROBES)


async def probe(stage: Stage, name: str) -> RewardProbes | None:
    """Play the probes under a name, and return what they found."""
    from pytest_hermes_env.play.probing.prober import probe_reward  # noqa: PLC0415 - loads hypothesis

    found: list[RewardProbes] = []

    async def call() -> None:
        found.append(
            await probe_reward(
                stage.env, stage.item, lambda: len(stage.mock.journal), real_tools=stage.real_tools, begun=stage.step
            )
        )

    await stage.play(name, call, more=lambda _: {"probes": found[0] if found else None})
    return found[0] if found else None
