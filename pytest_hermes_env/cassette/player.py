"""Replays a tape: returns the recorded answer of each request and tool call, each answer once.

Recordings are indexed per rollout by the digest of their exact text, so a lookup does not depend on the length of the tape. Only
if the exact text is not found are normal forms compared, within the rollout.

Place in the flow: a session looks up each call here. A call that is not on the tape returns a `Miss`, which `difference` describes.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from pytest_hermes_env.cassette.matching import Matching, canonical, digest, exact_digest, normal_form, without_volatile
from pytest_hermes_env.cassette.redact import Redactor
from pytest_hermes_env.cassette.tape import ModelCall, ModelRequest, RecordedRollout, RecordedToolCall, Tape
from pytest_hermes_env.types import JsonObject

__all__ = ["Miss", "Player", "request_of_tool", "tool_request"]

Call = TypeVar("Call", ModelCall, RecordedToolCall)


@dataclass(frozen=True, kw_only=True)
class Miss(Generic[Call]):
    """The call is not on the tape, or all its recordings are used; ``uses`` is their number.

    ``unused`` and ``used`` are the recordings of the rollout, of the same kind.
    """

    unused: tuple[Call, ...] = ()
    used: tuple[Call, ...] = ()
    uses: int = 0


def tool_request(name: str, arguments: JsonObject, *, by_agent: bool) -> ModelRequest:
    """Return a tool call as a request, for comparison."""
    return ModelRequest(method="agent" if by_agent else "verifier", path=name, body=arguments, body_kind="json")


class _Comparison:
    """The forms in which requests are compared and reported."""

    def __init__(self, matching: Matching, redactor: Redactor) -> None:
        self._matching = matching
        self._redactor = redactor

    def exact(self, request: ModelRequest) -> str:
        return exact_digest(request, self._matching)

    def without_secrets(self, request: ModelRequest) -> ModelRequest:
        """Return a request with one neutral placeholder for each secret; numbered ones would differ from run to run."""
        return replace(request, body=self._redactor.normalised(self._redactor.request(request).body))

    def readable(self, request: ModelRequest) -> ModelRequest:
        return without_volatile(self.without_secrets(request), self._matching)

    def normal(self, request: ModelRequest) -> str:
        return normal_form(canonical(self.without_secrets(request), self._matching), self._matching)


class _Recordings(Generic[Call]):
    """The recorded model calls, or the recorded tool calls, of one rollout."""

    def __init__(self, calls: Iterable[Call], request_of: Callable[[Call], ModelRequest], comparison: _Comparison) -> None:
        self._calls: tuple[Call, ...] = tuple(calls)
        self._request_of: Callable[[Call], ModelRequest] = request_of
        self._comparison = comparison
        self._used = [False] * len(self._calls)
        self._exact: dict[str, deque[int]] = defaultdict(deque)
        self._normal: dict[str, deque[int]] | None = None
        for index, call in enumerate(self._calls):
            self._exact[comparison.exact(request_of(call))].append(index)

    def take(self, request: ModelRequest) -> Call | None:
        """Return the first unused recording of this request, and mark it used."""
        found = self._first(self._exact, self._comparison.exact(request))
        if found is None:
            if self._normal is None:
                self._normal = defaultdict(deque)
                for index, call in enumerate(self._calls):
                    if not self._used[index]:
                        self._normal[digest(self._comparison.normal(self._request_of(call)))].append(index)
            found = self._first(self._normal, digest(self._comparison.normal(request)))
        return found

    def _first(self, index: dict[str, deque[int]], key: str) -> Call | None:
        waiting = index.get(key)
        while waiting:
            position = waiting.popleft()
            if not self._used[position]:
                self._used[position] = True
                return self._calls[position]
        return None

    def miss(self, request: ModelRequest) -> Miss[Call]:
        """Return the recordings that a message compares the request with."""
        normal = self._comparison.normal(request)
        uses = sum(self._comparison.normal(self._request_of(call)) == normal for call in self._calls)
        used = tuple(call for call, used in zip(self._calls, self._used, strict=True) if used)
        return Miss(unused=self.unused, used=used, uses=uses)

    @property
    def unused(self) -> tuple[Call, ...]:
        """The unused recordings, in order."""
        return tuple(call for call, used in zip(self._calls, self._used, strict=True) if not used)


class Player:
    """Returns the answers of one tape. Safe to use from several threads."""

    def __init__(self, tape: Tape, matching: Matching | None = None, redactor: Redactor | None = None) -> None:
        self.tape = tape
        self._comparison = _Comparison(matching or Matching(), redactor or Redactor())
        self._lock = threading.Lock()
        models: dict[int, list[ModelCall]] = defaultdict(list)
        tools: dict[int, list[RecordedToolCall]] = defaultdict(list)
        for call in tape.calls:
            if isinstance(call, ModelCall):
                models[call.rollout].append(call)
            else:
                tools[call.rollout].append(call)
        self._models = {rollout: _Recordings(calls, _request_of_model, self._comparison) for rollout, calls in models.items()}
        self._tools = {rollout: _Recordings(calls, request_of_tool, self._comparison) for rollout, calls in tools.items()}
        self._rollouts = {rollout.number: rollout for rollout in tape.rollouts}
        self._unclaimed: dict[str, deque[int]] = defaultdict(deque)
        for number in sorted({*models, *tools, *self._rollouts} - {0}):
            known = self._rollouts.get(number)
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
        normal = self._comparison.normal(request)
        with self._lock:
            free = sorted(number for waiting in self._unclaimed.values() for number in waiting)
            first = next((number for number in free if self._opens_with(number, normal)), None)
            chosen = first if first is not None else next(iter(free), 0)
            for waiting in self._unclaimed.values():
                if chosen in waiting:
                    waiting.remove(chosen)
            return chosen

    def _opens_with(self, number: int, normal: str) -> bool:
        recordings = self._models.get(number)
        call = next(iter(recordings.unused), None) if recordings is not None else None
        return call is not None and self._comparison.normal(call.request) == normal

    def recorded_rollout(self, number: int) -> RecordedRollout | None:
        """Return the recorded rollout, if it has a record."""
        return self._rollouts.get(number)

    # Calls

    def model_call(self, request: ModelRequest, rollout: int) -> ModelCall | Miss[ModelCall]:
        """Return the recording of a request within a rollout."""
        return self._take(self._models, rollout, request)

    def tool_call(
        self, name: str, arguments: JsonObject, rollout: int, *, by_agent: bool
    ) -> RecordedToolCall | Miss[RecordedToolCall]:
        """Return the recording of a tool call within a rollout."""
        return self._take(self._tools, rollout, tool_request(name, arguments, by_agent=by_agent))

    def _take(self, by_rollout: dict[int, _Recordings[Call]], rollout: int, request: ModelRequest) -> Call | Miss[Call]:
        with self._lock:
            recordings = by_rollout.get(rollout)
            if recordings is None:
                return Miss()
            found = recordings.take(request)
            return recordings.miss(request) if found is None else found

    def redacted(self, request: ModelRequest) -> ModelRequest:
        """Return a request for a message: without secrets and without values that change in each run."""
        return self._comparison.readable(request)

    @property
    def unused_models(self) -> tuple[ModelCall, ...]:
        """The model calls of the tape that were not used."""
        return tuple(call for recordings in self._models.values() for call in recordings.unused)

    @property
    def unused_tools(self) -> tuple[RecordedToolCall, ...]:
        """The tool calls of the tape that were not used."""
        return tuple(call for recordings in self._tools.values() for call in recordings.unused)


def _request_of_model(call: ModelCall) -> ModelRequest:
    return call.request


def request_of_tool(call: RecordedToolCall) -> ModelRequest:
    """Return a recorded tool call as a request, for comparison."""
    return tool_request(call.name, call.arguments, by_agent=call.turn > 0)
