"""What a sandbox costs: a line in memory, a line in real bash and a reward test, each compared with hermes' own terminal."""

from __future__ import annotations

import asyncio
import contextlib
import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from benchmarks.registry import Figure, Pair, benchmark, best, least, stopwatch
from benchmarks.rollouts import TARGET
from pytest_hermes_env import FakeSandbox, agent_result
from pytest_hermes_env.layer import find_class
from pytest_hermes_env.play.builder import EnvironmentBuilder
from pytest_hermes_env.sandbox.context import FakeToolContext

REWARD_LINES = ("cat greeting.txt", "test -f greeting.txt", "grep -c Hello greeting.txt")
"""What a reward asks its machine, in common lines."""
REAL_LINES = ("awk '{print $1}' greeting.txt", "cat <(sort greeting.txt)", "a=(1 2 3); echo ${#a[@]}")
"""Lines that only real bash runs, and that take it no time."""


@contextlib.contextmanager
def on_a_fake_sandbox() -> Iterator[Any]:
    """Open a context on an in-memory machine."""
    with contextlib.closing(FakeSandbox()) as sandbox:
        yield FakeToolContext(sandbox)


@contextlib.contextmanager
def on_hermes() -> Iterator[Any]:
    """Open a context on hermes' own local terminal."""
    from environments.tool_context import ToolContext

    os.environ["TERMINAL_ENV"] = "local"  # a benchmark before this one may have left another
    context = ToolContext(str(uuid.uuid4()))
    try:
        yield context
    finally:
        context.cleanup()


def run(context: Any, line: str) -> None:
    """Run a line. Raises: it failed → RuntimeError."""
    result = context.terminal(line)
    if result["exit_code"] != 0 or result.get("error"):
        raise RuntimeError(f"{line} was not run: {result}")


def per_line(contexts: Callable[[], AbstractContextManager[Any]], lines: Iterable[str], n: int) -> float:
    """Return milliseconds of a line in a warm session. Raises: it did not do what is timed → RuntimeError."""
    with contexts() as context:
        context.write_file("greeting.txt", "Hello from Hermes Agent\n")
        runs = []
        for line in lines:
            run(context, line)
            runs.append(best(n, lambda line=line: run(context, line)).wall)
    return sum(runs) / len(runs) * 1000


@benchmark(
    Figure("a common line", "ms", "`cat`, `test`, `grep`: what rewards ask for runs in memory.", "hermes' own terminal"),
    Figure("a line for real bash", "ms", "What only bash can do runs in a confined cell.", "hermes' own terminal"),
    Figure("the first line for real bash", "ms", "The same, with the start of its cell.", "hermes' own terminal"),
)
def lines(n: int) -> Iterator[Pair]:
    """Measure lines."""
    real = {each: per_line(on_hermes, each, n) for each in (REWARD_LINES, REAL_LINES)}
    for each, rounds in ((REWARD_LINES, 20 * n), (REAL_LINES, 5 * n)):
        yield per_line(on_a_fake_sandbox, each, rounds), real[each]

    def first() -> None:
        with on_a_fake_sandbox() as context:
            run(context, REAL_LINES[2])

    def first_of_hermes() -> None:
        with on_hermes() as context:
            run(context, REAL_LINES[2])

    yield best(n, first).wall * 1000, best(n, first_of_hermes).wall * 1000


@benchmark(
    Figure(
        "a reward test",
        "ms",
        "A test that builds a result, gives it files and asks for the reward: you can afford a thousand of them.",
        "hermes' own terminal",
    )
)
def reward_test(n: int) -> Iterator[Pair]:
    """Score the same transcript in both sandboxes."""
    builder = EnvironmentBuilder(allow_leftovers=True)
    env = builder.build(find_class(TARGET)[0], in_process=True)

    async def score(context: Any, item: Any) -> None:
        asked = agent_result.user("greet").call("terminal", command="ls")
        result = asked.returns({"output": "", "exit_code": 0}).say("done")
        reward = await env.compute_reward(item, result, context)
        if reward != 1.0:
            raise RuntimeError(f"the reward must be 1.0, not {reward}")

    async def seconds() -> list[float]:
        await env.setup()
        item = await env.get_next_item()
        fake, real = [], []
        for _ in range(20 * n):
            with stopwatch() as spent:
                await score(FakeToolContext(FakeSandbox({item["path"]: item["content"]})), item)
            fake.append(spent)
        for _ in range(n):
            with on_hermes() as context:
                context.write_file(item["path"], item["content"])
                with stopwatch() as spent:
                    await score(context, item)
                real.append(spent)
        return [least(fake).wall * 1000, least(real).wall * 1000]

    ours, theirs = asyncio.run(seconds())
    builder.close()
    yield ours, theirs
