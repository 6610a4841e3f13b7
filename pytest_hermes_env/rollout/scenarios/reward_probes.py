"""The reward on many results that a rollout could return, without a rollout."""

from __future__ import annotations

from pytest_hermes_env.rollout.probing.prober import probe_reward
from pytest_hermes_env.rollout.probing.record import RewardProbes
from pytest_hermes_env.rollout.scenario_names import PROBES
from pytest_hermes_env.rollout.scenarios.family import family
from pytest_hermes_env.rollout.stage import Stage

__all__ = ["probed_reward"]


@family(
    {PROBES: "compute_reward is called on results of every form that a rollout can return; no rollout runs"},
    needs="item",
    is_alone=True,
)
async def probed_reward(stage: Stage) -> None:
    """Call compute_reward on generated results of the first item."""
    found: list[RewardProbes] = []

    async def probe() -> None:
        found.append(await probe_reward(stage.env, stage.item, lambda: len(stage.mock.journal), real_tools=stage.real_tools))

    await stage.play(PROBES, probe, more=lambda _: {"probes": found[0] if found else None})
