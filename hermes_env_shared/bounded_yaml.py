"""Refuses YAML that would cost more than any file that a person writes: chains of aliases, deep nesting, numbers of thousands of digits.

`check_bounds` reads the events of a text, before anything is built of it. The error names a line; the caller names the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

MAX_DEPTH = 60
MAX_VALUES = 200_000
"""Values of a file, those behind an alias counted again at each alias."""
MAX_DIGITS = 400
_NUMBER = re.compile(r"[-+]?[0-9][0-9_:xobA-Fa-f.]*")


class BeyondBounds(ValueError):
    """The text is YAML that nobody writes. ``line`` counts from 1."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.line = line


def check_bounds(text: str) -> None:
    """Look at a text without building values of it. Raises: BeyondBounds; yaml.YAMLError."""
    import yaml  # noqa: PLC0415 - takes 10 ms

    sizes: dict[str, int] = {}
    open_ones: list[tuple[str | None, int]] = []  # the anchor of each collection that has begun, and the values before it
    count = 0
    events: Iterator[Any] = yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    for event in events:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_ones.pop()
            if anchor:
                sizes[anchor] = count - before
        elif isinstance(event, yaml.CollectionStartEvent):
            open_ones.append((event.anchor, count))
            count += 1
        elif isinstance(event, yaml.ScalarEvent):
            count += 1
            sizes[event.anchor or ""] = 1
            if event.implicit[0] and len(event.value) > MAX_DIGITS and _NUMBER.fullmatch(event.value):
                raise BeyondBounds(f"a number of {len(event.value):,} digits", line)
        elif isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in open_ones):
                raise BeyondBounds("this value contains itself", line)
            count += sizes.get(str(event.anchor), 1)
        if len(open_ones) > MAX_DEPTH:
            raise BeyondBounds(f"values are nested more than {MAX_DEPTH} deep", line)
        if count > MAX_VALUES:
            raise BeyondBounds(f"its aliases and values expand to more than {MAX_VALUES:,} values", line)


def load_yaml(text: str) -> Any:
    """Return the value of a text. Raises: BeyondBounds; yaml.YAMLError, also where a value does not fit its tag."""
    import yaml  # noqa: PLC0415 - takes 10 ms

    check_bounds(text)
    try:
        return yaml.safe_load(text)
    except (ValueError, LookupError, TypeError, AttributeError) as error:  # PyYAML's own, for `2026-13-45` or `!!int x`
        raise yaml.YAMLError(f"a value does not fit its type: {error}") from error
