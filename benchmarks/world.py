"""Measures the sandboxes: a reward test, a line in memory, a line on the real thing and a rollout, each beside hermes' own terminal.

Prints times and ratios. Run it on an idle machine: ``python benchmarks/world.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import statistics
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

TARGET = "environments.terminal_test_env.terminal_test_env:TerminalTestEnv"
GROUP = 8


REWARD_LINES = ("cat greeting.txt", "test -f greeting.txt && wc -c < greeting.txt", "grep -c Hello greeting.txt")
"""What a reward asks its machine, in common lines."""
REAL_LINES = ("awk '{print $1}' greeting.txt", "cat <(sort greeting.txt)", "a=(1 2 3); echo ${#a[@]}")
"""Lines that only real bash runs, and that take it no time."""


def per_line(contexts: Callable[[], AbstractContextManager[Any]], lines: Iterable[str], rounds: int) -> float:
    """Return the median seconds of a line in one warm session."""
    with contexts() as context:
        context.write_file("greeting.txt", "Hello from Hermes Agent\n")
        for line in lines:
            context.terminal(line)
        times = []
        for _ in range(rounds):
            for line in lines:
                started = time.perf_counter()
                context.terminal(line)
                times.append(time.perf_counter() - started)
    return statistics.median(times)


@contextlib.contextmanager
def on_a_fake_sandbox() -> Iterator[Any]:
    """A context on an in-memory machine."""
    from pytest_hermes_env.sandbox.context import FakeToolContext
    from pytest_hermes_env.sandbox.fake import FakeSandbox

    with contextlib.closing(FakeSandbox()) as sandbox:
        yield FakeToolContext(sandbox)


@contextlib.contextmanager
def on_hermes() -> Iterator[Any]:
    """A context on hermes' own local terminal."""
    from environments.tool_context import ToolContext

    context = ToolContext(str(uuid.uuid4()))
    try:
        yield context
    finally:
        context.cleanup()


def lines_of_each_kind() -> None:
    """Print the time of a common line in memory and of a line on the real thing, each beside hermes' own terminal."""
    for name, lines, aim in (("in memory", REWARD_LINES, "0.5 ms"), ("on the real thing", REAL_LINES, "10 ms")):
        fake, real = per_line(on_a_fake_sandbox, lines, 50), per_line(on_hermes, lines, 10)
        print(
            f"a line {name:<27} {fake * 1000:7.2f} ms  (aim: {aim})   hermes' own terminal {real * 1000:6.1f} ms, "
            f"{real / fake:.1f} times as long"
        )
    started = time.perf_counter()
    with on_a_fake_sandbox() as context:
        context.terminal(REAL_LINES[0])
        print(
            f"the first real line of a machine   {(time.perf_counter() - started) * 1000:7.2f} ms  with the start of its cell"
        )


def a_reward_test() -> None:
    """Print the time of one reward test on the doubles and on hermes' terminal, and the threads that it starts."""
    from pytest_hermes_env import agent_result
    from pytest_hermes_env.layer import find_class
    from pytest_hermes_env.rollout.builder import EnvironmentBuilder
    from pytest_hermes_env.sandbox.context import FakeToolContext
    from pytest_hermes_env.sandbox.fake import FakeSandbox

    (env_class,) = find_class(TARGET)
    builder = EnvironmentBuilder(allow_leftovers=True)
    env = builder.build(env_class, in_process=True)

    async def rewards(count: int, *, on_fake: bool) -> list[float]:
        await env.setup()
        item = await env.get_next_item()
        times = []
        for _ in range(count):
            with contextlib.ExitStack() as opened:
                context = None if on_fake else opened.enter_context(on_hermes())
                if context is not None:
                    context.write_file(item["path"], item["content"])
                started = time.perf_counter()
                result = (
                    agent_result.user("greet")
                    .call("terminal", command="ls")
                    .returns({"output": "", "exit_code": 0})
                    .say("done")
                )
                context = context or FakeToolContext(FakeSandbox({item["path"]: item["content"]}))
                reward = await env.compute_reward(item, result, context)
                times.append(time.perf_counter() - started)
                assert reward == 1.0, reward
        return times

    threads = threading.active_count()
    times = asyncio.run(rewards(200, on_fake=True))
    started_threads = threading.active_count() - threads
    real = statistics.median(asyncio.run(rewards(6, on_fake=False)))
    fake = statistics.median(times[1:])
    print(
        f"a reward test on the doubles       {fake * 1000:7.2f} ms  (aim: 0.5 ms; the first one: {times[0] * 1000:.1f} ms; threads "
        f"started: {started_threads})   hermes' own terminal {real * 1000:6.1f} ms, {real / fake:.1f} times as long"
    )
    builder.close()


