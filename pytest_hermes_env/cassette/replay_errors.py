"""The errors of a replay: requests and tool calls that are not in the cassette, unused recordings, changed rewards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeGuard

from pytest_hermes_env.cassette.repeats import common_prefix
from pytest_hermes_env.cassette.tape import Call, ModelCall, ModelRequest
from pytest_hermes_env.errors import CassetteMiss, LeftoverRecordings, RewardChanged, shorten
from pytest_hermes_env.failures import Problem
from pytest_hermes_env.types import JsonValue

MAX_LISTED = 5
"""Recordings and rewards that are listed; the others are counted."""
MAX_VALUE_LENGTH = 100
"""Characters of one value in a list."""
EXCERPT_LENGTH = 80
"""Characters of a text that a message shows around its first difference."""
EXCERPT_LEAD = 24
"""How many of them precede the difference."""
MAX_DIFFERENCES = 5
"""Differences that are listed; the others are counted."""
MAX_CANDIDATES = 200
"""Recordings that are compared with a request."""

FIELD_NAMES = {"model": "the model", "temperature": "the temperature", "tool_choice": "the tool choice", "prompt": "the prompt"}
ABSENT = "<nothing>"

Change: TypeAlias = tuple[tuple[str, ...], JsonValue, JsonValue]


@dataclass(frozen=True, kw_only=True)
class Miss:
    """The call is not on the tape, or all its recordings are used; ``uses`` is their number.

    ``nearest`` is the most similar recording of the rollout, an unused one if there is any; None if it has no such calls. ``seen`` and
    ``recorded``, its request, are for messages: without secrets and without values that change in each run.
    """

    seen: ModelRequest
    uses: int = 0
    nearest: Call | None = None
    recorded: ModelRequest | None = None


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


# ---------------------------------------------------------------------- the nearest recording, and how a request differs from it


def nearest(seen: ModelRequest, calls: Sequence[Call], readable: Callable[[ModelRequest], ModelRequest]) -> Call:
    """Return the recording whose readable request has the fewest differences, the first of equal ones."""
    return min(calls[:MAX_CANDIDATES], key=lambda call: _distance(seen, readable(call.request)))


def _distance(seen: ModelRequest, recorded: ModelRequest) -> tuple[int, int, int]:
    """Return the distance of two requests: by endpoint, then by messages, then by fields."""
    one, other = _object(seen.body), _object(recorded.body)
    mine, theirs = _messages(one), _messages(other)
    shared = sum(_key(left) == _key(right) for left, right in zip(mine, theirs, strict=False))
    fields = sum(_key(one.get(name)) != _key(other.get(name)) for name in {*one, *other} - {"messages"})
    return (seen.path != recorded.path) + (seen.method != recorded.method), max(len(mine), len(theirs)) - shared, fields


def differences(recorded: ModelRequest, seen: ModelRequest, *, of: str = "") -> list[str]:
    """Return one line per difference; ``of`` is the prefix of field names."""
    before, now = _messages(_object(recorded.body)), _messages(_object(seen.body))
    messages = [*now, *before[len(now) :]]
    names = [_name_of(index, messages) for index in range(len(messages))]
    changes = _changes(_parts(recorded, names, of), _parts(seen, names, of))
    lines = [_line(name, inner, *values) for (name, *inner), *values in changes]
    rest = len(lines) - MAX_DIFFERENCES
    return lines if rest <= 0 else [*lines[:MAX_DIFFERENCES], f"and {rest} more"]


def _parts(request: ModelRequest, message_names: list[str], of: str) -> dict[str, JsonValue]:
    """Return the parts of a request by their names in messages."""
    parts: dict[str, JsonValue] = {"the endpoint": f"{request.method} {request.path}"}
    if not isinstance(request.body, dict):
        return parts | {"the body": request.body}
    for field, value in request.body.items():
        if field == "messages" and isinstance(value, list):
            parts |= zip(message_names, value, strict=False)
        elif field == "tools" and isinstance(value, list):
            tools = {str(_object(function := _object(tool).get("function", tool)).get("name", "?")): function for tool in value}
            parts["the tools"] = ", ".join(tools)
            parts |= {f"the schema of tool `{name}`": function for name, function in tools.items()}
        else:
            ids = _object(value).get("prompt_token_ids")
            parts[f"{of}{FIELD_NAMES.get(field, field)}"] = ids if _is_ids(ids) else value
    return parts


def _changes(recorded: JsonValue, seen: JsonValue, path: tuple[str, ...] = ()) -> Iterator[Change]:
    """Yield the path and both values of each difference within two values."""
    if _key(recorded) == _key(seen):
        return
    if isinstance(recorded, dict) and isinstance(seen, dict):
        for name in dict.fromkeys((*recorded, *seen)):
            yield from _changes(recorded.get(name, ABSENT), seen.get(name, ABSENT), (*path, name))
    elif isinstance(recorded, list) and isinstance(seen, list) and len(recorded) == len(seen) and not _is_ids(recorded):
        for index, (one, other) in enumerate(zip(recorded, seen, strict=True)):
            yield from _changes(one, other, (*path, f"[{index}]"))
    else:
        yield path, recorded, seen


def _line(name: str, inner: list[str], recorded: JsonValue, seen: JsonValue) -> str:
    """Return a line about one difference, with both values shortened around it."""
    path = ".".join(inner).replace(".[", "[")
    what = name if path in {"", "content"} else f"{name}, {path}"
    if _is_ids(recorded) and _is_ids(seen):
        first = common_prefix(recorded, seen)
        start = max(0, first - 2)
        before, now = (f"…{ids[start : first + 6]}… of {len(ids):,}" for ids in (recorded, seen))
        return f"{what}, token {first + 1}: recorded {before}, now {now}"
    one, other = (value if value == ABSENT else json.dumps(value, ensure_ascii=False) for value in (recorded, seen))
    start = max(0, common_prefix(one, other) - EXCERPT_LEAD) if max(len(one), len(other)) > EXCERPT_LENGTH else 0
    return f"{what}: recorded {_cut(one, start)}, now {_cut(other, start)}"


def _name_of(index: int, messages: list[JsonValue]) -> str:
    """Return the name of a message: the prompt, the system prompt, or its number from 1 and its role."""
    message = _object(messages[index])
    role = message.get("role")
    if role == "system" and index == 0:
        return "the system prompt"
    if role == "user" and not any(_object(earlier).get("role") == "user" for earlier in messages[:index]):
        return "the prompt"
    if role == "tool":
        return f"message {index + 1} (result of `{_tool_of(messages[:index], message.get('tool_call_id'))}`)"
    return f"message {index + 1} ({role})"


def _tool_of(messages: list[JsonValue], call_id: JsonValue) -> str:
    for message in reversed(messages):
        calls = _object(message).get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            if _object(call).get("id") == call_id:
                return str(_object(_object(call).get("function")).get("name"))
    return "unknown tool"


# ---------------------------------------------------------------------- values


def _messages(body: dict[str, JsonValue]) -> list[JsonValue]:
    messages = body.get("messages")
    return messages if isinstance(messages, list) else []


def _object(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _is_ids(value: JsonValue) -> TypeGuard[list[JsonValue]]:
    return isinstance(value, list) and bool(value) and all(isinstance(token, int) for token in value)


def _key(value: JsonValue) -> str:
    return json.dumps(value, sort_keys=True)


def _cut(text: str, start: int) -> str:
    end = start + EXCERPT_LENGTH
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
