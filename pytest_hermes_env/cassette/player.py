"""Replays a tape: returns the recorded answer of each request and tool call, each answer once.

Recordings are indexed per rollout by the digest of their exact text, so a lookup does not depend on the length of the tape. Only
if the exact text is not found are normal forms compared, within the rollout.

Place in the flow: a session looks up each call here. A call that is not on the tape returns a `Miss`, which `replay_errors` describes.
`ToolSeam` uses a `RecordedTools` like a fake sandbox: no tool runs.
"""

from __future__ import annotations

import builtins
import functools
import json
import re
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.cassette.matching import Matching, canonical, digest, normal_form, temporary_directory, without_volatile
from pytest_hermes_env.cassette.redact import Redactor
from pytest_hermes_env.cassette.replay_errors import Miss, nearest
from pytest_hermes_env.cassette.tape import Call, ModelCall, ModelRequest, RecordedToolCall, Tape
from pytest_hermes_env.redaction.redactor import neutral
from pytest_hermes_env.types import JsonValue, Sandbox, Sandboxes

if TYPE_CHECKING:
    from pytest_hermes_env.cassette.rollouts import LiveRollout


class _Comparison:
    """The forms in which requests are compared and reported. Only new ones are redacted for it: recorded ones have been."""

    def __init__(self, matching: Matching, redactor: Redactor) -> None:
        self._matching = matching
        self.redacted = redactor.request

    def directories(self, request: ModelRequest) -> list[str]:
        """Return the temporary directories in a request, in the order in which they appear."""
        return list(dict.fromkeys(temporary_directory().findall(canonical(request, self._matching))))

    def exact(self, request: ModelRequest) -> str:
        return digest(canonical(request, self._matching))

    def readable(self, redacted: ModelRequest) -> ModelRequest:
        return without_volatile(_neutral(redacted), self._matching)

    def normal(self, redacted: ModelRequest) -> str:
        return normal_form(canonical(_neutral(redacted), self._matching), self._matching)


def _neutral(request: ModelRequest) -> ModelRequest:
    """Return a request with one neutral placeholder for each secret; numbered ones would differ from run to run."""
    return replace(request, body=neutral(request.body))


