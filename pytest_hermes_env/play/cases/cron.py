"""Lines of cron: the same times written otherwise, and more times than were meant."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE = re.compile(r"(?m)^((?:[\d*,/-]+[ \t]+){4}[\d*,/-]+)(?=[ \t]|$)")
"""The five fields of a line."""
_SUNDAY = re.compile(r"(?m)^((?:\S+[ \t]+){4}(?:[1-6](?:-[1-6])?,)*)0(?=,|[ \t]|$)")
_RANGE = re.compile(r"(?<![\d/*])(\d+)-(\d+)(?![\d/])")
_FIELDS = ("minute", "hour", "day", "month", "weekday")


def same_times(text: str) -> Iterator[tuple[str, str]]:
    """Yield names and texts that mean the same."""
    yield "with Sunday as 7", _SUNDAY.sub(r"\g<1>7", text)
    yield "with ranges as lists", _LINE.sub(lambda line: _RANGE.sub(_listed, line[0]), text)


def more_times(text: str) -> Iterator[tuple[str, str]]:
    """Yield names and texts whose first line runs more often: at any time, and at any time of one field."""
    if (line := _LINE.search(text)) is None:
        return
    given = line[1].split()
    changed = {"at any time": ["*"] * len(given)}
    changed |= {f"at any {name}": [*given[:at], "*", *given[at + 1 :]] for at, name in enumerate(_FIELDS)}
    for name, fields in changed.items():
        if fields != given:
            yield name, f"{text[: line.start(1)]}{' '.join(fields)}{text[line.end(1) :]}"


def _listed(found: re.Match[str]) -> str:
    return ",".join(map(str, range(int(found[1]), int(found[2]) + 1))) or found[0]
