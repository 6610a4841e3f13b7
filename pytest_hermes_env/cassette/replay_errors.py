"""The texts of what goes wrong in a replay, and one error out of many problems."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from pytest_hermes_env.cassette.difference import differences, nearest
from pytest_hermes_env.cassette.player import Miss, request_of_tool, tool_request
from pytest_hermes_env.cassette.tape import ModelCall, ModelRequest, RecordedToolCall
from pytest_hermes_env.errors import CassetteMiss, HermesEnvError, LeftoverRecordings, RewardChanged, shorten
from pytest_hermes_env.types import JsonObject

__all__ = [
    "Place",
    "Problem",
    "as_error",
    "changed_rewards",
    "left_over",
    "missing_call",
    "missing_tool_call",
    "no_such_rollout",
    "still_waiting",
]

SHOWN = 5
"""Recordings and places that are listed; the others are counted."""
SEEN = 100
"""Characters of one value in a list."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a problem is: the cassette as the user knows it, the rollout in words, the command that records it anew.

    ``allow`` is what accepts recordings that are not used.
    """

    cassette: str
    again: str
    allow: str = "@pytest.mark.hermes_cassette(allow_leftovers=True)"
    rollout: str = "outside of any rollout"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that went wrong: the error class, the text in two parts, and between them where it was."""

    error: type[HermesEnvError]
    what: str
    rest: str
    where: str = ""

    @property
    def text(self) -> str:
        """The whole text."""
        where = f"  where     {self.where}\n" if self.where else ""
        return f"{self.what}\n{where}{self.rest}"

    def exception(self) -> HermesEnvError:
        """Return the problem as an exception of its class."""
        return self.error(self.text)


def as_error(problems: Iterable[Problem]) -> HermesEnvError | None:
    """Return one error for all the problems, of the class of the first; None when there are none.

    What is equal but for its place is said once: a changed prompt is missed by every rollout of a group.
    """
    alike: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        alike.setdefault((problem.what, problem.rest), []).append(problem)
    merged = [replace(same[0], where=_places([problem.where for problem in same])) for same in alike.values()]
    if not merged:
        return None
    if len(merged) == 1:
        return merged[0].exception()
    entries = (
        f"\n\n{number}. {problem.error.__name__}: {problem.text}".replace("\n  ", "\n     ")
        for number, problem in enumerate(merged, start=1)
    )
    return merged[0].error(f"the replay met {len(merged)} problems." + "".join(entries))


def _places(places: Sequence[str]) -> str:
    counted = Counter(place for place in places if place)
    listed = [place if count == 1 else f"{place} ({count} times)" for place, count in counted.items()]
    more = f"; and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return "; ".join(listed[:SHOWN]) + more


def missing_call(
    request: ModelRequest, miss: Miss[ModelCall], place: Place, plain: Callable[[ModelRequest], ModelRequest]
) -> Problem:
    """Return the problem of a request that is not on the tape. ``plain`` takes secrets out of what is shown."""
    if miss.uses:
        return _asked_again(f"{request.method} {request.path}", miss.uses, place)
    request = plain(request)
    recorded = nearest(request, miss.unused or miss.used, lambda call: plain(call.request))
    if recorded is None:
        return _nothing_recorded("requests to a model", place)
    return _miss("a request is not in the cassette.", recorded.number, differences(plain(recorded.request), request), place)


def missing_tool_call(
    name: str,
    arguments: JsonObject,
    miss: Miss[RecordedToolCall],
    place: Place,
    plain: Callable[[ModelRequest], ModelRequest],
    *,
    by_agent: bool,
) -> Problem:
    """Return the problem of a tool call that is not on the tape. ``plain`` takes secrets out of what is shown."""
    who = "agent" if by_agent else "verifier"
    if miss.uses:
        return _asked_again(f"tool `{name}`", miss.uses, place)
    asked = plain(tool_request(name, arguments, by_agent=by_agent))
    recorded = nearest(asked, miss.unused or miss.used, request_of_tool)
    if recorded is None:
        return _nothing_recorded(f"tool calls (the {who} called `{name}`)", place)
    lines = []
    if (recorded.turn > 0) != by_agent:
        lines.append(f"the caller: recorded {'agent' if recorded.turn else 'verifier'}, now {who}")
    if recorded.name == name:
        same = plain(tool_request(name, recorded.arguments, by_agent=by_agent))
        lines += differences(same, asked, of=f"argument of `{name}`: ")
    else:
        before, now = (shorten(json.dumps(value, ensure_ascii=False), SEEN) for value in (recorded.arguments, asked.body))
        lines.append(f"the tool: recorded {recorded.name}({before}), now {name}({now})")
    return _miss(f"a tool call of the {who} is not in the cassette.", recorded.number, lines, place)


