"""What a fake sandbox says to a test that asks it for what cannot be."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pytest_hermes_env import Answer, FakeSandbox, FakeToolContext
from pytest_hermes_env.errors import UsageError


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (
            lambda: FakeSandbox().files.__setitem__("n", 3),  # type: ignore[arg-type]
            "the content of a file must be text or bytes.\n  seen      int 3\n  fix       files['n'] = '3'",
        ),
        (
            lambda: FakeSandbox().on("make", exit_code="1"),  # type: ignore[arg-type]
            "the exit code of an answer must be an integer.\n  seen      '1'",
        ),
        (
            lambda: Answer(slow_s=-1),
            "slow_s, the delay of an answer in seconds, must be a number from 0.\n  seen      -1",
        ),
        (
            lambda: Answer(slow_s=float("nan")),
            "slow_s, the delay of an answer in seconds, must be a number from 0.\n  seen      nan",
        ),
        (
            lambda: Answer(timed_out=True, raises=ValueError("x")),
            "an answer cannot both time out and raise.\n  seen      timed_out=True and raises=ValueError('x')\n"
            "  fix       give one of them, or several answers in sequence with answers=[...]",
        ),
        (
            lambda: FakeToolContext(None),  # type: ignore[arg-type]
            "FakeToolContext requires a sandbox.\n  seen      NoneType None\n"
            "  fix       FakeToolContext(FakeSandbox()), or the fixture tool_context",
        ),
    ],
    ids=["content", "exit code", "slow", "not a number", "faults", "context"],
)
def test_wrong_use_is_told_at_once(use: Callable[[], Any], message: str) -> None:
    """The error names what was given and what to give."""
    with pytest.raises(UsageError) as caught:
        use()

    assert str(caught.value) == message


def test_an_answer_slower_than_the_timeout_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow command runs into the terminal's limit, as it would in reality."""
    slept: list[float] = []
    monkeypatch.setattr("pytest_hermes_env.sandbox.answers.wait", slept.append)
    sandbox = FakeSandbox().on("make", output="built", slow_s=3)

    result = json.loads(sandbox.call("terminal", {"command": "make", "timeout": 1}))

    assert (slept, result["exit_code"], result["output"]) == ([1], 124, "[Command timed out after 1s]")
