"""The notation of a cassette: objects marked with ``~`` for values that JSON cannot represent, and for readable texts.

======================================  ============================================================================
``{"~lines": [...]}``                   a text of several lines
``{"~json": value}`` (and its styles)   a text that is JSON itself: the result of a tool, the arguments of a call
``{"~sse": [...]}`` (and its styles)    events of a stream; an object means ``data: <object>``, a text itself
``{"~pairs": [[key, value], ...]}``     an object with keys that begin with ``~``
``{"~float": "nan"}``                   numbers that JSON does not have
======================================  ============================================================================
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from pytest_hermes_env.redaction.encodings import JSON_STYLES
from pytest_hermes_env.types import JsonObject, JsonValue

MARK = "~"
MIN_LINES_LENGTH = 40
MIN_JSON_LENGTH = 60
MAX_DEPTH = 60
"""Levels of a text that is shown as JSON: packing one walks over them."""
_DATA, _END = "data: ", "\n\n"

dumped = JSON_STYLES[""]
"""Returns the JSON text of a value, without ASCII escapes. Raises: ValueError, RecursionError."""


def packed(value: JsonValue) -> JsonValue:
    """Return ``value`` in the notation of a cassette; `UNPACKERS` reverse it. Raises: nested too deeply → RecursionError."""
    if isinstance(value, str):
        return _packed_text(value)
    if isinstance(value, list):
        return value if is_plain_numbers(value) else _packed_events(value) or [packed(item) for item in value]
    if isinstance(value, dict):
        if any(key.startswith(MARK) for key in value):
            return {"~pairs": [[packed(key), packed(item)] for key, item in value.items()]}
        return {key: packed(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"~float": str(value)}
    return value


def is_plain_numbers(value: list[JsonValue]) -> bool:
    """Return whether a list contains only JSON numbers; fast for lists of many thousands."""
    kinds = set(map(type, value))
    if kinds == {int}:
        return True
    return bool(kinds) and kinds <= {int, float} and not any(type(item) is float and not math.isfinite(item) for item in value)


def _packed_text(text: str) -> JsonValue:
    if len(text) > MIN_JSON_LENGTH and text[0] in "{[" and text[-1] in "}]":
        style, value = _as_json(text)
        if style is not None:
            return {f"~json{style}": packed(value)}
    if len(text) > MIN_LINES_LENGTH and "\n" in text:
        return {"~lines": list(text.split("\n"))}
    return text


def _as_json(text: str) -> tuple[str | None, JsonValue]:
    """Return the style that reproduces the JSON text exactly, and its value; (None, None) if there is none."""
    try:
        value = json.loads(text)
        if text.count("[") + text.count("{") > MAX_DEPTH and _is_deeper(value, MAX_DEPTH):
            return None, None  # some Python versions parse more levels than they can traverse
        for style, write in JSON_STYLES.items():
            if write(value) == text:
                return style, value
    except (ValueError, RecursionError):  # not JSON, or too many digits or levels for Python: stays a text
        pass
    return None, None


def _is_deeper(value: JsonValue, levels: int) -> bool:
    """Return whether lists and objects are nested more than ``levels`` deep, without recursion."""
    layer = [value]
    for _ in range(levels):
        containers = [item for item in layer if isinstance(item, (list, dict))]
        layer = [part for item in containers for part in (item.values() if isinstance(item, dict) else item)]
        if not layer:
            return False
    return any(isinstance(item, (list, dict)) for item in layer)


def _packed_events(items: list[JsonValue]) -> JsonObject | None:
    """Return the events of a stream with their data as values; None for any other list."""
    if not all(isinstance(item, str) for item in items):
        return None
    read = [_event(item) for item in items if isinstance(item, str)]
    styles = [style for style, _ in read if style is not None]
    if not styles:
        return None
    common = max(sorted(set(styles)), key=styles.count)
    events = [packed(value) if style == common else item for item, (style, value) in zip(items, read, strict=True)]
    return {f"~sse{common}": events}


def _event(text: str) -> tuple[str | None, JsonValue]:
    if not (text.startswith(_DATA + "{") and text.endswith("}" + _END)):
        return None, None
    return _as_json(text[len(_DATA) : -len(_END)])


def _unpacked_events(write: Callable[[JsonValue], str]) -> Callable[[list[JsonValue]], JsonValue]:
    return lambda events: [event if isinstance(event, str) else f"{_DATA}{write(event)}{_END}" for event in events]


def _pair(pair: Any) -> tuple[str, JsonValue]:
    if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):  # noqa: PLR2004
        raise TypeError("expected lists of a key and a value")
    return pair[0], pair[1]


LISTS = ("~lines", "~pairs", "~sse")
"""Beginnings of the marks whose value is a list."""
UNPACKERS: dict[str, Callable[[Any], JsonValue]] = {
    "~lines": "\n".join,
    "~pairs": lambda pairs: dict(map(_pair, pairs)),
    "~float": lambda text: float(str.strip(text)),
    **{f"~json{style}": write for style, write in JSON_STYLES.items()},
    **{f"~sse{style}": _unpacked_events(write) for style, write in JSON_STYLES.items()},
}
"""The function that reverses each mark."""
