"""A scripted command that another command runs: it is answered where that is possible, and refused where bash cannot ask."""

from __future__ import annotations

import pytest

from pytest_hermes_env.errors import UnexpectedToolCall
from pytest_hermes_env.sandbox.wrapped_commands import handed_on, wrapped


@pytest.mark.parametrize(
    ("line", "inner"),
    [
        ("timeout 60 pytest -q", "pytest -q"),
        ("timeout -s KILL -k5 60s pytest -q", "pytest -q"),
        ("timeout --signal=KILL 1m env -i A=1 B='x' pytest -q", "pytest -q"),
        ("nice -n 10 nohup /usr/bin/env -u HOME pytest -q", "pytest -q"),
        ("sudo -u bob A=1 pytest", "pytest"),
        ("stdbuf -oL -e 0 pytest", "pytest"),
        ("command pytest -q", "pytest -q"),
        ("command -v pytest", ""),
        ("pytest -q", ""),
        ("timeout", ""),
        ("environment pytest", ""),
    ],
)
def test_what_a_wrapper_runs(line: str, inner: str) -> None:
    assert wrapped(line) == inner


@pytest.mark.parametrize(
    ("line", "given"),
    [
        ("bash -lc 'cd x && pytest -q' | tail", ["cd x && pytest -q"]),
        ("sh -e -c pytest", ["pytest"]),
        ("ls | xargs -n 1 pytest -q", ["pytest -q"]),
        ("find . -name '*.py' -exec pytest {} \\;", ["pytest {}"]),
        ("bash run.sh", []),
    ],
)
def test_what_is_handed_on(line: str, given: list[str]) -> None:
    assert list(handed_on(line)) == given


@pytest.mark.parametrize(
    "line", ["timeout 60 mytool -q", "cd / && env A=1 mytool -q | cat", "nice -n 5 timeout 3 mytool -q; true"]
)
def test_it_is_answered_behind_a_wrapper(fake_sandbox, tool_context, line):
    """The program that runs it adds nothing to its output."""
    fake_sandbox.on("mytool -q", output="scripted")

    assert tool_context.terminal(line)["output"].strip() == "scripted"


@pytest.mark.parametrize(
    "line", ["bash -c mytool", "sh -c 'cd / && mytool'", "echo a | xargs mytool", "mytool; bash -c 'mytool'"]
)
def test_it_is_refused_in_another_shell(machine, ask, line):
    """It would run the real one, or none."""
    machine.on("mytool", output="scripted", optional=True)
    with pytest.raises(UnexpectedToolCall, match="cannot ask the script for `mytool`"):
        ask(machine, "terminal", command=line)
