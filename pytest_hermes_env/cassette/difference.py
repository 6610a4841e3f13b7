"""Finds the recording nearest to a request, and describes the differences.

Place in the flow: the lines become part of a `CassetteMiss` message.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from pytest_hermes_env.cassette.tape import Call, ModelRequest
from pytest_hermes_env.types import JsonValue

__all__ = ["differences", "nearest"]

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


def nearest(
    seen: ModelRequest, calls: Sequence[Call], readable: Callable[[ModelRequest], ModelRequest]
) -> tuple[Call, ModelRequest]:
    """Return the recording with the fewest differences, the first of equal ones, and its readable request."""
    candidates = [(call, readable(call.request)) for call in calls[:MAX_CANDIDATES]]
    return min(candidates, key=lambda candidate: _distance(seen, candidate[1]))


def _distance(seen: ModelRequest, recorded: ModelRequest) -> tuple[int, int, int]:
    """Return the distance of two requests: by endpoint, then by messages, then by fields."""
    one, other = _object(seen.body), _object(recorded.body)
    mine, theirs = _messages(one), _messages(other)
    shared = sum(_key(left) == _key(right) for left, right in zip(mine, theirs, strict=False))
    fields = sum(_key(one.get(name)) != _key(other.get(name)) for name in {*one, *other} - {"messages"})
    return (seen.path != recorded.path) + (seen.method != recorded.method), max(len(mine), len(theirs)) - shared, fields


def differences(recorded: ModelRequest, seen: ModelRequest, *, of: str = "") -> list[str]:
    """Return one line per difference; ``of`` is the prefix of field names."""
    lines = _Lines(of)
    if (recorded.method, recorded.path) != (seen.method, seen.path):
        lines.values("the endpoint", f"{recorded.method} {recorded.path}", f"{seen.method} {seen.path}")
    if isinstance(recorded.body, dict) and isinstance(seen.body, dict):
        for name in dict.fromkeys((*recorded.body, *seen.body)):
            _field(lines, name, recorded.body.get(name), seen.body.get(name), recorded.body, seen.body)
    elif _key(recorded.body) != _key(seen.body):
        lines.values("the body", recorded.body, seen.body)
    rest = len(lines.lines) - MAX_DIFFERENCES
    return lines.lines if rest <= 0 else [*lines.lines[:MAX_DIFFERENCES], f"and {rest} more"]


class _Lines:
    def __init__(self, of: str) -> None:
        self.lines: list[str] = []
        self._of = of

    def name(self, field: str) -> str:
        """Return the name of a body field in messages."""
        return f"{self._of}{FIELD_NAMES.get(field, field)}"

    def values(self, what: str, recorded: JsonValue, seen: JsonValue) -> None:
        """Add a line with both values, shortened around their difference."""
        before, now = _excerpts(recorded, seen)
        self.lines.append(f"{what}: recorded {before}, now {now}")

    def only(self, what: str, *, in_recording: bool) -> None:
        """Add a line about a value that only one side has."""
        self.lines.append(f"{what}: {'recorded, now missing' if in_recording else 'not recorded, now present'}")


def _field(
    lines: _Lines, name: str, recorded: JsonValue, seen: JsonValue, body: dict[str, JsonValue], now: dict[str, JsonValue]
) -> None:
    if _key(recorded) == _key(seen) and (name in body) == (name in now):
        return
    if name == "messages":
        _conversation(lines, _messages(body), _messages(now))
    elif name == "tools":
        _tools(lines, _by_name(recorded), _by_name(seen))
    elif _token_ids(recorded) and _token_ids(seen):
        _tokens(lines, lines.name(name), _token_ids(recorded), _token_ids(seen))
    else:
        lines.values(lines.name(name), recorded if name in body else ABSENT, seen if name in now else ABSENT)


# ---------------------------------------------------------------------- messages


def _conversation(lines: _Lines, recorded: list[JsonValue], seen: list[JsonValue]) -> None:
    for index, (one, other) in enumerate(zip(recorded, seen, strict=False)):
        if _key(one) != _key(other):
            _message(lines, _name_of(index, seen), _object(one), _object(other))
    if len(recorded) != len(seen):
        longer, which = (recorded, True) if len(recorded) > len(seen) else (seen, False)
        for index in range(min(len(recorded), len(seen)), len(longer)):
            lines.only(f"{_name_of(index, longer)} {_short(_object(longer[index]).get('content'))}", in_recording=which)


def _message(lines: _Lines, what: str, recorded: dict[str, JsonValue], seen: dict[str, JsonValue]) -> None:
    for name in dict.fromkeys((*recorded, *seen)):
        one, other = recorded.get(name), seen.get(name)
        if _key(one) == _key(other) and (name in recorded) == (name in seen):
            continue
        shown = what if name == "content" else f"{what}, {name}"
        lines.values(shown, one if name in recorded else ABSENT, other if name in seen else ABSENT)


def _name_of(index: int, messages: list[JsonValue]) -> str:
    """Return the name of a message: the prompt, the system prompt, or its number from 1 and its role."""
    message = _object(messages[index])
    role = message.get("role")
    if role == "system":
        return "the system prompt" if index == 0 else f"message {index + 1} (system)"
    if role == "user":
        first = next((place for place, each in enumerate(messages) if _object(each).get("role") == "user"), index)
        return "the prompt" if first == index else f"message {index + 1} (user)"
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


# ---------------------------------------------------------------------- tools and tokens


def _tools(lines: _Lines, recorded: dict[str, JsonValue], seen: dict[str, JsonValue]) -> None:
    for name in dict.fromkeys((*recorded, *seen)):
        if name not in seen:
            lines.only(f"tool `{name}`", in_recording=True)
        elif name not in recorded:
            lines.only(f"tool `{name}`", in_recording=False)
        elif _key(recorded[name]) != _key(seen[name]):
            path, one, other = _inside(recorded[name], seen[name])
            lines.values(f"the schema of tool `{name}`{f', {path}' if path else ''}", one, other)
    if list(recorded) != list(seen) and set(recorded) == set(seen):
        lines.values("the order of the tools", ", ".join(recorded), ", ".join(seen))


def _inside(recorded: JsonValue, seen: JsonValue, path: str = "") -> tuple[str, JsonValue, JsonValue]:
    """Return the dotted path of the first difference within two values, with both values there."""
    if isinstance(recorded, dict) and isinstance(seen, dict):
        for name in dict.fromkeys((*recorded, *seen)):
            one, other = recorded.get(name, ABSENT), seen.get(name, ABSENT)
            if _key(one) != _key(other):
                return _inside(one, other, f"{path}.{name}".removeprefix("."))
    if isinstance(recorded, list) and isinstance(seen, list) and len(recorded) == len(seen):
        for index, (one, other) in enumerate(zip(recorded, seen, strict=True)):
            if _key(one) != _key(other):
                return _inside(one, other, f"{path}[{index}]")
    return path.removeprefix("function."), recorded, seen


def _by_name(tools: JsonValue) -> dict[str, JsonValue]:
    listed = tools if isinstance(tools, list) else []
    return {str(_object(_object(tool).get("function", tool)).get("name", "?")): tool for tool in listed}


def _token_ids(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, dict):
        value = value.get("prompt_token_ids")
    return value if isinstance(value, list) and value and all(isinstance(token, int) for token in value) else []


def _tokens(lines: _Lines, what: str, recorded: list[JsonValue], seen: list[JsonValue]) -> None:
    pairs = enumerate(zip(recorded, seen, strict=False))
    first = next((index for index, (one, other) in pairs if one != other), min(len(recorded), len(seen)))
    start = max(0, first - 2)

    def excerpt(tokens: list[JsonValue]) -> str:
        return f"…{tokens[start : first + 6]}… of {len(tokens):,}"

    lines.lines.append(f"{what}, token {first + 1}: recorded {excerpt(recorded)}, now {excerpt(seen)}")


# ---------------------------------------------------------------------- values


def _messages(body: dict[str, JsonValue]) -> list[JsonValue]:
    messages = body.get("messages")
    return messages if isinstance(messages, list) else []


def _object(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _key(value: JsonValue) -> str:
    return json.dumps(value, sort_keys=True)


def _shown(value: JsonValue) -> str:
    return value if value == ABSENT else json.dumps(value, ensure_ascii=False)


def _excerpts(recorded: JsonValue, seen: JsonValue) -> tuple[str, str]:
    """Return both values as JSON, shortened around their first difference."""
    one, other = _shown(recorded), _shown(seen)
    pairs = enumerate(zip(one, other, strict=False))
    common = next((index for index, (left, right) in pairs if left != right), min(len(one), len(other)))
    start = max(0, common - EXCERPT_LEAD) if max(len(one), len(other)) > EXCERPT_LENGTH else 0
    return _cut(one, start), _cut(other, start)


def _cut(text: str, start: int) -> str:
    end = start + EXCERPT_LENGTH
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def _short(value: JsonValue) -> str:
    return _cut(_shown(value), 0)
