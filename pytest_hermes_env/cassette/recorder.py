"""Collects calls and orders them by rollout, so that the same run results in the same tape."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pytest_hermes_env.cassette.rollouts import LiveRollout
from pytest_hermes_env.cassette.tape import (
    Call,
    Header,
    ModelCall,
    RecordedRollout,
    Tape,
)


@dataclass(frozen=True, kw_only=True)
class Ticket:
    """A call without an answer yet: its place in the order, and its rollout."""

    place: int
    rollout: LiveRollout | None


class Recorder:
    """Collects model calls and tool calls. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places = 0
        self._calls: list[tuple[int, LiveRollout | None, Call]] = []

    def begin(self, rollout: LiveRollout | None) -> Ticket:
        """Reserve the place of a call that begins."""
        with self._lock:
            self._places += 1
            return Ticket(place=self._places, rollout=rollout)

    def add(self, ticket: Ticket, call: Call) -> None:
        """Add an answered call."""
        with self._lock:
            self._calls.append((ticket.place, ticket.rollout, call))

    @property
    def is_empty(self) -> bool:
        """Whether no model call was recorded."""
        return not any(isinstance(call, ModelCall) for _, _, call in self._calls)

    @property
    def calls(self) -> int:
        """How many calls were answered."""
        return len(self._calls)

    def described(self) -> str:
        """Return what was recorded so far, for people who wait: calls, rollouts under way and their turns, tokens and cost."""
        with self._lock:
            calls = [(rollout, call) for _, rollout, call in self._calls]
        usages = [call.reply.usage for _, call in calls if isinstance(call, ModelCall)]
        turns = [
            rollout.turn for rollout in {id(each): each for each, _ in calls if each is not None and each.is_looping}.values()
        ]
        parts = [f"{len(usages)} model call{'s' * (len(usages) != 1)}"]
        if turns:
            first, last = min(turns), max(turns)
            at = f"turn {first}" if first == last else f"turns {first} to {last}"
            parts.append(f"{len(turns)} rollout{'s' * (len(turns) != 1)} at {at}")
        if tokens := sum(tokens for tokens, _ in usages):
            parts.append(f"{tokens:,} tokens")
        if cost := sum(cost for _, cost in usages):
            parts.append(f"${cost:.4f}")
        return ", ".join(parts)

    def tape(self, header: Header, rollouts: Iterable[LiveRollout], before: Tape | None = None) -> Tape:
        """Return the recorded calls, appended to those of ``before``."""
        older = before.calls if before is not None else ()
        with self._lock:
            recorded = [
                replace(call, rollout=0 if rollout is None else rollout.number)
                for _, rollout, call in sorted(self._calls, key=lambda entry: entry[0])
            ]
        calls = sorted((*older, *recorded), key=lambda call: call.rollout)
        known = before.rollouts if before is not None else ()
        new = tuple(
            RecordedRollout(
                number=rollout.number, opening=rollout.opening, reward=rollout.reward, reward_error=rollout.reward_error
            )
            for rollout in rollouts
            if not rollout.is_recorded
        )
        return Tape(
            header=header,
            calls=tuple(replace(call, number=number) for number, call in enumerate(calls, start=1)),
            rollouts=(*known, *sorted(new, key=lambda rollout: rollout.number)),
        )
