"""The reward alone, on many results that a rollout could leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_hermes_env.rollout.scenario_names import PROBES
from pytest_hermes_env.rollout.scenarios.family import Family

if TYPE_CHECKING:
    from pytest_hermes_env.rollout.probing.record import RewardProbes
    from pytest_hermes_env.rollout.stage import Stage

__all__ = ["FAMILY"]


async def play(stage: Stage) -> None:
    """Call compute_reward on generated results of the first item."""
    from pytest_hermes_env.rollout.probing.prober import probe_reward  # noqa: PLC0415 - only where rewards are probed

    if not await stage.prepare_item():
        return
    found: list[RewardProbes] = []

    async def probe() -> None:
        found.append(await probe_reward(stage.env, stage.item, lambda: len(stage.mock.journal)))

    await stage.play(PROBES, probe, more=lambda _: {"probes": found[0] if found else None})


FAMILY = Family(
    name="probing",
    scenarios={PROBES: "compute_reward is called on results of every form that a rollout can leave; no rollout is run"},
    play=play,
    is_alone=True,
)
