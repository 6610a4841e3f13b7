"""Tools that answer from a tape: no process, no disk, and no machine like the one on which the tape was recorded.

Place in the flow: `ToolSeam` asks a `RecordedTools` as it asks a fake sandbox; the session finds the recording of each call.
"""

from __future__ import annotations

import builtins
import json
from typing import TYPE_CHECKING, Any, Protocol

from pytest_hermes_env.cassette.tape import RecordedToolCall
from pytest_hermes_env.types import Sandbox, World

if TYPE_CHECKING:
    from pytest_hermes_env.cassette.rollouts import LiveRollout

__all__ = ["RecordedTools", "ToolAnswers", "result_of"]


class ToolAnswers(Protocol):
    """What a session does for its tools."""

    def rollout_of(self, task_id: str) -> LiveRollout | None:
        """Return the rollout of a task."""

    def tool_answer(self, rollout: LiveRollout | None, name: str, arguments: dict[str, Any]) -> RecordedToolCall:
        """Return the recording of a call. Raises: it is not on the tape → CassetteMiss."""


class RecordedTools:
    """Answers the tool calls of every rollout from the tape; with ``beside``, only those of rollouts that are on it.

    ``offered`` are the names of the tools that the recorded requests offered, None where they do not tell.
    """

    def __init__(self, answers: ToolAnswers, *, offered: frozenset[str] | None = None, beside: World | None = None) -> None:
        self._answers = answers
        self._beside = beside
        self.offered = offered if beside is None else None

    @property
    def backend(self) -> str:
        """What TERMINAL_ENV says: a backend that hermes does not have, unless real tools work beside the recorded ones."""
        return "fake" if self._beside is None else self._beside.backend

    @property
    def is_confined(self) -> bool:
        """Nothing of this computer can be reached."""
        return self._beside is None or self._beside.is_confined

    @property
    def description(self) -> str:
        """What answers."""
        return "the recorded tools of a cassette" + ("" if self._beside is None else f", beside {self._beside.description}")

    def sandbox_of(self, task_id: str) -> Sandbox:
        """Return what answers for a rollout."""
        rollout = self._answers.rollout_of(task_id)
        if self._beside is not None and (rollout is None or not rollout.is_recorded):
            return self._beside.sandbox_of(task_id)
        return _OneRollout(self._answers, rollout)


class _OneRollout:
    def __init__(self, answers: ToolAnswers, rollout: LiveRollout | None) -> None:
        self._answers = answers
        self._rollout = rollout

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Return the recorded result. Raises: what the tool raised then; it is not on the tape → CassetteMiss."""
        call = self._answers.tool_answer(self._rollout, name, arguments)
        if call.error:
            raise _error(call.error)
        result: Any = call.result  # text nearly always, and what hermes gave in any case
        return result  # type: ignore[no-any-return]


def _error(text: str) -> Exception:
    """Return an exception of the recorded name and message."""
    name, _, message = text.partition(": ")
    known = getattr(builtins, name, None)
    if isinstance(known, type) and issubclass(known, Exception):
        try:
            return known(message)
        except TypeError:
            pass
    kind: type[Exception] = type(name, (RuntimeError,), {})
    return kind(message)


def result_of(value: object) -> Any:
    """Return a tool's result as a tape can hold it."""
    return value if isinstance(value, str) else json.loads(json.dumps(value, default=repr))
