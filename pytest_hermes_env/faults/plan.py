"""`FaultPlan`: which request or tool call of a test fails, and how. Standard library only.

Place in the flow: the mock model, the run-api of the tests, the trainer double and the tool seam ask the plan before they answer;
`wire` and `tool_calls` play the fault. A planned fault that is never played fails the test.
The steps ``fail`` and ``hang`` of a script are faults of the model, too: short forms for a fault of one turn. So is the step that
fails in a scenario of the contract.
"""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

from pytest_hermes_env.errors import LeftoverFaults, UsageError, shorten, with_type

SLOW_S = 0.05
"""Default length, in seconds, of what a fault delays."""

Describe: TypeAlias = Callable[[str, bytes], tuple[str, str]]
"""(path, body) of a request to a service -> the place of the plan that it belongs to, and its body as text."""

WIRE = {
    "refused": "the connection is refused: nobody listens",
    "reset": "the connection is reset after the request",
    "rate_limited": "status 429, with Retry-After",
    "server_error": "status 500",
    "slow": "the first byte comes late",
    "hangs": "no answer until the client gives up",
    "cut": "the connection ends in the middle of the answer",
    "broken_json": "status 200 with half of the JSON",
}

FAULTS = {
    "model": WIRE,
    "sandbox": {
        "raises": "the tool raises",
        "hangs": "the tool runs until it is interrupted",
        "slow": "the tool takes long",
        "broken_json": "the result is cut in the middle",
        "disk_full": "no space is left for what the tool writes",
        "cannot_open": "no space is left for the sandbox's directory",
    },
    "run_api": WIRE,
    "trainer": WIRE,
}
"""Places and their faults, each with what happens."""

SCRIPTED_STATUS, SCRIPTED_DELAY = "fail", "hang"
"""The faults of the model that a turn of a script plans: an answer with a status, and a delay."""
STATUSES = {"rate_limited": 429, "server_error": 500}


@dataclass(frozen=True, kw_only=True)
class PlannedFault:
    """One fault. ``at``, ``times`` and ``rate`` count the requests or calls whose text contains ``where``.

    For a fault of a turn, ``times`` counts the attempts of one request. ``status`` and ``message`` are those of a failure.
    """

    place: str
    kind: str
    where: str = ""
    at: int = 1
    times: int | None = None
    rate: float | None = None
    seconds: float = SLOW_S
    status: int | None = None
    message: str = ""

    def __str__(self) -> str:
        if self.kind == SCRIPTED_STATUS:
            return f"fail {self.status}" + (f" (times={self.times})" if self.times is not None else "")
        if self.kind == SCRIPTED_DELAY:
            return f"hang {self.seconds:g} s"
        parts = [f"{self.place} {self.kind}", f"where {self.where!r}" if self.where else ""]
        parts += [f"at {self.at}" if self.at > 1 else "", f"{self.times} times" if self.times else ""]
        return ", ".join([part for part in parts if part] + ([f"rate {self.rate:g}"] if self.rate is not None else []))

    def answer(self) -> tuple[int, dict[str, str], dict[str, Any]]:
        """Return the status, the headers and the body with which a service fails, in OpenAI's format."""
        status = self.status or STATUSES[self.kind]
        error = {"message": self.message or f"planned fault: {self}", "type": self.kind, "param": None, "code": str(status)}
        headers = {"retry-after": str(math.ceil(self.seconds))} if self.kind == "rate_limited" else {}
        return status, headers, {"error": error}


@dataclass(frozen=True, kw_only=True)
class Strike:
    """A fault that was played. ``text`` is the start of the request or call that failed."""

    fault: PlannedFault
    text: str


@dataclass
class _Entry:
    fault: PlannedFault
    chance: random.Random
    seen: int = 0
    struck: int = 0


