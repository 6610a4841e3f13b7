"""What token mode costs: whole rollouts on a mock vLLM and a mock SGLang server, beside the same rollouts in chat mode.

Prints figures and ratios; run it with nothing else on the machine: ``python benchmarks/token_mode.py``.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import tempfile
import time

TARGET = "environments.terminal_test_env.terminal_test_env:TerminalTestEnv"
GROUP, COUNT = 8, 200


async def seconds_per_rollout(server_type: str | None) -> float:
    """Return seconds per rollout of two turns with one tool call, on the in-memory machine, over loopback HTTP."""
    from pytest_hermes_env import call, say
    from pytest_hermes_env.layer import find_class
    from pytest_hermes_env.rollout.builder import EnvironmentBuilder
    from pytest_hermes_env.sandbox.fake import FakeSandbox
    from pytest_hermes_env.sandbox.seam import ToolSeam

    (env_class,) = find_class(TARGET)
    chosen = {} if server_type is None else {"server_type": server_type}
    with ToolSeam(FakeSandbox(allow_leftovers=True)) as seam:
        builder = EnvironmentBuilder(allow_leftovers=True, seam=lambda: seam)
        script = [call("terminal", command="echo hello"), say("done")]
        env = builder.build(env_class, script=script, group_size=GROUP, **chosen)
        await env.setup()
        await env.collect_trajectories(await env.get_next_item())
        started = time.perf_counter()
        for _ in range(COUNT // GROUP):
            await env.collect_trajectories(await env.get_next_item())
        seconds = time.perf_counter() - started
        builder.close()
    return seconds / COUNT


def main() -> None:
    """Print rollouts per second in each mode."""
    logging.disable(logging.CRITICAL)
    chat = asyncio.run(seconds_per_rollout(None))
    print(f"chat mode, rollouts (2 turns)   {1 / chat:6.1f} per second")
    for server_type in ("vllm", "sglang"):
        tokens = asyncio.run(seconds_per_rollout(server_type))
        print(
            f"token mode on {server_type:<6}            {1 / tokens:6.1f} per second   {tokens / chat:.2f} times the cost (aim: at most 1.5)"
        )


if __name__ == "__main__":
    home = tempfile.mkdtemp(prefix="hermes-env-benchmark-")
    os.mkdir(os.path.join(home, "home"))
    os.environ.update(HERMES_HOME=home, TERMINAL_HOME_MODE="profile", TRANSFORMERS_NO_ADVISORY_WARNINGS="1")
    try:
        main()
    finally:
        shutil.rmtree(home)
