"""Says in words what differs between a request and the recording that is nearest to it.

Place in the flow: a session makes the text of a `CassetteMiss` of these lines.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TypeVar

from pytest_hermes_env.cassette.tape import ModelRequest
from pytest_hermes_env.types import JsonValue

__all__ = ["differences", "nearest"]

SHOWN = 80
"""Characters of a text that are shown around its first difference."""
LEAD = 24
"""How many of them stand before the difference."""
MOST = 5
"""Differences that are named; the others are counted."""
CANDIDATES = 200
"""Recordings that are compared with a request, at most."""

THE = {"model": "the model", "temperature": "the temperature", "tool_choice": "the tool choice", "prompt": "the prompt"}
ABSENT = "<nothing>"

Call = TypeVar("Call")


def nearest(seen: ModelRequest, recorded: Sequence[Call], request_of: Callable[[Call], ModelRequest]) -> Call | None:
    """Return the recording with the fewest differences; of equals the first."""
    return min(recorded[:CANDIDATES], key=lambda call: _distance(seen, request_of(call)), default=None)


def _distance(seen: ModelRequest, recorded: ModelRequest) -> tuple[int, int, int]:
    """Return how far two requests are from each other: by endpoint, then by messages, then by fields."""
    one, other = _object(seen.body), _object(recorded.body)
    mine, theirs = _messages(one), _messages(other)
    shared = sum(_key(left) == _key(right) for left, right in zip(mine, theirs, strict=False))
    fields = sum(_key(one.get(name)) != _key(other.get(name)) for name in {*one, *other} - {"messages"})
    return (seen.path != recorded.path) + (seen.method != recorded.method), max(len(mine), len(theirs)) - shared, fields


def differences(recorded: ModelRequest, seen: ModelRequest, *, of: str = "") -> list[str]:
    """Return one line for each thing that differs; ``of`` stands before the names of fields."""
    said = _Lines(of)
    if (recorded.method, recorded.path) != (seen.method, seen.path):
        said.values("the endpoint", f"{recorded.method} {recorded.path}", f"{seen.method} {seen.path}")
    if isinstance(recorded.body, dict) and isinstance(seen.body, dict):
        for name in dict.fromkeys((*recorded.body, *seen.body)):
            _field(said, name, recorded.body.get(name), seen.body.get(name), recorded.body, seen.body)
    elif _key(recorded.body) != _key(seen.body):
        said.values("the body", recorded.body, seen.body)
    rest = len(said.lines) - MOST
    return said.lines if rest <= 0 else [*said.lines[:MOST], f"and {rest} more"]


class _Lines:
    def __init__(self, of: str) -> None:
        self.lines: list[str] = []
        self._of = of

    def name(self, field: str) -> str:
        """Return what a field of the body is called."""
        return f"{self._of}{THE.get(field, field)}"

    def values(self, what: str, recorded: JsonValue, seen: JsonValue) -> None:
        """Add a line with both sides, shortened to where they differ."""
        before, now = _excerpts(recorded, seen)
        self.lines.append(f"{what}: recorded {before}, now {now}")

    def only(self, what: str, *, in_recording: bool) -> None:
        """Add a line about what one side has alone."""
        self.lines.append(f"{what}: {'recorded, not there now' if in_recording else 'not recorded, there now'}")


def _field(
    said: _Lines, name: str, recorded: JsonValue, seen: JsonValue, body: dict[str, JsonValue], now: dict[str, JsonValue]
) -> None:
    if _key(recorded) == _key(seen) and (name in body) == (name in now):
        return
    if name == "messages":
        _conversation(said, _messages(body), _messages(now))
    elif name == "tools":
        _tools(said, _by_name(recorded), _by_name(seen))
    elif _token_ids(recorded) and _token_ids(seen):
        _tokens(said, said.name(name), _token_ids(recorded), _token_ids(seen))
    else:
        said.values(said.name(name), recorded if name in body else ABSENT, seen if name in now else ABSENT)


# ---------------------------------------------------------------------- messages


def _conversation(said: _Lines, recorded: list[JsonValue], seen: list[JsonValue]) -> None:
    for index, (one, other) in enumerate(zip(recorded, seen, strict=False)):
        if _key(one) != _key(other):
            _message(said, _name_of(index, seen), _object(one), _object(other))
    if len(recorded) != len(seen):
        longer, which = (recorded, True) if len(recorded) > len(seen) else (seen, False)
        for index in range(min(len(recorded), len(seen)), len(longer)):
            said.only(f"{_name_of(index, longer)} {_short(_object(longer[index]).get('content'))}", in_recording=which)


def _message(said: _Lines, what: str, recorded: dict[str, JsonValue], seen: dict[str, JsonValue]) -> None:
    for name in dict.fromkeys((*recorded, *seen)):
        one, other = recorded.get(name), seen.get(name)
        if _key(one) == _key(other) and (name in recorded) == (name in seen):
            continue
        shown = what if name == "content" else f"{what}, {name}"
        said.values(shown, one if name in recorded else ABSENT, other if name in seen else ABSENT)


def _name_of(index: int, messages: list[JsonValue]) -> str:
    """Return what a message is: the prompt, the system prompt, or its number from 1 and its role."""
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


def _tools(said: _Lines, recorded: dict[str, JsonValue], seen: dict[str, JsonValue]) -> None:
    for name in dict.fromkeys((*recorded, *seen)):
        if name not in seen:
            said.only(f"tool `{name}`", in_recording=True)
        elif name not in recorded:
            said.only(f"tool `{name}`", in_recording=False)
        elif _key(recorded[name]) != _key(seen[name]):
            path, one, other = _inside(recorded[name], seen[name])
            said.values(f"the schema of tool `{name}`{f', {path}' if path else ''}", one, other)
    if list(recorded) != list(seen) and set(recorded) == set(seen):
        said.values("the order of the tools", ", ".join(recorded), ", ".join(seen))


def _inside(recorded: JsonValue, seen: JsonValue, path: str = "") -> tuple[str, JsonValue, JsonValue]:
    """Return the first place within two values where they differ, as a dotted path, with both values there."""
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


def _tokens(said: _Lines, what: str, recorded: list[JsonValue], seen: list[JsonValue]) -> None:
    pairs = enumerate(zip(recorded, seen, strict=False))
    first = next((index for index, (one, other) in pairs if one != other), min(len(recorded), len(seen)))
    start = max(0, first - 2)

    def excerpt(tokens: list[JsonValue]) -> str:
        return f"…{tokens[start : first + 6]}… of {len(tokens):,}"

    said.lines.append(f"{what}, token {first + 1}: recorded {excerpt(recorded)}, now {excerpt(seen)}")


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
    """Return both sides as JSON, cut so that their first difference is in sight."""
    one, other = _shown(recorded), _shown(seen)
    pairs = enumerate(zip(one, other, strict=False))
    common = next((index for index, (left, right) in pairs if left != right), min(len(one), len(other)))
    start = max(0, common - LEAD) if max(len(one), len(other)) > SHOWN else 0
    return _cut(one, start), _cut(other, start)


def _cut(text: str, start: int) -> str:
    end = start + SHOWN
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def _short(value: JsonValue) -> str:
    return _cut(_shown(value), 0)
