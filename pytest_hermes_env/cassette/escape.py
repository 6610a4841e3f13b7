"""Values as a cassette writes them: what JSON cannot say, and texts that a reviewer wants to read, as objects marked with ``~``.

======================================  ============================================================================
``{"~lines": [...]}``                   a text of several lines
``{"~json": value}`` (and its styles)   a text that is itself JSON: the result of a tool, the arguments of a call
``{"~sse": [...]}`` (and its styles)    events of a stream; an object stands for ``data: <object>``, a text for itself
``{"~joined": [...]}``                  a text in pieces: halves of surrogate pairs that JSON would join to one character
``{"~pairs": [[key, value], ...]}``     an object with keys that JSON, or this notation, would read as something else
``{"~float": "nan"}``                   numbers that JSON does not have
``{"~int": "0x..."}``                   integers with more digits than Python reads
``{"~deep": text}``                     what is nested so deeply that it would not fit on a page: as JSON text
======================================  ============================================================================
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable

from pytest_hermes_env.types import JsonObject, JsonValue

__all__ = ["MARK", "UNPACKERS", "dumped", "dumped_like", "is_plain_numbers", "packed"]

MARK = "~"
LINES_FROM = 40
JSON_FROM = 60
DEEPEST = 60
BIGGEST_INT = 10**1000
_PAIR = re.compile("[\ud800-\udbff](?=[\udc00-\udfff])")
_STYLES: dict[str, Callable[[JsonValue], str]] = {
    "": json.JSONEncoder(ensure_ascii=False).encode,
    "_ascii": json.JSONEncoder().encode,
    "_compact": json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode,
    "_compact_ascii": json.JSONEncoder(separators=(",", ":")).encode,
}
_DATA, _END = "data: ", "\n\n"

dumped = _STYLES[""]
"""The JSON text of a value, each character as itself. Raises ValueError, RecursionError."""


def dumped_like(text: str, value: JsonValue, other: JsonValue) -> str:
    """Return ``other`` as JSON in the style in which ``text`` says ``value``."""
    return next((write for write in _STYLES.values() if write(value) == text), dumped)(other)


def packed(value: JsonValue, depth: int = 0) -> JsonValue:
    """Return ``value`` in the notation of a cassette; `UNPACKERS` undo it."""
    if isinstance(value, str):
        return _packed_text(value, depth)
    if isinstance(value, list):
        if is_plain_numbers(value):
            return value
        if depth > DEEPEST:
            return {"~deep": dumped(_inside(value))}
        return _packed_events(value) or [packed(item, depth + 1) for item in value]
    if isinstance(value, dict):
        if depth > DEEPEST:
            return {"~deep": dumped(_inside(value))}
        if any(key.startswith(MARK) or (not key.isascii() and _PAIR.search(key)) for key in value):
            return {"~pairs": [[packed(key, depth + 1), packed(item, depth + 1)] for key, item in value.items()]}
        return {key: packed(item, depth + 1) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"~float": str(value)}
    if isinstance(value, int) and not -BIGGEST_INT < value < BIGGEST_INT:
        return {"~int": hex(value)}
    return value


def is_plain_numbers(value: list[JsonValue]) -> bool:
    """Whether a list holds numbers that JSON has, and nothing else: told at the speed of C, for lists of many thousands."""
    kinds = set(map(type, value))
    if not kinds or not kinds <= {int, float}:
        return False
    if kinds == {int}:
        return min(value) > -BIGGEST_INT and max(value) < BIGGEST_INT  # type: ignore[operator, type-var]
    return all(-BIGGEST_INT < item < BIGGEST_INT for item in value)  # type: ignore[operator]


def _inside(value: JsonValue) -> JsonValue:
    """Return a deep value in the notation that may nest further: it ends up within one text."""
    if isinstance(value, list):
        return [_inside(item) for item in value]
    if isinstance(value, dict):
        return {"~pairs": [[packed(key), _inside(item)] for key, item in value.items()]}
    return packed(value)


def _packed_text(text: str, depth: int) -> JsonValue:
    if not text.isascii() and _PAIR.search(text):
        pieces = []
        start = 0
        for pair in _PAIR.finditer(text):
            pieces.append(text[start : pair.end()])
            start = pair.end()
        return {"~joined": [*pieces, text[start:]]}
    if len(text) > JSON_FROM and text[0] in "{[" and text[-1] in "}]" and depth <= DEEPEST:
        style, value = _as_json(text)
        if style is not None:
            return {f"~json{style}": packed(value, depth + 1)}
    if len(text) > LINES_FROM and "\n" in text:
        return {"~lines": list(text.split("\n"))}
    return text


def _as_json(text: str) -> tuple[str | None, JsonValue]:
    """Return the value of a JSON text and the style that gives exactly this text again, or None where no style does."""
    try:
        value = json.loads(text)
        if text.count("[") + text.count("{") > DEEPEST and _is_deeper(value, DEEPEST):
            return None, None  # some Pythons read more levels than they can walk through
        for style, write in _STYLES.items():
            if write(value) == text:
                return style, value
    except (ValueError, RecursionError):  # not JSON, or more digits or levels than Python reads: it stays a text
        pass
    return None, None


def _is_deeper(value: JsonValue, levels: int) -> bool:
    """Whether lists and objects stand in one another more than ``levels`` times; found without recursion."""
    layer = [value]
    for _ in range(levels):
        holders = [item for item in layer if isinstance(item, (list, dict))]
        layer = [part for item in holders for part in (item.values() if isinstance(item, dict) else item)]
        if not layer:
            return False
    return any(isinstance(item, (list, dict)) for item in layer)


def _packed_events(items: list[JsonValue]) -> JsonObject | None:
    """Return the events of a stream with their data as values; None for a list that is something else."""
    if not all(isinstance(item, str) for item in items):
        return None
    read = [_event(item) for item in items if isinstance(item, str)]
    styles = [style for style, _ in read if style is not None]
    if not styles:
        return None
    common = max(sorted(set(styles)), key=styles.count)
    events = [
        packed(value, 1) if style == common else _as_it_is(str(item)) for item, (style, value) in zip(items, read, strict=True)
    ]
    return {f"~sse{common}": events}


def _as_it_is(text: str) -> JsonValue:
    """Return a text that stands in a list of events: split only where JSON could not hold it."""
    return _packed_text(text, DEEPEST + 1) if not text.isascii() and _PAIR.search(text) else text


def _event(text: str) -> tuple[str | None, JsonValue]:
    if not (text.startswith(_DATA + "{") and text.endswith("}" + _END)):
        return None, None
    return _as_json(text[len(_DATA) : -len(_END)])


def _unpacked_events(write: Callable[[JsonValue], str]) -> Callable[[JsonValue], JsonValue]:
    def unpack(events: JsonValue) -> JsonValue:
        return [event if isinstance(event, str) else f"{_DATA}{write(event)}{_END}" for event in _items(events)]

    return unpack


def _unpacked_json(write: Callable[[JsonValue], str]) -> Callable[[JsonValue], JsonValue]:
    def unpack(value: JsonValue) -> JsonValue:
        return write(value)

    return unpack


def _items(value: JsonValue) -> list[JsonValue]:
    if not isinstance(value, list):
        raise TypeError(f"a list is missing: {value!r}")
    return value


def _texts(value: JsonValue) -> list[str]:
    return [_text(item) for item in _items(value)]


def _text(value: JsonValue) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text is missing: {value!r}")
    return value


def _pairs(value: JsonValue) -> JsonValue:
    return {_text(key): item for key, item in map(_items, _items(value))}


UNPACKERS: dict[str, Callable[[JsonValue], JsonValue]] = {
    "~lines": lambda value: "\n".join(_texts(value)),
    "~joined": lambda value: "".join(_texts(value)),
    "~pairs": _pairs,
    "~float": lambda value: float(_text(value)),
    "~int": lambda value: int(_text(value), 16),
    **{f"~json{style}": _unpacked_json(write) for style, write in _STYLES.items()},
    **{f"~sse{style}": _unpacked_events(write) for style, write in _STYLES.items()},
}
"""What undoes each mark, given the value behind it. ``~deep`` is undone by the reader, which it needs again."""
