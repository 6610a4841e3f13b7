"""A text that was there before the work, with one of gold's changes undone, or with what gold left alone damaged.

Place in the flow: `content` yields these for files that gold changed. JSON is compared by its keys, any other text by its lines.
"""

from __future__ import annotations

import copy
import difflib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_hermes_env.play.cases.one_value import spread

GONE, CHANGED = "what it left as it was gone", "what it left as it was changed"
MOST_DAMAGED = 2
_NO_CONTENT = re.compile(r"^\s*(?:[#;\[\]{}]|//|--|<!--)|[:{]\s*$")
"""Comments, and lines that hold others together."""
LEFT, TAKEN, ADDED = "a change not made", "what it takes out left in", "what it adds left out"
ALIKE = 0.6
"""From here on, two lines are one that was changed."""
MOST_LINES = 1_000
_KEY = re.compile(r"""^[\s"'-]*([\w.-]+)["']?\s*[:=]""")
_WORD = re.compile(r"[\w.-]*\w")


@dataclass(frozen=True, kw_only=True)
class Undone:
    """A text with one change undone: what the change is (`LEFT`, `TAKEN`, `ADDED`), where, and what it is about: its key, and its new values."""

    name: str
    at: str
    text: str
    about: tuple[str, ...]


def undone(text: str, before: str) -> list[Undone]:
    """Return the text with each of its changes undone."""
    if (values := _objects(text, before)) is not None:
        mine, old = values
        indent = 2 if "\n" in text.strip() else None
        return [
            Undone(name=name, at=".".join(way), text=json.dumps(made, ensure_ascii=False, indent=indent), about=about)
            for name, way, made, about in _of_keys(mine, old, ())
        ]
    lines, others = text.splitlines(), before.splitlines()
    return [*_of_lines(lines, others)] if max(len(lines), len(others)) <= MOST_LINES else []


def damaged(text: str, before: str) -> list[Undone]:
    """Return the text without all, or one, of what the work left as it was, and with one of it changed."""
    if (values := _objects(text, before)) is not None:
        mine, old = values
        kept = [key for key in mine if key in old and mine[key] == old[key]]
        made = [(GONE, "all of it", {key: part for key, part in mine.items() if key not in kept})]
        for key in spread(kept, MOST_DAMAGED):
            made += [
                (GONE, key, {name: part for name, part in mine.items() if name != key}),
                (CHANGED, key, {**mine, key: "otherwise"}),
            ]
        found = [
            Undone(name=name, at=at, text=json.dumps(part, ensure_ascii=False, indent=2), about=()) for name, at, part in made
        ]
        return found if kept else []
    lines, others = text.splitlines(), {*before.splitlines()}
    same = [n for n, line in enumerate(lines) if line in others and re.search(r"\w", line) and not _NO_CONTENT.search(line)]
    if not same or len(same) == len(lines) or len(lines) > MOST_LINES:
        return []
    found = [_line(GONE, [line for n, line in enumerate(lines) if n not in same], 0, ())]
    for number in spread(same, MOST_DAMAGED):
        other = re.sub(r"\w+(?=\W*$)", "otherwise", lines[number])
        found.append(_line(GONE, [*lines[:number], *lines[number + 1 :]], number, ()))
        found.append(_line(CHANGED, [*lines[:number], other, *lines[number + 1 :]], number, ()))
    return [replace(found[0], at="all of it"), *found[1:]]


def _objects(*texts: str) -> list[Any] | None:
    try:
        values = [json.loads(text) for text in texts]
    except (ValueError, RecursionError):
        return None
    return values if all(isinstance(value, dict) for value in values) else None


def _of_keys(mine: Any, old: Any, way: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...], Any, tuple[str, ...]]]:
    for key in [*mine, *(key for key in old if key not in mine)]:
        here, made = (*way, key), copy.deepcopy(mine)
        if key not in old:
            del made[key]
            yield ADDED, here, made, (key,)
        elif key not in mine:
            yield TAKEN, here, {**made, key: old[key]}, (key,)
        elif isinstance(mine[key], dict) and isinstance(old[key], dict):
            yield from ((name, at, {**made, key: part}, about) for name, at, part, about in _of_keys(mine[key], old[key], here))
        elif mine[key] != old[key]:
            value = mine[key]
            yield LEFT, here, {**made, key: old[key]}, (value if isinstance(value, str) else json.dumps(value),)


def _of_lines(mine: Sequence[str], old: Sequence[str]) -> Iterator[Undone]:
    for _, a, b, c, d in difflib.SequenceMatcher(None, old, mine, autojunk=False).get_opcodes():
        partner, last = {}, c
        for number in range(a, b):
            alike = (other for other in range(last, d) if _are_alike(old[number], mine[other]))
            if old[a:b] != mine[c:d] and (found := next(alike, None)) is not None:
                partner[found], last = number, found + 1
        place = c
        for number in range(a, b) if old[a:b] != mine[c:d] else ():
            other = next((one for one, of in partner.items() if of == number), None)
            if other is not None:
                place = other + 1
                new = {*_WORD.findall(mine[other])} - {*_WORD.findall(old[number])}
                yield _line(LEFT, [*mine[:other], old[number], *mine[other + 1 :]], other, tuple(sorted(new)))
            else:
                yield _line(TAKEN, [*mine[:place], old[number], *mine[place:]], place, _about(old[number]))
        for other in range(c, d) if old[a:b] != mine[c:d] else ():
            if other not in partner:
                yield _line(ADDED, [*mine[:other], *mine[other + 1 :]], other, _about(mine[other]))


def _line(name: str, lines: Sequence[str], number: int, about: tuple[str, ...]) -> Undone:
    return Undone(name=name, at=f"line {number + 1}", text="\n".join([*lines, ""]), about=about)


def _about(line: str) -> tuple[str, ...]:
    """Return the key of a line, or the line."""
    return (found[1] if (found := _KEY.match(line)) else line.strip(),)


def _are_alike(one: str, other: str) -> bool:
    keys = [found[1] if (found := _KEY.match(line)) else None for line in (one, other)]
    is_other = None not in keys and keys[0] != keys[1]
    return not is_other and difflib.SequenceMatcher(None, one.strip(), other.strip(), autojunk=False).ratio() >= ALIKE
