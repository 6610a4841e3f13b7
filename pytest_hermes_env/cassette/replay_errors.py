"""The errors of a replay: requests and tool calls that are not in the cassette, unused recordings, changed rewards."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pytest_hermes_env.cassette.difference import differences
from pytest_hermes_env.cassette.player import Miss
from pytest_hermes_env.cassette.tape import Call, ModelCall, ModelRequest
from pytest_hermes_env.errors import CassetteMiss, LeftoverRecordings, RewardChanged, shorten
from pytest_hermes_env.failures import Problem

MAX_LISTED = 5
"""Recordings and rewards that are listed; the others are counted."""
MAX_VALUE_LENGTH = 100
"""Characters of one value in a list."""


@dataclass(frozen=True, kw_only=True)
class ReplayContext:
    """What every message of a replay mentions: the cassette, the command that records it again, and the rollout."""

    cassette: str
    record_command: str
    rollout: str = "outside of any rollout"

    def miss(self, text: str, where: str) -> Problem:
        """Return the problem of a changed request, with its fix."""
        text = f"{text}\n  fix       undo the change, or record again: {self.record_command}"
        return Problem(error=CassetteMiss, text=text, where=where)


def missing_call(miss: Miss, context: ReplayContext) -> Problem:
    """Return the problem of a request that is not in the cassette."""
    call = f"{miss.seen.method} {miss.seen.path}"
    return _missing(miss, context, "a request", call, "requests to a model", differences)


def missing_tool_call(miss: Miss, context: ReplayContext) -> Problem:
    """Return the problem of a tool call that is not in the cassette."""
    caller, name = miss.seen.method, miss.seen.path
    kind = f"tool calls (the {caller} called `{name}`)"
    return _missing(miss, context, f"a tool call of the {caller}", f"tool `{name}`", kind, _tool_differences)


def _tool_differences(recorded: ModelRequest, seen: ModelRequest) -> list[str]:
    lines = [] if recorded.method == seen.method else [f"the caller: recorded {recorded.method}, now {seen.method}"]
    if recorded.path == seen.path:
        return lines + differences(replace(recorded, method=seen.method), seen, of=f"argument of `{seen.path}`: ")
    bodies = (recorded.body, seen.body)
    before, now = (shorten(json.dumps(body, ensure_ascii=False), MAX_VALUE_LENGTH) for body in bodies)
    return [*lines, f"the tool: recorded {recorded.path}({before}), now {seen.path}({now})"]


def _missing(
    miss: Miss,
    context: ReplayContext,
    what: str,
    call: str,
    kind: str,
    differ: Callable[[ModelRequest, ModelRequest], list[str]],
) -> Problem:
    if miss.uses:
        return context.miss(
            f"{call} was repeated more often than it was recorded.\n"
            f"  expected  {'once' if miss.uses == 1 else f'{miss.uses} times'}, as in {context.cassette}\n"
            "  seen      the same call once more: is there a retry, or a second judge question?",
            context.rollout,
        )
    if miss.nearest is None or miss.recorded is None:
        return context.miss(f"the cassette has no {kind} here.\n  cassette  {context.cassette}", context.rollout)
    listed = "\n            ".join(differ(miss.recorded, miss.seen))
    text = f"{what} is not in the cassette.\n  cassette  {context.cassette}\n  differs   {listed}"
    return context.miss(text, f"{context.rollout} (nearest: call {miss.nearest.number})")


def missing_rollout(recorded: int, context: ReplayContext) -> Problem:
    """Return the problem of a rollout that is not in the cassette. ``recorded``: how many begin like it."""
    return context.miss(
        "a rollout began that is not in the cassette.\n"
        f"  expected  {recorded} with this beginning, as in {context.cassette}\n"
        "  seen      one more: is group_size larger, or is it another item?",
        where="",
    )


def waiting_for_cancelled_request(seconds: float, recorded_s: float, context: ReplayContext) -> Problem:
    """Return the problem of a request that was cancelled in the recording, but not in the replay."""
    return context.miss(
        "a request was cancelled before its answer arrived in the recording, but not in this run.\n"
        f"  cassette  {context.cassette}\n"
        f"  expected  its task is cancelled, as after {recorded_s:.1f} s in the recording: no answer was recorded\n"
        f"  seen      {f'not cancelled after {seconds:.1f} s' if seconds else 'a client that cannot be cancelled'}",
        context.rollout,
    )


def unused_recordings(calls: Sequence[Call], context: ReplayContext) -> Problem:
    """Return the problem of recordings that the replay did not use."""
    count = "1 recording of the cassette was" if len(calls) == 1 else f"{len(calls)} recordings of the cassette were"
    return Problem(
        error=LeftoverRecordings,
        text=f"{count} not used.\n"
        f"  cassette  {context.cassette}\n"
        f"  unused    {_listed([_description(call) for call in calls])}\n"
        f"  fix       record again: {context.record_command}; if this is intended:\n"
        "            @pytest.mark.hermes_cassette(allow_leftovers=True)",
    )


def _description(call: Call) -> str:
    where = f"rollout {call.rollout}" if call.rollout else "outside of any rollout"
    if isinstance(call, ModelCall):
        return f"call {call.number}, {where}: {call.request.method} {call.request.path}"
    return f"call {call.number}, {where}: {call.request.method} called {call.name}({shorten(repr(call.arguments), MAX_VALUE_LENGTH)})"


def changed_rewards(lines: Sequence[str], context: ReplayContext) -> Problem:
    """Return the problem of rewards that differ from the recorded ones."""
    return Problem(
        error=RewardChanged,
        text="the rewards of the same conversations differ from the recording.\n"
        f"  cassette  {context.cassette}\n"
        f"  rewards   {_listed(lines)}\n"
        f"  fix       undo the change of compute_reward, or, if it is intended, record again: {context.record_command}",
    )


def _listed(lines: Sequence[str]) -> str:
    more = [f"and {len(lines) - MAX_LISTED} more"] if len(lines) > MAX_LISTED else []
    return "\n            ".join((*lines[:MAX_LISTED], *more))
