"""Plays a tape: each request and tool call gets its own recorded answer, every answer once.

Recordings are kept per rollout under the digest of their exact text, so that a call costs the same however long the tape is.
Only where that text is not found are normal forms compared, within the rollout.

Place in the flow: a session asks with what came; what is not on the tape comes back as a `Miss`, described by `difference`.
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
    """What was asked for is not there. ``nearest`` is the recording that is most like it, ``uses`` how often it is recorded.

    ``uses`` is 0 unless the very same is on the tape and was given already.
    """

    unused: tuple[Call, ...] = ()
    used: tuple[Call, ...] = ()
    uses: int = 0


def tool_request(name: str, arguments: JsonObject, *, by_agent: bool) -> ModelRequest:
    """Return a tool call in the form in which requests are compared."""
    return ModelRequest(method="agent" if by_agent else "verifier", path=name, body=arguments, body_kind="json")


class _Texts:
    """Requests as texts to compare: exactly, and without what may differ."""

    def __init__(self, matching: Matching, redactor: Redactor) -> None:
        self._matching = matching
        self._redactor = redactor

    def exact(self, request: ModelRequest) -> str:
        return exact_digest(request, self._matching)

    def plain(self, request: ModelRequest) -> ModelRequest:
        """Return a request without secrets: those of a recording have placeholders, which differ from run to run."""
        return replace(request, body=self._redactor.normalised(self._redactor.request(request).body))

    def shown(self, request: ModelRequest) -> ModelRequest:
        return without_volatile(self.plain(request), self._matching)

    def normal(self, request: ModelRequest) -> str:
        return normal_form(canonical(self.plain(request), self._matching), self._matching)


class _Shelf(Generic[Call]):
    """The recordings of one rollout, of one kind."""

    def __init__(self, calls: Iterable[Call], request_of: Callable[[Call], ModelRequest], texts: _Texts) -> None:
        self._calls: tuple[Call, ...] = tuple(calls)
        self._request_of: Callable[[Call], ModelRequest] = request_of
        self._texts = texts
        self._used = [False] * len(self._calls)
        self._exact: dict[str, deque[int]] = defaultdict(deque)
        self._normal: dict[str, deque[int]] | None = None
        for index, call in enumerate(self._calls):
            self._exact[texts.exact(request_of(call))].append(index)

    def take(self, request: ModelRequest) -> Call | None:
        """Return the first recording of this request that was not given yet."""
        found = self._first(self._exact, self._texts.exact(request))
        if found is None:
            if self._normal is None:
                self._normal = defaultdict(deque)
                for index, call in enumerate(self._calls):
                    if not self._used[index]:
                        self._normal[digest(self._texts.normal(self._request_of(call)))].append(index)
            found = self._first(self._normal, digest(self._texts.normal(request)))
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
        """Return what is there instead."""
        normal = self._texts.normal(request)
        uses = sum(self._texts.normal(self._request_of(call)) == normal for call in self._calls)
        used = tuple(call for call, used in zip(self._calls, self._used, strict=True) if used)
        return Miss(unused=self.unused, used=used, uses=uses)

    @property
    def unused(self) -> tuple[Call, ...]:
        """The recordings that were not given yet, in order."""
        return tuple(call for call, used in zip(self._calls, self._used, strict=True) if not used)


class Player:
    """Gives the answers of one tape. Safe from several threads."""

    def __init__(self, tape: Tape, matching: Matching | None = None, redactor: Redactor | None = None) -> None:
        self.tape = tape
        self._texts = _Texts(matching or Matching(), redactor or Redactor())
        self._lock = threading.Lock()
        models: dict[int, list[ModelCall]] = defaultdict(list)
        tools: dict[int, list[RecordedToolCall]] = defaultdict(list)
        for call in tape.calls:
            if isinstance(call, ModelCall):
                models[call.rollout].append(call)
            else:
                tools[call.rollout].append(call)
        self._models = {rollout: _Shelf(calls, _request_of_model, self._texts) for rollout, calls in models.items()}
        self._tools = {rollout: _Shelf(calls, request_of_tool, self._texts) for rollout, calls in tools.items()}
        self._rollouts = {rollout.number: rollout for rollout in tape.rollouts}
        self._unclaimed: dict[str, deque[int]] = defaultdict(deque)
        for number in sorted({*models, *tools, *self._rollouts} - {0}):
            known = self._rollouts.get(number)
            self._unclaimed["" if known is None else known.opening].append(number)

    # Rollouts

    def claim(self, opening: str) -> int:
        """Return the number of the first recorded rollout that began so and is not taken; 0 when there is none."""
        with self._lock:
            waiting = self._unclaimed.get(opening) if opening else None
            return waiting.popleft() if waiting else 0

    def recorded_with(self, opening: str) -> int:
        """Return how many recorded rollouts began so, or, where none did, how many there are."""
        alike = sum(rollout.opening == opening for rollout in self.tape.rollouts)
        return alike or len(self.tape.rollouts)

    def claim_for(self, request: ModelRequest, opening: str) -> int:
        """Return the number of the first rollout not taken whose first request is this one, or else of the first not taken.

        For a rollout that `claim` did not find. 0 when all are taken, also when just all of the same opening are.
        """
        if opening and opening in self._unclaimed:
            return 0
        normal = self._texts.normal(request)
        with self._lock:
            free = sorted(number for waiting in self._unclaimed.values() for number in waiting)
            first = next((number for number in free if self._opens_with(number, normal)), None)
            chosen = first if first is not None else next(iter(free), 0)
            for waiting in self._unclaimed.values():
                if chosen in waiting:
                    waiting.remove(chosen)
            return chosen

    def _opens_with(self, number: int, normal: str) -> bool:
        shelf = self._models.get(number)
        call = next(iter(shelf.unused), None) if shelf is not None else None
        return call is not None and self._texts.normal(call.request) == normal

    def recorded_rollout(self, number: int) -> RecordedRollout | None:
        """Return what is known of a recorded rollout."""
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

    def _take(self, shelves: dict[int, _Shelf[Call]], rollout: int, request: ModelRequest) -> Call | Miss[Call]:
        with self._lock:
            shelf = shelves.get(rollout)
            if shelf is None:
                return Miss()
            found = shelf.take(request)
            return shelf.miss(request) if found is None else found

    def plain(self, request: ModelRequest) -> ModelRequest:
        """Return a request as a message may show it: without secrets and what is new in each run."""
        return self._texts.shown(request)

    @property
    def unused_models(self) -> tuple[ModelCall, ...]:
        """The requests of the tape that nobody made."""
        return tuple(call for shelf in self._models.values() for call in shelf.unused)

    @property
    def unused_tools(self) -> tuple[RecordedToolCall, ...]:
        """The tool calls of the tape that nobody made."""
        return tuple(call for shelf in self._tools.values() for call in shelf.unused)


def _request_of_model(call: ModelCall) -> ModelRequest:
    return call.request


def request_of_tool(call: RecordedToolCall) -> ModelRequest:
    """Return a recorded tool call in the form in which requests are compared."""
    return tool_request(call.name, call.arguments, by_agent=call.turn > 0)
