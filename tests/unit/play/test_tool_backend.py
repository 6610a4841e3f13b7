"""What answers the tools of the contract's scenarios, and how the ledger tells it."""

from __future__ import annotations

import json

import pytest

from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.play.tool_backend import SandboxRouter, describe, opened_sandbox


def test_what_is_not_there_is_told() -> None:
    """The ledger names the commands that the in-memory machine did not have, the most frequent first."""
    with opened_sandbox("fake", "never") as world:
        for task, command in (("a", "make all"), ("b", "make all"), ("b", "python3 x.py"), ("b", "echo hi")):
            world.sandbox_of(task).call("terminal", {"command": command})
        line = describe(SandboxRouter(world))

    assert line == (
        "an in-memory machine; not available: make (2), python3 (1); refused: `make all`, `python3 x.py`, since real bash is "
        "switched off: real_tools='never': real_tools='confined' where the test "
        "creates the sandbox, else --hermes-real-tools=confined"
    )


def test_nothing_missing_is_no_remark() -> None:
    """A run that found everything says only what answered."""
    with opened_sandbox("fake") as world:
        line = describe(SandboxRouter(world))

    assert line == "an in-memory machine"


def test_a_missing_command_is_bash_s_own_answer() -> None:
    """An environment meets a machine without the program, and no exception."""
    with opened_sandbox("fake", "never") as world:
        answer = json.loads(world.sandbox_of("a").call("terminal", {"command": "pytest -q"}))

    assert answer == {"output": "/usr/bin/bash: line 3: pytest: command not found", "exit_code": 127, "error": None}


def test_a_line_that_cannot_be_read_is_no_exception() -> None:
    """What only real bash runs fails as a command does, and the ledger names it."""
    with opened_sandbox("fake", "never") as world:
        answer = json.loads(
            world.sandbox_of("a").call("terminal", {"command": "mapfile -t lines < names.txt; echo ${lines[0]}"})
        )
        line = describe(SandboxRouter(world))

    assert answer == {
        "output": "/usr/bin/bash: line 3: mapfile -t lines < names.txt; echo ${lines[0]}: not available on this machine",
        "exit_code": 127,
        "error": None,
    }
    assert "not available: mapfile (1)" in line


@pytest.mark.parametrize("name", ["fake", "local"])
def test_the_web_has_one_page(name: str) -> None:
    """A search finds something and what it found can be read, without a network."""
    with opened_sandbox(name) as world:
        sandbox = world.sandbox_of("a")
        found = json.loads(sandbox.call("web_search", {"query": "anything"}) or "")
        url = found["data"]["web"][0]["url"]
        page = json.loads(sandbox.call("web_extract", {"urls": [url]}) or "")

    assert page == {"results": [{"url": url, "title": "A page", "content": "a short text", "error": None}]}


def test_an_unknown_world_is_refused() -> None:
    """A misspelt name lists the known ones."""
    with pytest.raises(UsageError) as caught, opened_sandbox("docker"):
        pass

    assert str(caught.value) == "there is no sandbox named 'docker' for the contract. Known: fake, local"
