"""Finds the end of a JSON value in a longer text, in linear time and without exceptions.

``json.JSONDecoder.raw_decode`` is not used, because every error that it raises counts the line breaks of the text before it:
a megabyte of opening braces would take hours. It also returns where a value ends, but not which braces a broken value already used.
"""

from __future__ import annotations

import json
import re
from typing import Any

MAX_DEPTH = 200
"""Nesting beyond which a text counts as malformed. Python's parser fails near 1000, or earlier inside deep calls."""

_NOT_SPACE = re.compile(r"[^ \t\n\r]")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\[^\x00-\x1f])*+("|\\?\Z)')
"""Matches a string, and one that the text cuts off, whose group is not a quote."""
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_BEGINNING_OF_SCALAR = re.compile(r"tr?u?|fa?l?s?|nu?l?|-?[0-9]*\.?[0-9]*[eE]?[+-]?")
_CLOSERS = {"{": "}", "[": "]"}

BROKEN = -1
"""There is no JSON value."""
CUT_OFF = -2
"""The text ends before the value does."""


def skip_space(text: str, position: int) -> int:
    """Return the position of the first character that is not JSON whitespace, or the length of the text."""
    found = _NOT_SPACE.search(text, position)
    return found.start() if found else len(text)


def end_of_json(text: str, start: int, braces: set[int] | None = None) -> int:
    """Return the end of the JSON value that begins at ``start``; `BROKEN` or `CUT_OFF`, both negative, when it has none.

    The positions of the objects that were opened on the way are added to ``braces``. Escapes inside strings are not checked.
    """
    closers: list[str] = []
    position = start
    while True:
        bracket = text[position : position + 1]
        if bracket in _CLOSERS:
            if braces is not None and bracket == "{":
                braces.add(position)
            closers.append(_CLOSERS[bracket])
            position = skip_space(text, position + 1)
            if not text.startswith(closers[-1], position):
                if len(closers) > MAX_DEPTH:
                    return BROKEN
                position = _after_key(text, position) if bracket == "{" else position
                if position < 0:
                    return position
                continue
        else:
            position = _end_of_scalar(text, position, is_inside=bool(closers))
        if position >= 0:
            position = _after_value(text, position, closers)
        if position < 0 or not closers:
            return position


def _after_key(text: str, position: int) -> int:
    """Return the start of the value of the key at ``position``."""
    if not text.startswith('"', position):
        return _missing(text, position)
    end = _end_of_string(text, position)
    if end < 0:
        return end
    colon = skip_space(text, end)
    return skip_space(text, colon + 1) if text.startswith(":", colon) else _missing(text, colon)


def _missing(text: str, position: int) -> int:
    """Return the error for an unexpected character at ``position``: `CUT_OFF` at the end of the text, else `BROKEN`."""
    return CUT_OFF if position == len(text) else BROKEN


def _after_value(text: str, position: int, closers: list[str]) -> int:
    """Close the brackets that end here. Return the start of the next value; the end, if no bracket is open."""
    while closers:
        position = skip_space(text, position)
        if text.startswith(",", position):
            position = skip_space(text, position + 1)
            return _after_key(text, position) if closers[-1] == "}" else position
        if not text.startswith(closers[-1], position):
            return _missing(text, position)
        closers.pop()
        position += 1
    return position


def _end_of_scalar(text: str, position: int, *, is_inside: bool) -> int:
    if text.startswith('"', position):
        return _end_of_string(text, position)
    scalar = _SCALAR.match(text, position)
    if scalar and (scalar.end() == len(text) or not is_inside):
        return scalar.end()
    beginning = _BEGINNING_OF_SCALAR.match(text, position)
    if beginning and beginning.end() == len(text):
        return CUT_OFF
    return scalar.end() if scalar else BROKEN


def _end_of_string(text: str, quote: int) -> int:
    found = _STRING.match(text, quote)
    if not found:
        return BROKEN
    return found.end() if found.group(1) == '"' else CUT_OFF


def read_json(text: str) -> tuple[Any, bool]:
    """Return the value of a JSON text, and whether it is valid. NaN and infinity are not."""
    try:
        return json.loads(text, parse_constant=_refuse), True
    except (ValueError, RecursionError):
        return None, False


def _refuse(constant: str) -> Any:
    raise ValueError(constant)
