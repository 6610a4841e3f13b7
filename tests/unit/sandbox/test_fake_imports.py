"""A fake sandbox costs nothing that a reward test does not use."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import asyncio, json, sys, threading
from pytest_hermes_env.sandbox.context import FakeToolContext
from pytest_hermes_env.sandbox.fake import FakeSandbox

async def reward(ctx):
    ctx.write_file("a.py", "x = 1")
    return ctx.terminal("cat a.py")["output"], ctx.read_file("a.py")["content"], ctx.search("x")["total_count"]

answers = asyncio.run(reward(FakeToolContext(FakeSandbox())))
heavy = {"tools.terminal_tool", "model_tools", "hermes_cli", "atroposlib", "environments", "openai", "httpx", "hypothesis", "tree_sitter", "yaml", "pydantic"}
print(json.dumps([answers, sorted(heavy & set(sys.modules)), threading.active_count()]))
"""


def test_reward_test_loads_nothing_heavy_and_starts_no_thread():
    """Of hermes only the functions of its file tools, and no environment layer, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ('[["x = 1", "x = 1", 1], [], 1]\n', "")
