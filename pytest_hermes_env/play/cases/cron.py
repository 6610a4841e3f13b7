"""Lines of cron: the same times written otherwise, and more times than were meant."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE = re.compile(r"(?m)^(?:[\d*,/-]+[ \t]+){4}[\d*,/-]+(?=[ \t]|$)")
_LINE_IN_WORDS = re.compile(r"(?m)^((?:[\w*,/-]+[ \t]+){4}[\w*,/-]+)(?=[ \t]|$)")
"""The five fields of a line, in numbers, and with names of days and months."""
_SUNDAY = re.compile(r"(?m)^((?:\S+[ \t]+){4}(?:[1-6](?:-[1-6])?,)*)0(?=,|[ \t]|$)")
_RANGE = re.compile(r"(?<![\d/*])(\d+)-(\d+)(?![\d/])")
_FIELDS = {"minute": 60, "hour": 24, "day": 31, "month": 12, "weekday": 7}
"""How many times each field may mean."""


def same_times(text: str) -> Iterator[tuple[str, str]]:
    """Yield names and texts that mean the same."""
    yield "with Sunday as 7", _SUNDAY.sub(r"\g<1>7", text)
    yield "with ranges as lists", _LINE.sub(lambda line: _RANGE.sub(_listed, line[0]), text)


def more_times(text: str, before: str = "") -> Iterator[tuple[str, str]]:
    """Yield names and texts whose first line that was not there ``before`` runs more often: at any time, and at any time of one field."""
    from croniter import croniter  # noqa: PLC0415 - only where a task is about cron
    from croniter.croniter import CroniterError  # noqa: PLC0415

    line = next((line for line in _LINE_IN_WORDS.finditer(text) if line[0] not in before), None)
    if line is None:
        return
    given = line[1].split()
    try:
        times = croniter.expand(" ".join(given))[0]
    except CroniterError:  # other words, five in a line
        return
    some = [name for found, (name, most) in zip(times, _FIELDS.items(), strict=True) if found != ["*"] and len(found) < most]
    if {"day", "weekday"} <= {*some}:  # either is enough
        some = [name for name in some if name not in {"day", "weekday"}]
    changed = {"at any time": ["*"] * len(given)} if some else {}
    changed |= {
        f"at any {name}": ["*" if one == name else field for one, field in zip(_FIELDS, given, strict=True)] for name in some
    }
    for name, fields in changed.items():
        yield name, f"{text[: line.start(1)]}{' '.join(fields)}{text[line.end(1) :]}"


def _listed(found: re.Match[str]) -> str:
    return ",".join(map(str, range(int(found[1]), int(found[2]) + 1))) or found[0]