async def rollouts(count: int, *, fake: bool) -> float:
    """Return seconds for ``count`` rollouts of two turns with one tool call, on the in-memory machine or on hermes' terminal."""
    from pytest_hermes_env.inference import MockServer, call, say
    from pytest_hermes_env.layer import find_class
    from pytest_hermes_env.rollout.builder import EnvironmentBuilder
    from pytest_hermes_env.sandbox.fake import FakeSandbox
    from pytest_hermes_env.sandbox.seam import ToolSeam

    (env_class,) = find_class(TARGET)
    seam = ToolSeam(FakeSandbox(allow_leftovers=True)) if fake else None
    builder = EnvironmentBuilder(allow_leftovers=True, seam=lambda: seam)
    mock = MockServer([call("terminal", command="echo hello"), say("done")], allow_leftovers=True)
    with seam or contextlib.nullcontext():
        env = builder.build(env_class, server=mock, in_process=True, group_size=GROUP)
        await env.setup()
        await env.collect_trajectories(await env.get_next_item())
        started = time.perf_counter()
        for _ in range(count // GROUP):
            await env.collect_trajectories(await env.get_next_item())
        seconds = time.perf_counter() - started
    builder.close()
    return seconds


async def bare_requests(count: int) -> float:
    """Return seconds for ``count`` requests of the bare openai client on the same transport, with the same tools."""
    import httpx
    import model_tools
    import openai

    from pytest_hermes_env.inference import MockServer, say
    from pytest_hermes_env.inference.transport import IN_PROCESS_URL

    tools = model_tools.get_tool_definitions(enabled_toolsets=["terminal", "file"], quiet_mode=True)
    mock = MockServer(lambda _: say("done"), allow_leftovers=True)
    http = httpx.AsyncClient(transport=mock.transport)
    async with openai.AsyncOpenAI(base_url=IN_PROCESS_URL, api_key="x", http_client=http, max_retries=0) as client:
        started = time.perf_counter()
        for _ in range(count // GROUP):
            question = [{"role": "user", "content": "hello"}]
            await asyncio.gather(
                *(client.chat.completions.create(model="m", messages=question, tools=tools) for _ in range(GROUP))
            )
        return time.perf_counter() - started


def a_thousand_rollouts() -> None:
    """Print fake rollouts per second, compared with real ones and with their bare requests."""
    count, real_count = 1000, 64
    logging.disable(logging.CRITICAL)
    fake = asyncio.run(rollouts(count, fake=True)) / count
    real = asyncio.run(rollouts(real_count, fake=False)) / real_count
    bare = asyncio.run(bare_requests(count)) / count
    print(f"fake rollouts (2 turns, 1 tool)    {1 / fake:6.0f} per second, {count} of them in {fake * count:.1f} s")
    print(f"the same, hermes' real terminal    {1 / real:6.0f} per second   {real / fake:.1f} times as long (aim: at least 10)")
    print(f"one bare openai request            {1 / bare:6.0f} per second   a fake rollout costs {fake / bare:.1f} of them")


if __name__ == "__main__":
    home = tempfile.mkdtemp(prefix="hermes-env-benchmark-")
    os.mkdir(os.path.join(home, "home"))
    os.environ.update(HERMES_HOME=home, TERMINAL_HOME_MODE="profile", TRANSFORMERS_NO_ADVISORY_WARNINGS="1")
    try:
        a_reward_test()
        lines_of_each_kind()
        a_thousand_rollouts()
    finally:
        shutil.rmtree(home)
