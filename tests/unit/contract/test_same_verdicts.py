"""The same environment in other clothes: groups that the class makes itself, as old checkouts do, and rewards that need no instance."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any, ClassVar

import pytest

from environments.agent_loop import HermesAgentLoop
from environments.tool_context import ToolContext
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.contract.rules import find_rule
from pytest_hermes_env.contract.run.single_rule import contract_of

from ..play.small_env import SmallEnv  # noqa: TID252 - the small environment is kept in another room
from .test_around_gold import GOLD, SumEnv


class OwnGroupsEnv(SmallEnv):
    """Collects nodes, and puts their columns side by side."""

    async def collect_trajectories(self, item: Any) -> Any:
        """Run as many rollouts as a group has."""
        nodes, scores = zip(*await asyncio.gather(*(self.one(item) for _ in range(self.config.group_size))), strict=True)
        columns = {"tokens": "tokens", "masks": "masked_tokens", "inference_logprobs": "logprobs"}
        return {"scores": list(scores), **{name: [getattr(node, of) for node in nodes] for name, of in columns.items()}}, []

    async def one(self, item: Any) -> Any:
        """Return the node of one rollout, and its reward."""
        ctx = ToolContext(str(uuid.uuid4()))
        schemas, names = self._resolve_tools_for_group()
        try:
            async with self.server.managed_server(tokenizer=self.tokenizer) as managed:
                loop = HermesAgentLoop(server=managed, tool_schemas=schemas, valid_tool_names=names, task_id=ctx.task_id)
                result = await loop.run([{"role": "user", "content": self.format_prompt(item)}])
                (node,) = managed.get_state()["nodes"]
            return node, await self.compute_reward(item, result, ctx)
        finally:
            ctx.cleanup()


def test_logprobs_of_groups_without_items_are_those_of_the_server() -> None:
    """HE503 compares them, so that HE504 has no item to ask for."""
    rules = [find_rule(name) for name in ("HE503", "HE504")]
    contract = contract_of(OwnGroupsEnv, rules, server_type="vllm")
    found = [contract.result(rule) for rule in rules]

    assert [one.outcome for one in found] == [Outcome.PASSED, Outcome.NOT_APPLICABLE]
    assert "HE503 compares" in found[1].note


def read(ctx: ToolContext) -> Any:
    """Return what the agent wrote."""
    try:
        return json.loads(ctx.read_file("sum.json").get("content") or "null")
    except ValueError:
        return None


class StaticEnv(SumEnv):
    """Its reward is a static method."""

    @staticmethod
    async def compute_reward(item: Any, result: Any, ctx: ToolContext) -> float:  # type: ignore[override]
        """Compare both."""
        return float(read(ctx) == item["answer"])


class OfTheClassEnv(SumEnv):
    """Its reward is one of the class."""

    full: ClassVar[float] = 1.0

    @classmethod
    async def compute_reward(cls, item: Any, result: Any, ctx: ToolContext) -> float:  # type: ignore[override]
        """Compare both."""
        return cls.full if read(ctx) == item["answer"] else 0.0


@pytest.mark.parametrize("env_class", [StaticEnv, OfTheClassEnv])
def test_a_reward_that_needs_no_instance_is_judged_as_any_other(env_class: type) -> None:
    """Each rule that asks the reward says of it what it says of the plain one."""
    rules = [find_rule(f"HE{number}") for number in (301, 302, 401, 402, 403, 404, 405, 408, 410, 411, 412, 511, 601, 702, 708)]
    found = {}
    for one in (SumEnv, env_class):
        contract = contract_of(one, rules, cases=GOLD)
        found[one] = [(rule.id, contract.result(rule).outcome) for rule in rules]

    assert found[env_class] == found[SumEnv]
    assert not {outcome for _, outcome in found[SumEnv]} & {Outcome.FAILED, Outcome.NOT_EXERCISED}
