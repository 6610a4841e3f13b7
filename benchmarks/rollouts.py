"""What a rollout costs: in memory, over HTTP, in token mode, on hermes' own terminal, and with a reward that waits."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator
from typing import Any

from benchmarks.registry import Figure, Pair, Spent, benchmark, least, stopwatch
from pytest_hermes_env import FakeSandbox, MockServer, ToolSeam, call, say
from pytest_hermes_env.inference.transport import IN_PROCESS_URL
from pytest_hermes_env.layer import find_class
from pytest_hermes_env.play.builder import EnvironmentBuilder

TARGET = "environments.terminal_test_env.terminal_test_env:TerminalTestEnv"
GROUP = 8


async def per_rollout(n: int, count: int, *, real_tools: bool = False, **settings: Any) -> Spent:
    """Return what a rollout of two turns with one tool call spends, in groups of eight, after one group to warm up."""
    (env_class,) = find_class(TARGET)
    script, runs = [call("terminal", command="echo hello"), say("done")], []
    seam = None if real_tools else ToolSeam(FakeSandbox(allow_leftovers=True))
    os.environ["TERMINAL_ENV"] = "local"  # a seam sets another
    with seam or contextlib.nullcontext():
        builder = EnvironmentBuilder(allow_leftovers=True, seam=lambda: seam)
        env = builder.build(env_class, script=script, group_size=GROUP, **settings)
        await env.setup()
        group, _ = await env.collect_trajectories(await env.get_next_item())
        if not all('"output": "hello"' in str(messages) for messages in group["messages"]):
            raise RuntimeError(f"a rollout did not run its command: {group['messages']}")
        for _ in range(n):
            with stopwatch() as spent:
                for _ in range(count // GROUP):
                    await env.collect_trajectories(await env.get_next_item())
            runs.append(Spent(spent.wall / count, spent.cpu / count))
        builder.close()
    return least(runs)


async def per_bare_request(n: int, count: int) -> Spent:
    """Return what a request of the bare openai client spends on the same transport, with the same tools."""
    import httpx
    import model_tools
    import openai

    with ToolSeam(FakeSandbox()):  # it has all tools, whatever this machine has
        tools = model_tools.get_tool_definitions(enabled_toolsets=["terminal", "file"], quiet_mode=True)
    mock, runs = MockServer(lambda _: say("done"), allow_leftovers=True), []
    question: Any = [{"role": "user", "content": "hello"}]
    http = httpx.AsyncClient(transport=mock.transport)
    async with openai.AsyncOpenAI(base_url=IN_PROCESS_URL, api_key="x", http_client=http, max_retries=0) as client:
        for _ in range(n):
            with stopwatch() as spent:
                for _ in range(count // GROUP):
                    asks = (client.chat.completions.create(model="m", messages=question, tools=tools) for _ in range(GROUP))
                    await asyncio.gather(*asks)
            runs.append(Spent(spent.wall / count, spent.cpu / count))
    return least(runs)


@benchmark(
    Figure(
        "a rollout in memory",
        "ms CPU",
        "Two turns and a tool call through the real loop and the real openai client; a request alone is the least there is.",
        "two bare openai requests",
    ),
    Figure(
        "a rollout in memory",
        "ms",
        "What the in-memory sandbox saves: the same rollout, with hermes' own terminal behind its tool call.",
        "hermes' own terminal",
    ),
    Figure(
        "a rollout over HTTP",
        "ms",
        "A mock server on loopback, which other processes can reach, compared with one in the process.",
        "a rollout in memory",
    ),
)
def rollout(n: int) -> Iterator[Pair]:
    """Measure chat mode."""
    real = asyncio.run(per_rollout(1, 32, in_process=True, real_tools=True))
    memory = asyncio.run(per_rollout(n, 200, in_process=True))
    yield memory.cpu * 1000, 2000 * asyncio.run(per_bare_request(n, 200)).cpu
    yield memory.wall * 1000, real.wall * 1000
    yield 1000 * asyncio.run(per_rollout(n, 200)).wall, memory.wall * 1000


@benchmark(
    Figure(
        "a rollout in token mode on vLLM",
        "ms",
        "What exact tokens and logprobs cost compared with chat completions.",
        "in chat mode",
    ),
    Figure("a rollout in token mode on SGLang", "ms", "The same, for the other engine.", "in chat mode"),
)
def token_mode(n: int) -> Iterator[Pair]:
    """Measure rollouts over loopback HTTP."""
    chat = asyncio.run(per_rollout(n, 200)).wall
    for server_type in ("vllm", "sglang"):
        yield 1000 * asyncio.run(per_rollout(n, 200, server_type=server_type)).wall, chat * 1000


@benchmark(
    Figure(
        "64 rollouts whose reward waits 0.5 s",
        "s",
        "Rewards of a group wait at the same time: one after the other they would take 32 s.",
        "their reward does not wait, and 0.5 s",
    )
)
def waiting_rewards(n: int) -> Iterator[Pair]:
    """Measure concurrent rewards in the shell."""
    (env_class,) = find_class(TARGET)

    class Verifying(env_class):  # type: ignore[misc, valid-type]
        command = ""

        async def compute_reward(self, _item: Any, _result: Any, ctx: Any) -> float:
            ctx.terminal(self.command)
            return 1.0

    async def seconds() -> list[float]:
        builder = EnvironmentBuilder(allow_leftovers=True)
        env = builder.build(Verifying, script=[say("done")], group_size=64)
        await env.setup()
        took = {}
        for command in ("true", *("true", "sleep 0.5") * n):
            Verifying.command = command
            with stopwatch() as spent:
                await env.collect_trajectories(await env.get_next_item())
            took[command] = min(spent.wall, took.get(command, spent.wall))
        builder.close()
        return list(took.values())

    quick, slow = asyncio.run(seconds())
    yield slow, quick + 0.5


@benchmark(
    Figure(
        "memory that 10,000 conversations more leave",
        "MB",
        "A mock server can stand for days: beyond its journal and its 8,192 conversations nothing grows.",
        "the first 10,000",
    )
)
def mock_memory(_: int) -> Iterator[Pair]:
    """Ask with prompts of 4 KB, each of which begins a conversation."""
    import gc
    import tracemalloc

    import httpx

    async def sizes() -> list[float]:
        seen, server = [0.0], MockServer(lambda _: "done")
        async with httpx.AsyncClient(transport=server.transport) as client:
            for number in range(20_000):
                body = {"model": "m", "messages": [{"role": "user", "content": f"{number} {'x' * 4_000}"}]}
                (await client.post(f"{IN_PROCESS_URL}/chat/completions", json=body)).raise_for_status()
                if number in (9_999, 19_999):
                    gc.collect()
                    seen.append(tracemalloc.get_traced_memory()[0] / 1e6)
        return seen

    tracemalloc.start()
    _, first, second = asyncio.run(sizes())
    tracemalloc.stop()
    yield second - first, first
