"""HermesSweEnv's reward on an in-memory machine: every outcome of the verifier in milliseconds, without a process.

What the verifier itself decides is tested with real processes in test_hermes_swe_verifier.py.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest

from environments.hermes_swe_env import verifier
from environments.hermes_swe_env.hermes_swe_env import HermesSweEnv
from environments.hermes_swe_env.verification import VerificationError
from pytest_hermes_env.inference import call, say

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


def test_passed_tests_are_the_full_reward(env, agent_result, tool_context, fake_sandbox):
    """The verifier's proof, and exit code 0."""
    fake_sandbox.files["solution.py"] = "def double(n): return 2 * n"
    fake_sandbox.on(VERIFIER, passed)

    assert reward(env, agent_result.say("I could not do it."), tool_context) == 1.0


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


def test_proof_without_exit_code_0_is_none(env, agent_result, tool_context, fake_sandbox):
    """Both are needed."""
    fake_sandbox.files["solution.py"] = "x"
    fake_sandbox.on(VERIFIER, passed, exit_code=1)

    assert reward(env, agent_result.say("done"), tool_context) == 0.1


def test_image_without_python_is_said(env, agent_result, tool_context, fake_sandbox, caplog):
    """An attempt can be told from nothing, but the author must know that nothing can pass."""
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


@pytest.mark.parametrize(("files", "expected"), [([], 0.0), (["notes.md", ".hidden/a.py"], 0.0), (["main.py"], 0.1)])
def test_without_a_solution_nothing_is_run(env, agent_result, tool_context, fake_sandbox, files, expected):
    """The verifier would be an unscripted command here."""
    for name in files:
        fake_sandbox.files[name] = "x"

    assert reward(env, agent_result.say("The answer is 2 * n."), tool_context) == expected


def test_list_of_files_may_be_cut(env, agent_result, tool_context, fake_sandbox):
    """Hermes then says so after the JSON."""
    text = (
        '{"total_count": 1, "files": ["/workspace/main.py"], "truncated": true}\n\n[Hint: Results truncated. Use offset=1000.]'
    )
    fake_sandbox.on_tool("search_files", text)

    assert reward(env, agent_result.say("done"), tool_context) == 0.1


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
    assert program == Path(verifier.__file__).read_text(encoding="utf-8")


def test_tests_that_decide_nothing_are_an_error(env, agent_result, tool_context, fake_sandbox):
    """They never look like a reward of 0.0."""
    fake_sandbox.files["solution.py"] = "x"
    fake_sandbox.on(VERIFIER, "the tests never called a function of the solution", exit_code=3)

    with pytest.raises(VerificationError) as raised:
        reward(env, agent_result.say("done"), tool_context)

    assert str(raised.value) == "The tests of this item reach no verdict: the tests never called a function of the solution"


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


def test_every_run_has_a_place_and_a_key_of_its_own(env, agent_result, tool_context, fake_sandbox):
    """Nobody can wait for the next one."""
    seen: list[Any] = []

    def look(command: Any) -> str:
        seen.append((command.words[-1], request_of(command)["key"]))
        return passed(command)

    fake_sandbox.files["solution.py"] = "x"
    fake_sandbox.on(VERIFIER, look)
    rewards = [reward(env, agent_result.say("done"), tool_context) for _ in range(3)]

    assert (rewards, len(set(seen)), len({place for place, _ in seen}), len({key for _, key in seen})) == ([1.0] * 3, 3, 3, 3)


def test_group_is_scored_on_machines_of_their_own(make_env, fake_sandbox):
    """A whole group through the real loop: the rollout that wrote the right file passes, whatever the others left."""
    contents = ["def double(n): return 2 * n", "def double(n): return n", None]

    def policy(conversation: Any) -> Any:
        content = None if conversation.turn else contents.pop()
        return say("done") if content is None else call("write_file", path="solution.py", content=content)

    def decide(command: Any) -> Any:
        if "2 * n" in command.sandbox.files["solution.py"]:
            return passed(command)
        return {"output": "line 1 of the tests: AssertionError:", "exit_code": 1, "error": None}

    fake_sandbox.on(VERIFIER, decide)

    async def scenario() -> Any:
        env = make_env(HermesSweEnv, script=policy, in_process=True, dataset_name=None, group_size=3)
        await env.setup()
        group, _ = await env.collect_trajectories(ITEM)
        return group["scores"]

    assert sorted(asyncio.run(scenario())) == [0.0, 0.1, 1.0]
