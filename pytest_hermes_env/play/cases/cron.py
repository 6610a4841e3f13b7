"""Lines of cron: the same times written otherwise, and more times than were meant."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE = re.compile(r"(?m)^(?:[\d*,/-]+[ \t]+){4}[\d*,/-]+(?=[ \t]|$)")
_LINE_IN_WORDS = re.compile(r"(?m)^((?:[\w*,/-]+[ \t]+){4}[\w*,/-]+)(?=[ \t]|$)")
"""The five fields of a line, in numbers, and with names of days and months."""
_SUNDAY = re.compile(r"(?m)^((?:\S+[ \t]+){4}(?:[1-6](?:-[1-6])?,)*)0(?=,|[ \t]|$)")
_RANGE = re.compile(r"(?<![\d/*])(\d+)-(\d+)(?![\d/])")
_FIELDS = {"minute": (0, 59), "hour": (0, 23), "day": (1, 31), "month": (1, 12), "weekday": (0, 6)}
_PART = re.compile(r"(?:\*|(\w+)(?:-(\w+))?)(?:/(\d+))?")
_MONTHS, _DAYS = (
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    ["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
)


def same_times(text: str) -> Iterator[tuple[str, str]]:
    """Yield names and texts that mean the same."""
    yield "with Sunday as 7", _SUNDAY.sub(r"\g<1>7", text)
    yield "with ranges as lists", _LINE.sub(lambda line: _RANGE.sub(_listed, line[0]), text)


def more_times(text: str, before: str = "") -> Iterator[tuple[str, str]]:
    """Yield names and texts whose first line that was not there ``before`` runs more often: at any time, and at any time of one field."""
    lines = [line for line in _LINE_IN_WORDS.finditer(text) if line[0] not in before]
    given = lines[0][1].split() if lines else []
    times = [_times(field, name) for field, name in zip(given, _FIELDS, strict=False)]
    if not times or not all(times):
        return
    some = [name for name, found in zip(_FIELDS, times, strict=True) if len(found) < _most(name)]
    if {"day", "weekday"} <= {*some}:  # either is enough
        some = [name for name in some if name not in {"day", "weekday"}]
    changed = {"at any time": ["*"] * len(given)} if some else {}
    changed |= {
        f"at any {name}": ["*" if one == name else field for one, field in zip(_FIELDS, given, strict=True)] for name in some
    }
    for name, fields in changed.items():
        yield name, f"{text[: lines[0].start(1)]}{' '.join(fields)}{text[lines[0].end(1) :]}"


def _times(field: str, name: str) -> set[int]:
    """Return the numbers that a field means; none where it is no field of cron."""
    low, high = _FIELDS[name]
    found: set[int] = set()
    for part in field.split(","):
        if (read := _PART.fullmatch(part)) is None:
            return set()
        first, last = (
            _number(word, name) for word in (read[1] or str(low), read[2] or (read[1] if not read[3] else None) or str(high))
        )
        if first < 0 or last < first:
            return set()
        found |= {number % 7 if name == "weekday" else number for number in range(first, last + 1, int(read[3] or 1) or 1)}
    return found


def _most(name: str) -> int:
    low, high = _FIELDS[name]
    return high - low + 1


def _number(word: str, name: str) -> int:
    """Return what a number or a name of a month or day means; -1 for another word."""
    names = {"month": ["", *_MONTHS], "weekday": _DAYS}.get(name, [])
    return int(word) if word.isdecimal() else names.index(word.lower()) if word.lower() in names else -1


def _listed(found: re.Match[str]) -> str:
    return ",".join(map(str, range(int(found[1]), int(found[2]) + 1))) or found[0]
