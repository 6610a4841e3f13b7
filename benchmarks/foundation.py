"""What the foundation costs: start of a contract run, mock rollouts, and the static check.

Prints figures and ratios; run it with nothing else on the machine: ``python benchmarks/foundation.py``.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TARGET = "environments.terminal_test_env.terminal_test_env:TerminalTestEnv"
REPEATS = 3

FIRST_RULE = f"""
import sys, time
import pytest

class Stopwatch:
    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            print("first rule", flush=True)
            import os; os._exit(0)

pytest.main(["-q", "-p", "no:cacheprovider", "--hermes-env", {TARGET!r}], plugins=[Stopwatch()])
"""


def seconds_of(*command: str) -> float:
    """Return the median wall time of a command over a few runs."""
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def start_of_a_contract_run() -> None:
    """Print the time to the first rule, beside the import that no environment can avoid."""
    python = sys.executable
    bare = seconds_of(python, "-c", "import atroposlib.envs.base")
    first = seconds_of(python, "-c", FIRST_RULE)
    print(f"import atroposlib.envs.base        {bare:6.2f} s")
    print(f"start to first rule of a contract  {first:6.2f} s   {first / bare:.2f} times the import (aim: at most 2)")


async def mock_rollouts(count: int) -> tuple[float, float]:
    """Return seconds for ``count`` rollouts of two turns with one tool call, and for as many bare openai calls."""
    import openai

    from pytest_hermes_env.inference import MockServer, call, say
    from pytest_hermes_env.layer import find_class
    from pytest_hermes_env.rollout.builder import EnvironmentBuilder
    from pytest_hermes_env.sandbox.fake import FakeSandbox
    from pytest_hermes_env.sandbox.seam import ToolSeam

    (env_class,) = find_class(TARGET)
    seam = ToolSeam(FakeSandbox())
    builder = EnvironmentBuilder(allow_leftovers=True, seam=lambda: seam)
    with MockServer([call("terminal", command="echo hello"), say("done")], allow_leftovers=True) as mock, seam:
        env = builder.build(env_class, server=mock, group_size=8)
        await env.setup()
        await env.collect_trajectories(await env.get_next_item())
        started = time.perf_counter()
        for _ in range(count // 8):
            await env.collect_trajectories(await env.get_next_item())
        rollouts = time.perf_counter() - started
        tools, _ = env._resolve_tools_for_group()
        async with openai.AsyncOpenAI(base_url=mock.base_url, api_key="x", max_retries=0) as client:
            started = time.perf_counter()
            for _ in range(count // 8):
                messages = [{"role": "user", "content": "hello"}]
                requests = [client.chat.completions.create(model="m", messages=messages, tools=tools) for _ in range(2 * 8)]
                await asyncio.gather(*requests)
            bare = time.perf_counter() - started
    builder.close()
    return rollouts, bare


def rollouts_per_second() -> None:
    """Print mock rollouts per second through the real base env and the real openai client."""
    count = 400
    logging.disable(logging.CRITICAL)
    rollouts, bare = asyncio.run(mock_rollouts(count))
    print(f"mock rollouts (2 turns, 1 tool)    {count / rollouts:6.0f} per second")
    print(f"the same requests, bare client     {count / bare:6.0f} per second   {rollouts / bare:.2f} times its cost")


async def rewards_in_the_shell(count: int, commands: tuple[str, ...]) -> list[float]:
    """Return, for each command, the wall time of ``count`` concurrent rollouts whose reward runs it."""
    from pytest_hermes_env.inference import MockServer, call, say
    from pytest_hermes_env.layer import find_class
    from pytest_hermes_env.rollout.builder import EnvironmentBuilder

    (env_class,) = find_class(TARGET)

    class Verifying(env_class):  # type: ignore[misc, valid-type]
        command = ""

        async def compute_reward(self, item: object, result: object, ctx: object) -> float:
            del item, result
            ctx.terminal(self.command)  # type: ignore[attr-defined]
            return 1.0

    times = []
    builder = EnvironmentBuilder(allow_leftovers=True)
    with MockServer([call("terminal", command="true"), say("done")], allow_leftovers=True) as mock:
        env = builder.build(Verifying, server=mock, group_size=count)
        await env.setup()
        for command in ("true", *commands):  # the first one warms up
            Verifying.command = command
            started = time.perf_counter()
            await env.collect_trajectories(await env.get_next_item())
            times.append(time.perf_counter() - started)
    builder.close()
    return times[1:]


def rewards_that_wait() -> None:
    """Print how much longer 64 rollouts take when their reward waits half a second in the shell."""
    count, seconds = 64, 0.5
    quick, slow = asyncio.run(rewards_in_the_shell(count, ("true", f"sleep {seconds}")))
    ideal = quick + seconds
    print(f"64 rollouts, reward runs `true`    {quick:6.2f} s")
    print(
        f"64 rollouts, reward sleeps 0.5 s   {slow:6.2f} s   {slow / ideal:.2f} times the ideal of {ideal:.2f} s "
        f"(aim: at most 2); one after the other: {quick + count * seconds:.0f} s"
    )


def static_check() -> None:
    """Print the time of ``hermes-env check`` over 300 files, beside ruff on the same tree."""
    from pytest_hermes_env.layer import find_class

    (env_class,) = find_class(TARGET)
    source = Path(sys.modules[env_class.__module__].__file__ or "").read_text(encoding="utf-8")
    directory = Path(tempfile.mkdtemp())
    try:
        for number in range(300):
            (directory / f"env_{number}.py").write_text(source.replace("TerminalTestEnv", f"Env{number}"), encoding="utf-8")
        ours = seconds_of(sys.executable, "-m", "pytest_hermes_env.cli", "check", str(directory))
        print(f"hermes-env check, 300 files        {ours:6.2f} s   (aim: under 2 s)")
        ruff = shutil.which("ruff")
        if ruff:
            theirs = seconds_of(ruff, "check", "--no-cache", "--quiet", "--exit-zero", str(directory))
            print(f"ruff check, the same files         {theirs:6.2f} s   ours is {ours / theirs:.0f} times that")
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    home = tempfile.mkdtemp(prefix="hermes-env-benchmark-")
    Path(home, "home").mkdir()
    os.environ.update(HERMES_HOME=home, TERMINAL_HOME_MODE="profile", TRANSFORMERS_NO_ADVISORY_WARNINGS="1")
    start_of_a_contract_run()
    rollouts_per_second()
    rewards_that_wait()
    static_check()
    shutil.rmtree(home)