def _of_today(call: Call, directories: Sequence[str]) -> Call:
    """Return a call whose answer names the temporary directories of today's request where it named those of the recorded one."""
    recorded = list(dict.fromkeys(temporary_directory().findall(canonical(call.request, Matching()))))
    today = {then: now for then, now in zip(recorded, directories, strict=False) if then != now}
    if not today:
        return call
    answer: Any = call.reply.body if isinstance(call, ModelCall) else call.result
    named = re.compile("|".join(rf"{re.escape(then)}(?![\w-])" for then in today))

    def renamed(value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return named.sub(lambda found: today[found[0]], value)
        if isinstance(value, list):
            return [renamed(part) for part in value]
        return {key: renamed(part) for key, part in value.items()} if isinstance(value, dict) else value

    if isinstance(call, ModelCall):
        return replace(call, reply=replace(call.reply, body=renamed(answer)))
    return replace(call, result=renamed(answer))


class _Recordings:
    """The recorded model calls, or the recorded tool calls, of one rollout."""

    def __init__(self, calls: list[Call], comparison: _Comparison) -> None:
        self._calls = calls
        self._comparison = comparison
        self._used = [False] * len(calls)
        self._exact: dict[str, deque[int]] = defaultdict(deque)
        self._normal: dict[str, deque[int]] | None = None
        for index, call in enumerate(calls):
            self._exact[comparison.exact(call.request)].append(index)

    def take(self, request: ModelRequest) -> Call | Miss:
        """Return the first unused recording of this request, and mark it used; else what a message says about the request."""
        found = self._first(self._exact, self._comparison.exact(request))
        if found is not None:
            return found
        if self._normal is None:
            self._normal = defaultdict(deque)
            for index, call in enumerate(self._calls):
                if not self._used[index]:
                    self._normal[digest(self._comparison.normal(call.request))].append(index)
        redacted = self._comparison.redacted(request)
        alike = self._first(self._normal, digest(self._comparison.normal(redacted)))
        return self._miss(redacted) if alike is None else _of_today(alike, self._comparison.directories(request))

    def _first(self, index: dict[str, deque[int]], key: str) -> Call | None:
        waiting = index.get(key)
        while waiting:
            position = waiting.popleft()
            if not self._used[position]:
                self._used[position] = True
                return self._calls[position]
        return None

    def _miss(self, redacted: ModelRequest) -> Miss:
        seen, normal = self._comparison.readable(redacted), self._comparison.normal(redacted)
        if uses := sum(self._comparison.normal(call.request) == normal for call in self._calls):
            return Miss(seen=seen, uses=uses)
        call = nearest(seen, self.unused or self._calls, self._comparison.readable)
        recorded = self._comparison.readable(self._comparison.redacted(call.request))  # shown: a person may have edited it
        return Miss(seen=seen, nearest=call, recorded=recorded)

    @property
    def unused(self) -> list[Call]:
        """The unused recordings, in order."""
        return [call for call, used in zip(self._calls, self._used, strict=True) if not used]


class Player:
    """Returns the answers of one tape. Safe to use from several threads."""

    def __init__(self, tape: Tape, matching: Matching | None = None, redactor: Redactor | None = None) -> None:
        self.tape = tape
        self.matching = matching or Matching()
        self._comparison = _Comparison(self.matching, redactor or Redactor())
        self._lock = threading.Lock()
        calls: dict[tuple[type[Call], int], list[Call]] = defaultdict(list)
        for call in tape.calls:
            calls[type(call), call.rollout].append(call)
        self._recordings = {key: _Recordings(group, self._comparison) for key, group in calls.items()}
        self.rollouts = {rollout.number: rollout for rollout in tape.rollouts}
        self._unclaimed: dict[str, deque[int]] = defaultdict(deque)
        for number in sorted(({number for _, number in calls} | self.rollouts.keys()) - {0}):
            known = self.rollouts.get(number)
            self._unclaimed["" if known is None else known.opening].append(number)

    # Rollouts

    def claim(self, opening: str) -> int:
        """Return the number of the first unclaimed rollout with this opening; 0 if there is none."""
        with self._lock:
            waiting = self._unclaimed.get(opening) if opening else None
            return waiting.popleft() if waiting else 0

    def recorded_with(self, opening: str) -> int:
        """Return how many recorded rollouts have this opening, or, if none has, how many there are."""
        alike = sum(rollout.opening == opening for rollout in self.tape.rollouts)
        return alike or len(self.tape.rollouts)

    def claim_for(self, request: ModelRequest, opening: str) -> int:
        """Return the number of the first unclaimed rollout that begins with this request, else of the first unclaimed one.

        For a rollout that `claim` did not find. 0 if all are claimed, or all with the same opening.
        """
        if opening and opening in self._unclaimed:
            return 0
        normal = self._comparison.normal(self._comparison.redacted(request))
        with self._lock:
            free = sorted(number for waiting in self._unclaimed.values() for number in waiting)
            first = next((number for number in free if self._opens_with(number, normal)), None)
            chosen = first if first is not None else next(iter(free), 0)
            for waiting in self._unclaimed.values():
                if chosen in waiting:
                    waiting.remove(chosen)
            return chosen

    def _opens_with(self, number: int, normal: str) -> bool:
        recordings = self._recordings.get((ModelCall, number))
        call = next(iter(recordings.unused), None) if recordings is not None else None
        return call is not None and self._comparison.normal(call.request) == normal

    # Calls

    def model_call(self, request: ModelRequest, rollout: int) -> ModelCall | Miss:
        """Return the recording of a request within a rollout."""
        return self._take(ModelCall, rollout, request)  # type: ignore[return-value]

    def tool_call(self, request: ModelRequest, rollout: int) -> RecordedToolCall | Miss:
        """Return the recording of a tool call within a rollout."""
        return self._take(RecordedToolCall, rollout, request)  # type: ignore[return-value]

    def _take(self, kind: type[Call], rollout: int, request: ModelRequest) -> Call | Miss:
        with self._lock:
            recordings = self._recordings.get((kind, rollout))
            if recordings is None:
                return Miss(seen=self._comparison.readable(self._comparison.redacted(request)))
            return recordings.take(request)

    def unused(self, *kinds: type[Call]) -> list[Call]:
        """Return the calls of the tape of these kinds that were not used, in order."""
        found = [call for (kind, _), recordings in self._recordings.items() if kind in kinds for call in recordings.unused]
        return sorted(found, key=lambda call: call.number)


# ---------------------------------------------------------------------- tools


class RecordedTools:
    """Answers the tool calls of every rollout from the tape; with ``live``, only those of rollouts on the tape.

    ``rollout_of`` returns the rollout of a task, ``answer`` the recording of a call, or raises CassetteMiss. ``offered`` are the names
    of the tools that the recorded requests offered; None if unknown.
    """

    def __init__(
        self,
        rollout_of: Callable[[str], LiveRollout | None],
        answer: Callable[[LiveRollout | None, str, dict[str, Any]], RecordedToolCall],
        *,
        offered: frozenset[str] | None,
        live: Sandboxes | None,
    ) -> None:
        self._rollout_of, self._answer = rollout_of, answer
        self._live = live
        self.offered = offered if live is None else None

    @property
    def backend(self) -> str:
        """The value of TERMINAL_ENV: a backend unknown to hermes, unless real tools run for other rollouts."""
        return "fake" if self._live is None else self._live.backend

    @property
    def is_confined(self) -> bool:
        """Whether tool calls cannot reach this machine."""
        return self._live is None or self._live.is_confined

    @property
    def description(self) -> str:
        """A short description for messages."""
        return "the recorded tools of a cassette" + ("" if self._live is None else f", with {self._live.description}")

    def sandbox_of(self, task_id: str) -> Sandbox:
        """Return the sandbox of a rollout."""
        rollout = self._rollout_of(task_id)
        if self._live is not None and (rollout is None or not rollout.is_recorded):
            return self._live.sandbox_of(task_id)
        return _OneRollout(functools.partial(self._answer, rollout))


class _OneRollout:
    def __init__(self, answer: Callable[[str, dict[str, Any]], RecordedToolCall]) -> None:
        self._answer = answer

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Return the recorded result. Raises: the error that the tool raised in the recording; not on the tape → CassetteMiss."""
        call = self._answer(name, arguments)
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