@dataclass
class FaultPlan:
    """The faults of one test: ``plan.on("model", "reset", at=3)``. Thread-safe.

    Give it to ``MockServer(faults=plan)``, ``RunApiThread(faults=plan)``, ``Trainer(url, faults=plan)`` and ``ToolSeam(sandbox,
    faults=plan)``, or take the fixture ``fault_plan``, which does that. ``seed`` determines which requests fail at a rate.
    """

    seed: int = 0
    allow_leftovers: bool = False
    _entries: list[_Entry] = field(default_factory=list)
    _strikes: list[Strike] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    released: threading.Event = field(default_factory=threading.Event)
    """Ends everything that hangs."""

    def on(
        self,
        place: str,
        kind: str,
        *,
        where: str = "",
        at: int = 1,
        times: int | None = None,
        rate: float | None = None,
        seconds: float = SLOW_S,
    ) -> Self:
        """Plan a fault of a place; see `FAULTS`.

        ``where`` is a part of the request (``POST /v1/chat/completions`` and its body) or tool call (name and JSON arguments).
        ``at`` is the first of these that fails, from 1; ``times`` how many fail from there on, None for all; ``rate`` the share
        that fails, at random. ``seconds`` is what a slow answer takes and a rate limit asks for.

        Raises: no such place or fault, a number out of range → UsageError.
        """
        known = FAULTS.get(place)
        if kind not in (known or ()):
            raise UsageError(
                "a fault plan has no such fault.\n"
                f"  expected  {f'a fault of {place!r}: ' + ', '.join(known) if known else 'a place: ' + ', '.join(FAULTS)}\n"
                f"  seen      on({shorten(repr(place))}, {shorten(repr(kind))})\n"
                "  fix       plan.on('model', 'reset', at=2)"
            )
        for name, number in (("at", at), ("times", times)):
            if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
                raise UsageError(f"{name}= of a planned fault must be an integer from 1; got {with_type(number)}.")
        if rate is not None and not 0 < rate <= 1:
            raise UsageError(f"rate= of a planned fault must be above 0 and at most 1; got {with_type(rate)}.")
        return self.add(PlannedFault(place=place, kind=kind, where=where, at=at, times=times, rate=rate, seconds=seconds))

    def add(self, fault: PlannedFault) -> Self:
        """Plan a fault whose numbers are not checked. Raises: it is none → UsageError."""
        if not isinstance(fault, PlannedFault):
            raise UsageError(f"a fault plan takes a PlannedFault, not {with_type(fault)}: plan.on('model', 'reset', at=2)")
        with self._lock:
            self._entries.append(_Entry(fault, random.Random(f"{self.seed}:{len(self._entries)}")))  # noqa: S311 - not a secret
        return self

    def strike(self, place: str, text: str, kinds: frozenset[str] | None = None) -> PlannedFault | None:
        """Return the fault of a request or call, the first planned one that is due; count it for all. ``kinds`` limits it."""
        with self._lock:
            due = [
                entry
                for entry in self._entries
                if entry.fault.place == place
                and (kinds is None or entry.fault.kind in kinds)
                and entry.fault.where in text
                and _is_due(entry)
            ]
            if not due:
                return None
            entry = due[0]
            entry.struck += 1
            self._strikes.append(Strike(fault=entry.fault, text=shorten(text)))
            return entry.fault

    @property
    def strikes(self) -> tuple[Strike, ...]:
        """The faults that were played so far, in order."""
        return tuple(self._strikes)

    def verify(self) -> None:
        """Release what hangs. Raises: a planned fault that was never played → LeftoverFaults."""
        self.released.set()
        unused = [entry for entry in self._entries if not entry.struck and (entry.fault.rate is None or not entry.seen)]
        if unused and not self.allow_leftovers:
            shown = "\n".join(f"  planned   {entry.fault}; {entry.seen} requests or calls of it were seen" for entry in unused)
            raise LeftoverFaults(
                f"{len(unused)} of {len(self._entries)} planned faults were never played.\n{shown}\n"
                "  fix       check `where` and `at`, or accept it: @pytest.mark.hermes_allow_leftovers"
            )


def _is_due(entry: _Entry) -> bool:
    """Count a request or call for an entry, and return whether it fails."""
    entry.seen += 1
    fault = entry.fault
    if fault.rate is not None and entry.chance.random() >= fault.rate:
        return False
    return entry.seen >= fault.at and (fault.times is None or entry.struck < fault.times)


def half(result: str) -> str:
    """Return the first half of a result: broken JSON."""
    return result[: len(result) // 2]
