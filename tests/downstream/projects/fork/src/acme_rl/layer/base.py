"""The base of Acme's environments: chat mode only."""

import asyncio
import time
import uuid
from abc import abstractmethod
from contextlib import asynccontextmanager

from atroposlib.envs.base import BaseEnv, BaseEnvConfig
from model_tools import get_tool_definitions
from pydantic import Field

from .agent_loop import HermesAgentLoop
from .tool_context import ToolContext


class AcmeConfig(BaseEnvConfig):
    enabled_toolsets: list[str] | None = Field(default=None, description="Toolsets of the agent.")
    disabled_toolsets: list[str] | None = Field(default=None, description="Toolsets that it does not get.")
    max_agent_turns: int = Field(default=8, description="Model calls per rollout.")


class AcmeEnv(BaseEnv):
    name = "acme"
    env_config_cls = AcmeConfig

    @abstractmethod
    async def setup(self): ...

    @abstractmethod
    async def get_next_item(self): ...

    @abstractmethod
    def format_prompt(self, item): ...

    @abstractmethod
    async def compute_reward(self, item, result, ctx): ...

    @abstractmethod
    async def evaluate(self, *args, **kwargs): ...

    def _resolve_tools_for_group(self):
        schemas = get_tool_definitions(
            enabled_toolsets=self.config.enabled_toolsets, disabled_toolsets=self.config.disabled_toolsets, quiet_mode=True
        )
        return schemas, {schema["function"]["name"] for schema in schemas}

    @asynccontextmanager
    async def played(self, item, temperature):
        schemas, names = self._resolve_tools_for_group()
        ctx = ToolContext(str(uuid.uuid4()))
        try:
            loop = HermesAgentLoop(self.server, schemas, names, self.config.max_agent_turns, ctx.task_id, temperature)
            yield await loop.run([{"role": "user", "content": self.format_prompt(item)}]), ctx
        finally:
            await asyncio.to_thread(ctx.cleanup)

    async def collect_trajectory(self, item):
        async with self.played(item, temperature=1.0) as (result, ctx):
            reward = await self.compute_reward(item, result, ctx)
        text = "\n".join(message["content"] for message in result.messages)
        tokens = self.tokenizer.encode(text)
        scored = {"tokens": tokens, "masks": [-100, *tokens[1:]], "scores": reward, "messages": result.messages}
        return scored, []

    async def sample_of(self, item):
        try:
            async with self.played(item, temperature=0.0) as (result, ctx):
                return {"score": await self.compute_reward(item, result, ctx), "messages": result.messages}
        except Exception as error:
            return {"score": 0.0, "error": repr(error)}

    async def evaluate_all(self, items):
        began = time.time()
        samples = [await self.sample_of(item) for item in items]
        metrics = {
            "eval/mean": sum(sample["score"] for sample in samples) / len(samples),
            "eval/errors": sum("error" in sample for sample in samples),
        }
        await self.evaluate_log(metrics=metrics, samples=samples, start_time=began, end_time=time.time())
