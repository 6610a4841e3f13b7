"""The cassettes of the bundled environments: replayed here, and recorded again by ``pytest tests/cassettes --hermes-record=rewrite``.

They are recorded from a MockServer on a socket, in place of a provider, with the tools of an in-memory machine. A replay has
neither.
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
    """The model's behaviour: for the text that a rollout begins with, its tool calls and its final answer."""
    raise NotImplementedError


@pytest.fixture
def judge() -> Any:
    """The judge's answer; None without a judge."""
    return None


@pytest.fixture
def hermes_upstream(rollouts: dict[str, list[Any]], judge: Any) -> Iterator[MockServer]:
    """A mock model with different answers for each rollout of a group, although their first requests are the same."""
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
    """The forbidden actions of a replay: starting a process, listening on a port, connecting to one."""
    done: list[str] = []
    platform.platform()  # the openai client calls it; Python runs `uname` once per process and caches the answer
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
