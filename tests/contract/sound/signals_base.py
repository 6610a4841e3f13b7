"""An abstract base of environments that score several signals; it knows nothing of its items. Metrics live in a dataclass."""

from __future__ import annotations

import time
import traceback
import uuid
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from environments.agent_loop import AgentResult, HermesAgentLoop
from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig
from environments.tool_context import ToolContext
from pydantic import Field


@dataclass
class Tally:
    """What was seen since the last report."""

    rewards: list[float] = field(default_factory=list)
    turns: int = 0


class SignalsConfig(HermesAgentEnvConfig):
    """Settings of environments with several signals."""

    correct_weight: float = Field(default=0.6, description="Weight of a right result.")
    tool_weight: float = Field(default=0.2, description="Weight of having used a tool.")
    brief_weight: float = Field(default=0.2, description="Weight of few tool calls.")
    many_calls: int = Field(default=10, ge=1, description="Tool calls from which on nothing is given for few.")
    eval_items: int = Field(default=2, ge=1, description="Items kept for evaluation.")


class SignalsEnv(HermesAgentBaseEnv, ABC):
    """Weighs whether the result is right, whether tools were used, and how many calls that took."""

    env_config_cls = SignalsConfig

    @abstractmethod
    def all_items(self) -> list[dict[str, str]]:
        """Return every item."""

    @abstractmethod
    def is_right(self, item: dict[str, str], result: AgentResult, ctx: ToolContext) -> bool:
        """Tell whether the work is done."""

    async def setup(self) -> None:
        """Keep the last items for evaluation."""
        items = self.all_items()
        kept = min(self.config.eval_items, len(items) - 1)
        self.items, self.exam = items[:-kept], items[-kept:]
        self.tally = Tally()
        self.turn = 0

    async def get_next_item(self) -> dict[str, str]:
        """Return the next item, for ever."""
        if self.turn >= len(self.items):
            self.turn = 0
        self.turn += 1
        return self.items[self.turn - 1]

    async def compute_reward(self, item: dict[str, str], result: AgentResult, ctx: ToolContext) -> float:
        """Weigh the three signals; tools and brevity count only for work that was done."""
        right = self.is_right(item, result, ctx)
        calls = len(names_of_calls(result))
        signals = (
            (self.config.correct_weight, float(right)),
            (self.config.tool_weight, float(right and calls > 0)),
            (self.config.brief_weight, float(right) * max(0.0, 1 - calls / self.config.many_calls)),
        )
        return min(1.0, max(0.0, sum(weight * signal for weight, signal in signals)))

    async def collect_trajectories(self, item: dict[str, str]) -> tuple[Any, list[Any]]:
        """Collect a group and count it."""
        group, backlog = await super().collect_trajectories(item)
        self.note(group)
        return group, backlog

    def note(self, group: Any) -> None:
        """Count the scores of a group."""
        if group:
            self.tally.rewards += group["scores"]
            self.tally.turns += sum(message["role"] == "assistant" for row in group["messages"] for message in row)

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Evaluate all kept items."""
        start = time.time()
        samples = [await self.attempt(item) for item in self.exam]
        mean = sum(sample["score"] for sample in samples) / len(samples)
        await self.evaluate_log({"eval/mean": mean}, samples=samples, start_time=start, end_time=time.time())

    async def attempt(self, item: dict[str, str]) -> dict[str, Any]:
        """Return the sample of one item, with the error where there was one."""
        task_id = f"eval-{uuid.uuid4()}"
        prompt = self.format_prompt(item)
        ctx = ToolContext(task_id)
        try:
            loop = self.loop(task_id)
            result = await loop.run(self.system_messages() + [{"role": "user", "content": prompt}])
            return {"prompt": prompt, "score": await self.compute_reward(item, result, ctx)}
        except Exception:
            return {"prompt": prompt, "score": 0.0, "error": traceback.format_exc(limit=3)}
        finally:
            ctx.cleanup()

    def loop(self, task_id: str) -> HermesAgentLoop:
        """Return a greedy agent with all tools."""
        schemas, names = self._resolve_tools_for_group()
        settings: dict[str, Any] = {
            "max_turns": self.config.max_agent_turns,
            "max_tokens": self.config.max_token_length,
            "extra_body": self.config.extra_body,
            "budget_config": self.config.build_budget_config(),
        }
        return HermesAgentLoop(
            server=self.server, tool_schemas=schemas, valid_tool_names=names, task_id=task_id, temperature=0.0, **settings
        )

    def system_messages(self) -> list[dict[str, Any]]:
        """Return the system message, if there is one."""
        return [{"role": "system", "content": self.config.system_prompt}] if self.config.system_prompt else []

    async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:
        """Report what was counted."""
        tally, self.tally = self.tally, Tally()
        metrics = {**(wandb_metrics or {}), "train/turns": tally.turns}
        if tally.rewards:
            metrics["train/reward"] = sum(tally.rewards) / len(tally.rewards)
        return await super().wandb_log(metrics)


def names_of_calls(result: AgentResult) -> list[str]:
    """Return the names of the tools that the agent called."""
    names = []
    for message in result.messages:
        for call in message.get("tool_calls") or ():
            if isinstance(call, dict):
                names.append((call.get("function") or {}).get("name", ""))
    return names
