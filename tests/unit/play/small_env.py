"""A small environment, right in all ways, that misbehaves where a test lets it."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from atroposlib.envs.server_handling.server_manager import APIServerConfig

from environments.agent_loop import AgentResult, HermesAgentLoop
from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig
from environments.tool_context import ToolContext


class SmallEnv(HermesAgentBaseEnv):
    """Two items; the reward runs a command."""

    name = "small"

    @classmethod
    def config_init(cls) -> tuple[HermesAgentEnvConfig, list[APIServerConfig]]:
        """Offer a terminal only."""
        config = HermesAgentEnvConfig(enabled_toolsets=["terminal"], max_agent_turns=4, system_prompt="Be brief.")
        server = APIServerConfig(base_url="http://127.0.0.1:9/v1", model_name="m", api_key="x", health_check=False)
        return config, [server]

    async def setup(self) -> None:
        """Begin with the first item."""
        self.taken = 0
        self.rewards: list[float] = []

    async def get_next_item(self) -> Any:
        """Return one of two items."""
        self.taken += 1
        return {"word": ("red", "blue")[self.taken % 2]}

    def format_prompt(self, item: Any) -> str:
        """Ask for the word."""
        return f"Print {item['word']}"

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float:
        """Look into the sandbox."""
        del item, result
        return 1.0 if ctx.terminal("echo ok")["output"].strip() == "ok" else 0.0

    async def collect_trajectory(self, item: Any) -> Any:
        """Keep the reward."""
        scored, backlog = await super().collect_trajectory(item)
        self.rewards.append(scored["scores"])
        return scored, backlog

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Run one held-out item."""
        del args, kwargs
        ctx = ToolContext(f"evaluation-{id(asyncio.current_task())}")
        try:
            schemas, names = self._resolve_tools_for_group()
            loop = HermesAgentLoop(
                server=self.server, tool_schemas=schemas, valid_tool_names=names, task_id=ctx.task_id, temperature=0.0
            )
            item = {"word": "green"}
            result = await loop.run([{"role": "user", "content": self.format_prompt(item)}])
            reward = await self.compute_reward(item, result, ctx)
        finally:
            ctx.cleanup()
        await self.evaluate_log(metrics={"eval/reward": reward}, samples=[{"score": reward}])


def line_of(function: Any, text: str) -> int:
    """Return the number of the line of a function that holds ``text``."""
    lines, first = inspect.getsourcelines(function)
    (found,) = [number for number, line in enumerate(lines, first) if text in line]
    return found
