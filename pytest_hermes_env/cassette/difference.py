"""Finds the recording nearest to a request, and describes the differences.

Place in the flow: the lines become part of a `CassetteMiss` message.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeGuard

from pytest_hermes_env.cassette.repeats import common_prefix
from pytest_hermes_env.cassette.tape import Call, ModelRequest
from pytest_hermes_env.types import JsonValue

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
