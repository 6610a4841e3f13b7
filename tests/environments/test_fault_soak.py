"""The short form of `python -m benchmarks fault_soak`: many rollouts at once, of which a share meets a fault."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "fault_soak.py"


@pytest.fixture
def soak() -> Any:
    spec = importlib.util.spec_from_file_location("fault_soak", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.hermes_allow_leftovers
@pytest.mark.parametrize("mode", ["openai", "vllm"])
def test_every_sum_adds_up(make_env, fake_sandbox, fault_plan, soak, mode):
    """Each rollout is scored as it earned, or not at all; what is lost is counted; no sandbox and no task is left."""
    soak.planned(fault_plan, 0.4)
    settings = {"enabled_toolsets": ["terminal"], "group_size": soak.GROUP_SIZE, "server_type": mode}
    env = make_env(soak.environment(), script=soak.script, **settings)

    wrong = asyncio.run(soak.soak(env, fault_plan, rollouts=80, at_once=40))

    assert wrong == []
    assert {strike.fault.place for strike in fault_plan.strikes} == {"model", "sandbox"}


@pytest.mark.hermes_allow_leftovers
def test_sum_that_does_not_add_up_is_reported(make_env, fake_sandbox, fault_plan, soak):
    """A count that is lost, and a score that was not earned."""

    class Wrong(soak.environment()):
        async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
            self._counts["train/rollouts_model_failed"] += 1
            return 7.0

    env = make_env(Wrong, script=soak.script, enabled_toolsets=["terminal"], group_size=soak.GROUP_SIZE)

    wrong = asyncio.run(soak.soak(env, fault_plan, rollouts=8, at_once=8))

    assert wrong == [
        "16 ends of 8 rollouts and 0 retries",
        "0 faults of the model, 8 rollouts that it failed",
        "2 groups have scores that they did not earn",
    ]
