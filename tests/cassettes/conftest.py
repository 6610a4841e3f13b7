"""The cassettes of the bundled environments: played here, and recorded anew by ``pytest tests/cassettes --hermes-record=rewrite``.

What they are recorded from is a MockServer on a socket of its own, which stands in for a provider; the tools are those of an
in-memory machine. In a replay neither is there.
"""

from __future__ import annotations

import itertools
import platform
import socket
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pytest_hermes_env import MockServer, Script, say, turn


@pytest.fixture
def rollouts() -> dict[str, list[Any]]:
    """What the model does: by the text that a rollout begins with, its tool calls, and its last words."""
    raise NotImplementedError


@pytest.fixture
def judge() -> Any:
    """What the judge says; None where there is none."""
    return None


@pytest.fixture
def hermes_upstream(rollouts: dict[str, list[Any]], judge: Any) -> Iterator[MockServer]:
    """A mock model with answers of its own for each rollout of a group, although their first requests are the same."""
    openings = itertools.cycle(rollouts)

    def speak(conversation: Any) -> Any:
        said = [str(message.get("content")) for message in conversation.messages if message["role"] == "assistant"]
        opening = next(text for text in rollouts if text in said[0]) if said else next(openings)
        step = rollouts[opening][conversation.turn]
        return step if said else turn(say(opening), step)

    with MockServer(Script(speak, judge=judge), allow_leftovers=True) as server:
        yield server


@pytest.fixture
def nothing_real(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """What a replay must not do, and did all the same: start a process, listen on a port, connect to one."""
    done: list[str] = []
    platform.platform()  # the openai client asks for it; Python asks `uname` once per process, and keeps the answer
    if request.config.getoption("hermes_record") in {None, "none"}:

        def forbid(owner: Any, name: str) -> None:
            def refuse(*args: Any, **_: Any) -> Any:
                done.append(f"{name} {args}")
                raise AssertionError(f"a replay calls {name}")

            monkeypatch.setattr(owner, name, refuse)

        forbid(subprocess, "Popen")
        for name in ("bind", "connect", "listen"):
            forbid(socket.socket, name)
    return lambda: done
