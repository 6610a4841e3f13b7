"""The reward on many results that a rollout could return, without a rollout, in this process and in another one."""

from __future__ import annotations

import inspect

from pytest_hermes_env.layer import layer_of
from pytest_hermes_env.play.probing.other_process import Request, probes_elsewhere
from pytest_hermes_env.play.probing.record import RewardProbes
from pytest_hermes_env.play.scenario import ELSEWHERE, PROBES, Scenario
from pytest_hermes_env.play.scenarios.family import family
from pytest_hermes_env.play.stage import Stage


@family(
    {PROBES: "compute_reward is called on results of every form that a rollout can return; no rollout runs"},
    needs="item",
    is_alone=True,
)
async def probed_reward(stage: Stage) -> None:
    """Call compute_reward on generated results of the first item."""
    from pytest_hermes_env.play.probing.prober import probe_reward  # noqa: PLC0415 - loads hypothesis

    found: list[RewardProbes] = []

    async def probe() -> None:
        found.append(await probe_reward(stage.env, stage.item, lambda: len(stage.mock.journal), real_tools=stage.real_tools))

    await stage.play(PROBES, probe, more=lambda _: {"probes": found[0] if found else None})


@family(
    {ELSEWHERE: "the probes run in another process, with another hash seed and other random numbers, on another day"},
    needs="item",
    is_alone=True,
)
async def probed_elsewhere(stage: Stage) -> None:
    """Start the other process: only where something in the reward may depend on one."""
    cls = type(stage.env)
    request = Request(
        target=f"{inspect.getsourcefile(cls)}:{cls.__qualname__}",
        layer=layer_of(cls).base.__module__,
        server_type=stage.server_type,
        real_tools=stage.real_tools,
    )
    stage.scenarios[ELSEWHERE] = Scenario(name=ELSEWHERE, probes=await probes_elsewhere(request))