def _miss(what: str, number: int, lines: Sequence[str], place: Place) -> Problem:
    listed = "\n            ".join(lines)
    return Problem(
        error=CassetteMiss,
        what=what,
        where=f"{place.rollout} (nearest: call {number})",
        rest=f"  cassette  {place.cassette}\n  differs   {listed}\n  fix       undo the change, or record again: {place.again}",
    )


def _asked_again(what: str, uses: int, place: Place) -> Problem:
    times = "once" if uses == 1 else f"{uses} times"
    return Problem(
        error=CassetteMiss,
        what=f"{what} was asked for more often than it is recorded.",
        where=place.rollout,
        rest=f"  expected  {times}, as in {place.cassette}\n"
        f"  seen      the very same once more: is there a retry, or a second judge question?\n"
        f"  fix       undo the change, or record again: {place.again}",
    )


def _nothing_recorded(what: str, place: Place) -> Problem:
    return Problem(
        error=CassetteMiss,
        what=f"the cassette holds no {what} for this place.",
        where=place.rollout,
        rest=f"  cassette  {place.cassette}\n  fix       undo the change, or record again: {place.again}",
    )


def no_such_rollout(recorded: int, place: Place) -> Problem:
    """Return the problem of a rollout that is one too many. ``recorded``: how many begin like it."""
    return Problem(
        error=CassetteMiss,
        what="a rollout began that is not in the cassette.",
        rest=f"  expected  {recorded} that begin so, as in {place.cassette}\n"
        f"  seen      one more: is group_size larger, or another item asked for?\n"
        f"  fix       undo the change, or record again: {place.again}",
    )


def still_waiting(seconds: float, recorded_s: float, place: Place) -> Problem:
    """Return the problem of a request that was cancelled in the recording, and is waited for in the replay."""
    return Problem(
        error=CassetteMiss,
        what="a request was given up before its answer came, and now it is waited for.",
        where=place.rollout,
        rest=f"  cassette  {place.cassette}\n"
        f"  expected  its task is cancelled, as after {recorded_s:.1f} s in the recording: there is no answer to play\n"
        f"  seen      {f'{seconds:.1f} s later it is not' if seconds else 'a client that cannot be cancelled'}\n"
        f"  fix       undo the change, or record again: {place.again}",
    )


def left_over(models: Sequence[ModelCall], tools: Sequence[RecordedToolCall], place: Place) -> Problem:
    """Return the problem of recordings that nobody asked for."""
    everything: list[ModelCall | RecordedToolCall] = [*models, *tools]
    calls = sorted(everything, key=lambda call: call.number)
    lines = [_listed(call) for call in calls[:SHOWN]]
    if len(calls) > SHOWN:
        lines.append(f"and {len(calls) - SHOWN} more")
    listed = "\n            ".join(lines)
    count = "1 recording of the cassette was" if len(calls) == 1 else f"{len(calls)} recordings of the cassette were"
    return Problem(
        error=LeftoverRecordings,
        what=f"{count} not used.",
        rest=f"  cassette  {place.cassette}\n  left over {listed}\n"
        f"  fix       record again: {place.again}; if it is meant:\n"
        f"            {place.allow}",
    )


def _listed(call: ModelCall | RecordedToolCall) -> str:
    where = f"rollout {call.rollout}" if call.rollout else "outside of any rollout"
    if isinstance(call, ModelCall):
        return f"call {call.number}, {where}: {call.request.method} {call.request.path}"
    who = "agent" if call.turn else "verifier"
    return f"call {call.number}, {where}: {who} called {call.name}({shorten(repr(call.arguments), SEEN)})"


def changed_rewards(lines: Sequence[str], place: Place) -> Problem:
    """Return the problem of rewards that are not those of the recording."""
    listed = "\n            ".join((*lines[:SHOWN], *([f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else [])))
    return Problem(
        error=RewardChanged,
        what="the same conversations were given other rewards than in the recording.",
        rest=f"  cassette  {place.cassette}\n"
        f"  rewards   {listed}\n"
        f"  fix       undo the change of compute_reward, or, if it is meant, record again: {place.again}",
    )
