"""Answers tool calls from a tape, without running the tools.

Place in the flow: `ToolSeam` uses a `RecordedTools` like a fake sandbox; the session finds the recording of each call.
"""

from __future__ import annotations

import builtins
import json
from typing import TYPE_CHECKING, Any, Protocol

from pytest_hermes_env.cassette.tape import RecordedToolCall
from pytest_hermes_env.types import Sandbox, World

if TYPE_CHECKING:
    from pytest_hermes_env.cassette.rollouts import LiveRollout


class ToolAnswers(Protocol):
    """The part of a session that `RecordedTools` uses."""

    def rollout_of(self, task_id: str) -> LiveRollout | None:
        """Return the rollout of a task."""

    def tool_answer(self, rollout: LiveRollout | None, name: str, arguments: dict[str, Any]) -> RecordedToolCall:
        """Return the recording of a call. Raises: it is not on the tape → CassetteMiss."""


class RecordedTools:
    """Answers the tool calls of every rollout from the tape; with ``live_world``, only those of rollouts on the tape.

    ``offered`` are the names of the tools that the recorded requests offered; None if unknown.
    """

    def __init__(self, answers: ToolAnswers, *, offered: frozenset[str] | None = None, live_world: World | None = None) -> None:
        self._answers = answers
        self._live_world = live_world
        self.offered = offered if live_world is None else None

    @property
    def backend(self) -> str:
        """The value of TERMINAL_ENV: a backend unknown to hermes, unless real tools run for other rollouts."""
        return "fake" if self._live_world is None else self._live_world.backend

    @property
    def is_confined(self) -> bool:
        """Whether tool calls cannot reach this machine."""
        return self._live_world is None or self._live_world.is_confined

    @property
    def description(self) -> str:
        """A short description for messages."""
        return "the recorded tools of a cassette" + (
            "" if self._live_world is None else f", with {self._live_world.description}"
        )

    def sandbox_of(self, task_id: str) -> Sandbox:
        """Return the sandbox of a rollout."""
        rollout = self._answers.rollout_of(task_id)
        if self._live_world is not None and (rollout is None or not rollout.is_recorded):
            return self._live_world.sandbox_of(task_id)
        return _OneRollout(self._answers, rollout)


class _OneRollout:
    def __init__(self, answers: ToolAnswers, rollout: LiveRollout | None) -> None:
        self._answers = answers
        self._rollout = rollout

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Return the recorded result. Raises: the error that the tool raised in the recording; not on the tape → CassetteMiss."""
        call = self._answers.tool_answer(self._rollout, name, arguments)
        if call.error:
            raise _error(call.error)
        result: Any = call.result  # nearly always text, but hermes may return other values
        return result  # type: ignore[no-any-return]


def _error(text: str) -> Exception:
    """Return an exception with the recorded name and message."""
    name, _, message = text.partition(": ")
    known = getattr(builtins, name, None)
    if isinstance(known, type) and issubclass(known, Exception):
        try:
            return known(message)
        except TypeError:
            pass
    kind: type[Exception] = type(name, (RuntimeError,), {})
    return kind(message)


def as_json(value: object) -> Any:
    """Return a tool's arguments or result in a form that a tape can store."""
    return value if isinstance(value, str) else json.loads(json.dumps(value, default=repr))
