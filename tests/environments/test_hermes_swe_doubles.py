"""HermesSweEnv's reward on an in-memory machine: every outcome of the verifier in milliseconds, without a process.

What the verifier itself decides is tested with real processes in test_hermes_swe_verifier.py.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
from typing import Any

import pytest

from environments.hermes_swe_env.hermes_swe_env import HermesSweEnv
from environments.hermes_swe_env.verification import VerificationError

ITEM = {"prompt": "Double a number.", "test": "assert double(4) == 8\n", "entry_point": "double"}
VERIFIER = re.compile(
    r"\bpython3?[\d.]* -I -S /workspace/\.verifier-[0-9a-f]{16}/verifier /workspace/\.verifier-[0-9a-f]{16}/request$"
)


def request_of(command: Any) -> dict[str, Any]:
    """What the verifier is asked, from the file that its command line names."""
    return json.loads(command.sandbox.files[command.words[-1]])


def passed(command: Any) -> str:
    """What the verifier says when all tests passed."""
    return f"proof {hashlib.sha256(request_of(command)['key'].encode()).hexdigest()}"


@pytest.fixture
def env(make_env: Any) -> Any:
    """An environment that is not set up: its reward needs no items."""
    return make_env(HermesSweEnv, server="http://127.0.0.1:9/v1", test_timeout=7)


def reward(env: Any, result: Any, ctx: Any, item: Any = ITEM) -> float:
    return asyncio.run(env.compute_reward(item, result, ctx))


@pytest.mark.parametrize(
    "answer",
    [
        {"output": "line 1 of the tests: AssertionError:", "exit_code": 1},
        {"output": ""},
        {"output": f"proof {'0' * 64}"},
        {"output": "Traceback", "exit_code": 2},
        {"output": "", "timed_out": True},
        {"output": "Killed", "exit_code": 137},
    ],
    ids=["failed", "exit code alone", "a proof of something else", "no Python", "time", "memory"],
)
def test_what_is_not_proven_is_an_attempt(env, agent_result, tool_context, fake_sandbox, answer):
    """Whatever the agent says about it."""
    fake_sandbox.files["solution.py"] = "x"
    fake_sandbox.on(VERIFIER, **answer)

    assert reward(env, agent_result.say("All tests passed."), tool_context) == 0.1


def test_image_without_python_is_said(env, agent_result, tool_context, fake_sandbox, caplog):
    """An attempt can be distinguished from nothing, but the author must know that nothing can pass."""
    fake_sandbox.files["solution.py"] = "x"
    fake_sandbox.on(VERIFIER, "/usr/bin/bash: python3: command not found", exit_code=127)

    with caplog.at_level(logging.WARNING, logger="environments"):
        earned = reward(env, agent_result.say("done"), tool_context)

    assert (earned, caplog.messages) == (
        0.1,
        [
            "python3 was not found in the sandbox: nothing can pass there (/usr/bin/bash: python3: command not found)",
        ],
    )


def test_verifier_is_asked_with_files_and_nothing_else(env, agent_result, tool_context, fake_sandbox):
    """The command line holds two paths; the item and the place of the solution stand in the request."""
    asked: list[Any] = []

    def look(command: Any) -> str:
        asked.append((request_of(command), command.arguments["timeout"], command.sandbox.files[command.words[-2]]))
        return passed(command)

    item = {**ITEM, "test": "'; rm -rf ~; '$(touch pwned)"}
    fake_sandbox.files["it's/solution.py"] = "x"
    fake_sandbox.on(VERIFIER, look)
    assert reward(env, agent_result.say("done"), tool_context, item) == 1.0

    (request, timeout, program), key = asked[0], asked[0][0]["key"]
    assert request == {
        "solution": "/workspace/it's/solution.py",
        "tests": item["test"],
        "entry_point": "double",
        "seconds": 7,
        "key": key,
    }
    assert (timeout, len(key)) == (37, 32)
    assert program


def test_disk_that_is_full_is_an_error(env, agent_result, tool_context, fake_sandbox):
    """A broken sandbox never looks like a reward of 0.0."""
    fake_sandbox.files["solution.py"] = "x"
    fake_sandbox.on_tool("write_file", {"error": "No space left on device"})

    with pytest.raises(
        VerificationError, match=r"^The tests cannot be written to /workspace/\.verifier-\w+/verifier in the"
    ) as raised:
        reward(env, agent_result.say("done"), tool_context)

    assert str(raised.value).endswith("in the sandbox: No space left on device")


def test_sandbox_that_runs_nothing_is_an_error(env, agent_result, tool_context, fake_sandbox):
    """As above, when the command itself could not be started."""
    fake_sandbox.files["solution.py"] = "x"
    fake_sandbox.on(VERIFIER, result={"exit_code": -1, "output": "", "error": "container is gone"})

    with pytest.raises(VerificationError) as raised:
        reward(env, agent_result.say("done"), tool_context)

    assert str(raised.value) == "The sandbox did not run the tests: container is gone"
