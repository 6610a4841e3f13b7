"""HermesSweEnv's reward on an in-memory machine: every outcome of the verifier in milliseconds, without a process.

What the verifier itself decides is tested with real processes in test_hermes_swe_verifier.py.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
from typing import Any

import pytest

from environments.hermes_swe_env.hermes_swe_env import HermesSweEnv
from environments.verification import CheckError

ITEM = {"prompt": "Double a number.", "test": "assert double(4) == 8\n", "entry_point": "double"}
CHECK = re.compile("exec python3 -I -S ")
WORD = re.compile("<<< ([0-9a-f]{32})$")
CLEAN = re.compile(r"/usr/bin/env -i ")
WRITTEN = re.compile(r" check (\S+) <<< '([\w+/=]*)'$")


def said(command: Any, report: Any) -> str:
    """What the verifier says: the word that it is told, and its report."""
    word = WORD.search(str(command.arguments["command"]))
    assert word is not None
    return f"{word[1]} {json.dumps(report)}"


@pytest.fixture
def env(make_env: Any) -> Any:
    """An environment that is not set up: its reward needs no items."""
    return make_env(HermesSweEnv, server="http://127.0.0.1:9/v1", test_timeout=7)


@pytest.fixture
def checks(fake_sandbox: Any) -> Any:
    """``checks(answer, exit_code=0)``: a solution is there, what prepares its check works, and this is what the check says."""
    fake_sandbox.files["solution.py"] = "x"
    prepared: list[str] = []

    def prepare(command: Any) -> str:
        prepared.append(str(command.arguments["command"]))
        return ""

    def answered(*args: Any, **kwargs: Any) -> list[str]:
        fake_sandbox.on(CLEAN, prepare)
        fake_sandbox.on(CHECK, *args, **kwargs)
        return prepared

    return answered


def reward(env: Any, result: Any, ctx: Any, item: Any = ITEM) -> float:
    return asyncio.run(env.compute_reward(item, result, ctx))


@pytest.mark.parametrize(
    "answer",
    [
        {"output": "line 1 of the tests: AssertionError:", "exit_code": 1},
        {"output": ""},
        {"output": f'{"0" * 32} "all tests passed"'},
        {"output": "Traceback", "exit_code": 2},
        {"output": "", "timed_out": True},
        {"output": "Killed", "exit_code": 137},
    ],
    ids=["failed", "exit code alone", "another word", "no Python", "time", "memory"],
)
def test_what_is_not_proven_is_an_attempt(env, agent_result, tool_context, checks, answer):
    """Whatever the agent says about it."""
    checks(**answer)

    assert reward(env, agent_result.say("All tests passed."), tool_context) == 0.1


def test_image_without_python_is_said(env, agent_result, tool_context, checks, caplog):
    """An attempt can be distinguished from nothing, but the author must know that nothing can pass."""
    checks("bash: python3: command not found", exit_code=127)

    with caplog.at_level(logging.WARNING, logger="environments"):
        earned = reward(env, agent_result.say("done"), tool_context)

    assert earned == 0.1
    assert caplog.messages == [
        "python3 was not found in the sandbox: nothing can pass there (bash: python3: command not found)"
    ]


def test_item_reaches_the_verifier_as_data(env, agent_result, tool_context, checks):
    """No command holds a text of the item, and none but the check's holds its word."""
    item = {**ITEM, "test": "'; touch pwned; '$(touch pwned)"}
    asked: list[Any] = []

    def look(command: Any) -> str:
        asked.append(command)
        return said(command, "all tests passed")

    prepared = checks(look)
    assert reward(env, agent_result.say("done"), tool_context, item) == 1.0

    (command,) = asked
    written = {found[1]: base64.b64decode(found[2]).decode() for line in prepared if (found := WRITTEN.search(line))}
    assert json.loads(written[".data"]) == {
        "solution": "solution.py",
        "tests": item["test"],
        "entry_point": "double",
        "seconds": 7,
    }
    assert written["verifier.py"]
    assert command.arguments["timeout"] == 37
    assert not any("pwned" in line for line in (*prepared, str(command.arguments["command"])))


def test_tests_without_a_verdict_are_an_error(env, agent_result, tool_context, checks):
    """They say nothing about the work."""
    checks(lambda command: {"output": said(command, "the tests cannot be compiled"), "exit_code": 3})

    with pytest.raises(CheckError, match="reach no verdict: the tests cannot be compiled"):
        reward(env, agent_result.say("done"), tool_context)


def test_disk_that_is_full_is_an_error(env, agent_result, tool_context, fake_sandbox):
    """A broken sandbox never looks like a reward of 0.0."""
    fake_sandbox.files["solution.py"] = "x"
    fake_sandbox.on(CLEAN)
    fake_sandbox.on(re.compile("base64 -d"), "No space left on device", exit_code=1)

    with pytest.raises(CheckError, match=r"^verifier.py cannot be written in the sandbox: No space left on device$"):
        reward(env, agent_result.say("done"), tool_context)


def test_sandbox_that_runs_nothing_is_an_error(env, agent_result, tool_context, checks):
    """As above, when the command itself could not be started."""
    checks(result={"exit_code": -1, "output": "", "error": "container is gone"})

    with pytest.raises(CheckError, match="the sandbox did not run the check: container is gone"):
        reward(env, agent_result.say("done"), tool_context)
