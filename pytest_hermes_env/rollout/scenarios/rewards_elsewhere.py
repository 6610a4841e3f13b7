"""The probes of the reward once more, in another process: only where something in the reward may depend on one."""

from __future__ import annotations

import inspect

from pytest_hermes_env.layer import layer_of
from pytest_hermes_env.rollout.probing.other_process import Request, rewards_elsewhere
from pytest_hermes_env.rollout.scenario import Scenario
from pytest_hermes_env.rollout.scenario_names import ELSEWHERE
from pytest_hermes_env.rollout.scenarios.family import family
from pytest_hermes_env.rollout.stage import Stage

__all__ = ["probed_elsewhere"]


@family(
    {ELSEWHERE: "the probes run in another process, with another hash seed and other random numbers, on another day"},
    needs="item",
    is_alone=True,
)
async def probed_elsewhere(stage: Stage) -> None:
    """Start the other process."""
    cls = type(stage.env)
    request = Request(
        target=f"{inspect.getsourcefile(cls)}:{cls.__qualname__}",
        layer=layer_of(cls).base.__module__,
        server_type=stage.server_type,
        real_tools=stage.real_tools,
    )
    stage.scenarios[ELSEWHERE] = Scenario(name=ELSEWHERE, elsewhere=await rewards_elsewhere(request))
