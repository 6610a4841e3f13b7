"""The fork's base environment."""

import os
import uuid
from abc import abstractmethod

from atroposlib.envs.base import BaseEnv, BaseEnvConfig
from model_tools import get_tool_definitions
from pydantic import Field

from oldhermes.agent_loop import HermesAgentLoop
from oldhermes.tool_context import ToolContext


class HermesAgentEnvConfig(BaseEnvConfig):
    """The fork's settings."""

    enabled_toolsets: list[str] | None = Field(default=None)
    max_agent_turns: int = Field(default=30)
    terminal_backend: str = Field(default="local")


class HermesAgentBaseEnv(BaseEnv):
    """The fork's base class."""

    env_config_cls = HermesAgentEnvConfig

    def __init__(self, config, server_configs, slurm=False, testing=False):
        super().__init__(config, server_configs, slurm, testing)
        os.environ["TERMINAL_ENV"] = config.terminal_backend

    @abstractmethod
    def format_prompt(self, item): ...

    @abstractmethod
    async def compute_reward(self, item, result, ctx): ...

    def _resolve_tools_for_group(self):
        tools = get_tool_definitions(enabled_toolsets=self.config.enabled_toolsets, quiet_mode=True)
        return tools, {tool["function"]["name"] for tool in tools}

    async def collect_trajectory(self, item):
        tools, names = self._resolve_tools_for_group()
        task_id = str(uuid.uuid4())
        loop = HermesAgentLoop(self.server, tools, names, max_turns=self.config.max_agent_turns, task_id=task_id)
        result = await loop.run([{"role": "user", "content": self.format_prompt(item)}])
        ctx = ToolContext(task_id)
        try:
            reward = await self.compute_reward(item, result, ctx)
        except Exception:  # noqa: BLE001 - the old layer did
            reward = 0.0
        finally:
            ctx.cleanup()
        tokens = self.tokenizer.encode("\n".join(message.get("content") or "" for message in result.messages))
        spoken = any(message["role"] == "assistant" for message in result.messages)
        masks = [-100, *tokens[1:]] if spoken else [-100] * len(tokens)
        return {"tokens": tokens, "masks": masks, "scores": reward, "messages": result.messages}, []
