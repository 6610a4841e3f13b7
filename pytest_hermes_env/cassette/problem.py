"""The texts of what goes wrong in a replay, and one error out of many problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

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
]

SHOWN = 5
"""Recordings that are listed; the others are counted."""
SEEN = 100
"""Characters of one value in a list."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a problem is: the cassette as the user knows it, the rollout in words, and the command that records it anew."""

    cassette: str
    again: str
    rollout: str = "outside of any rollout"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that went wrong: the error class, and its text."""

    error: type[HermesEnvError]
    text: str

    def exception(self) -> HermesEnvError:
        """Return the problem as an exception of its class."""
        return self.error(self.text)


def as_error(problems: Iterable[Problem]) -> HermesEnvError | None:
    """Return one error for all the problems, of the class of the first; None when there are none."""
    counted = Counter(problems)
    if not counted:
        return None
    first = next(iter(counted))
    if len(counted) == 1:
        return first.exception()
    entries = (
        f"\n\n{number}. {problem.error.__name__}: {problem.text}".replace("\n  ", "\n     ")
        for number, problem in enumerate(counted, start=1)
    )
    return first.error(f"the replay met {len(counted)} problems." + "".join(entries))


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
    lines = differences(plain(recorded.request), request)
    return _miss("a request is not in the cassette.", f"call {recorded.number} of {place.cassette}", lines, place)


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
    asked = plain(tool_request(name, arguments, by_agent=by_agent))
    if miss.uses:
        return _asked_again(f"tool `{name}`", miss.uses, place)
    recorded = nearest(asked, miss.unused or miss.used, request_of_tool)
    if recorded is None:
        return _nothing_recorded(f"tool calls (the {who} called `{name}`)", place)
    lines = []
    if recorded.name != name:
        lines.append(f"the tool: recorded `{recorded.name}`, now `{name}`")
    if (recorded.turn > 0) != by_agent:
        lines.append(f"the caller: recorded {'agent' if recorded.turn else 'verifier'}, now {who}")
    same = plain(tool_request(name, recorded.arguments, by_agent=by_agent))
    lines += [line.replace("the field ", f"argument of `{name}`, ") for line in differences(same, asked)]
    return _miss(
        f"a tool call of the {who} is not in the cassette.", f"call {recorded.number} of {place.cassette}", lines, place
    )


def _miss(what: str, where: str, lines: Sequence[str], place: Place) -> Problem:
    listed = "\n            ".join(lines)
    return Problem(
        error=CassetteMiss,
        text=f"{what}\n  rollout   {place.rollout}\n  nearest   {where}\n  differs   {listed}\n"
        f"  fix       undo the change, or record again: {place.again}",
    )


def _asked_again(what: str, uses: int, place: Place) -> Problem:
    times = "once" if uses == 1 else f"{uses} times"
    return Problem(
        error=CassetteMiss,
        text=f"{what} was asked for more often than it is recorded.\n  rollout   {place.rollout}\n"
        f"  expected  {times}, as in {place.cassette}\n"
        f"  seen      the very same once more: is there a retry, or a second judge question?\n"
        f"  fix       undo the change, or record again: {place.again}",
    )


def _nothing_recorded(what: str, place: Place) -> Problem:
    return Problem(
        error=CassetteMiss,
        text=f"the cassette holds no {what} for this place.\n  rollout   {place.rollout}\n  cassette  {place.cassette}\n"
        f"  fix       undo the change, or record again: {place.again}",
    )


def no_such_rollout(recorded: int, place: Place) -> Problem:
    """Return the problem of a rollout that is one too many."""
    return Problem(
        error=CassetteMiss,
        text=f"a rollout began that is not in the cassette.\n  expected  {recorded} rollouts, as in {place.cassette}\n"
        f"  seen      one more: is group_size larger, or another item asked for?\n"
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
        text=f"{count} not used.\n  cassette  {place.cassette}\n  left over {listed}\n"
        f"  fix       record again: {place.again}; if the test means it:\n"
        "            @pytest.mark.hermes_cassette(allow_leftovers=True)",
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
        text=f"the same conversations were given other rewards than in the recording.\n  cassette  {place.cassette}\n"
        f"  rewards   {listed}\n"
        f"  fix       undo the change of compute_reward, or, if it is meant, record again: {place.again}",
    )
