"""Parts of a rollout without a model, a sandbox or an environment layer: for tests of one module."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import ModuleType, SimpleNamespace
from typing import Any

from pytest_hermes_env.layer import Layer
from pytest_hermes_env.play.stage import Stage


class HermesAgentBaseEnv:
    """The base of a layer."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    async def setup(self) -> None:
        """Do nothing."""

    async def get_next_item(self) -> Any:
        """Return the only item."""
        return {"word": "red"}

    def format_prompt(self, item: Any) -> str:
        """Ask for the word."""
        return f"Print {item['word']}"

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        """Return the full reward."""
        del item, result, ctx
        return 1.0

    async def evaluate_log(self, metrics: dict[str, float], **rest: Any) -> None:
        """Do nothing."""

    async def collect_trajectory(self, item: Any) -> Any:
        """Return a scored item."""
        del item
        return {"tokens": [1, 2], "masks": [-100, 2], "scores": 1.0}, []


class AgentResult:
    """A result with two fields."""

    def __init__(self, **fields: Any) -> None:
        self.messages: list[Any] = []
        self.__dict__.update(fields)


class ToolContext:
    """Remembers that it was cleaned."""

    def __init__(self, task_id: str) -> None:
        self.task_id = task_id
        self.is_clean = False

    def cleanup(self) -> None:
        """Release everything."""
        self.is_clean = True


class HermesAgentLoop:
    """Asks its server once."""

    def __init__(self, server: Any = None, task_id: str = "task", **fields: Any) -> None:
        self.server, self.task_id = server, task_id
        self.__dict__.update(fields)

    async def run(self, messages: Any) -> Any:
        """Ask, and return a result."""
        if self.server is not None:
            await self.server.chat_completion(messages=messages)
        return AgentResult(messages=messages, turns_used=1)


def bare_layer() -> Layer:
    """Return a layer of the classes above, whose own files are none of this test's."""
    agent_loop, tool_context = ModuleType("bare.agent_loop"), ModuleType("bare.tool_context")
    agent_loop.__dict__.update(HermesAgentLoop=HermesAgentLoop, AgentResult=AgentResult, __file__="/layer/agent_loop.py")
    tool_context.__dict__.update(ToolContext=ToolContext, __file__="/layer/tool_context.py")
    return Layer(base=HermesAgentBaseEnv, agent_loop=agent_loop, tool_context=tool_context)


def bare_stage(env: Any = None, *, names: tuple[str, ...] = ("scenario",), timeout_s: float = 10.0, **fields: Any) -> Stage:
    """Return a stage of an environment that never asks its model."""
    env = HermesAgentBaseEnv() if env is None else env
    return Stage(
        env=env,
        mock=SimpleNamespace(journal=[]),
        sandbox=None,
        server_type="openai",
        timeout_s=timeout_s,
        thorough=lambda _: "said",
        names=names,
        **fields,
    )


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    """Run a coroutine function to its end."""

    async def main() -> Any:
        return await work()

    return asyncio.run(main())
