"""Brace expansion: ``a{b,c}`` and ``{1..3}``. It knows nothing of variables, so it happens while a source is read."""

from __future__ import annotations

import itertools
import re
from typing import TypeAlias

from pytest_hermes_env.sandbox.bash.tree import Part, Text, Word, word_of

__all__ = ["braced"]

Items: TypeAlias = "list[str | Part]"
"""Letters that are not quoted, and whole parts."""

NUMBERS = re.compile(r"(-?[0-9]+)\.\.(-?[0-9]+)(?:\.\.(-?[0-9]+))?")
LETTERS = re.compile(r"([A-Za-z])\.\.([A-Za-z])(?:\.\.(-?[0-9]+))?")


def braced(word: Word) -> tuple[Word, ...]:
    """Return the words that one word's braces make of it."""
    if "{" not in word.raw or "}" not in word.raw:
        return (word,)
    items: Items = []
    for part in word.parts:
        items += list(part.text) if isinstance(part, Text) and not part.quoted else [part]
    alternatives = _expanded(items)
    return (word,) if len(alternatives) == 1 and alternatives[0] == items else tuple(_word(one) for one in alternatives)


def _word(items: Items) -> Word:
    parts: list[Part] = []
    for item in items:
        if isinstance(item, str) and parts and isinstance(parts[-1], Text) and not parts[-1].quoted:
            parts[-1] = Text(parts[-1].text + item)
        else:
            parts.append(Text(item) if isinstance(item, str) else item)
    return word_of("".join(part.text for part in parts if isinstance(part, Text)), parts)


def _expanded(items: Items) -> list[Items]:
    for start, item in enumerate(items):
        if item != "{":
            continue
        end, commas = _closing(items, start)
        if not end:
            continue
        inner = items[start + 1 : end]
        if commas:
            edges = [start, *commas, end]
            options = [one for left, right in itertools.pairwise(edges) for one in _expanded(items[left + 1 : right])]
        else:
            options = _range(inner)
        if options:
            return [[*items[:start], *option, *rest] for option in options for rest in _expanded(items[end + 1 :])]
    return [items]


def _closing(items: Items, start: int) -> tuple[int, list[int]]:
    """Return where the brace is closed, 0 when it is not, and where the commas between its parts stand."""
    depth, commas = 0, []
    for at in range(start, len(items)):
        if items[at] == "{":
            depth += 1
        elif items[at] == "," and depth == 1:
            commas.append(at)
        elif items[at] == "}":
            depth -= 1
            if not depth:
                return at, commas
    return 0, []


def _range(inner: Items) -> list[Items]:
    if not all(isinstance(item, str) for item in inner):
        return []
    text = "".join(item for item in inner if isinstance(item, str))
    if found := NUMBERS.fullmatch(text):
        first, last = int(found[1]), int(found[2])
        padded = any(re.match(r"-?0[0-9]", one) for one in found.groups()[:2])
        width = max(len(found[1]), len(found[2])) if padded else 0
        numbers = _steps(first, last, int(found[3] or 1))
        return [list(f"{number:0{width}d}") for number in numbers]
    if found := LETTERS.fullmatch(text):
        return [[chr(code)] for code in _steps(ord(found[1]), ord(found[2]), int(found[3] or 1))]
    return []


def _steps(first: int, last: int, step: int) -> range:
    size = abs(step) or 1
    return range(first, last + 1, size) if first <= last else range(first, last - 1, -size)
