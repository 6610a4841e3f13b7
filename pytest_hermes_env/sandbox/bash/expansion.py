"""Expands words: variables, substitutions, splitting, and patterns such as ``*.txt`` with the paths that match them.

Source: bash 5.2, subst.c.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from pytest_hermes_env.sandbox.bash.commands.disk import Disk
from pytest_hermes_env.sandbox.bash.state import NotExact, State
from pytest_hermes_env.sandbox.bash.syntax import Expansion, Part, Script, Text, Word

__all__ = ["Expander"]

BLANKS = re.compile(r"[ \t\n]+")

Segment: TypeAlias = tuple[str, bool]
"""A piece of a field, and whether it is quoted."""


class Expander:
    """Expands words in the present state of a shell. ``substitute`` returns a script's output."""

    def __init__(self, state: State, disk: Disk, substitute: Callable[[Script], str]) -> None:
        self._state = state
        self._disk = disk
        self._substitute = substitute

    def words(self, words: Sequence[Word]) -> list[str]:
        """Return the fields of several words."""
        found: list[str] = []
        for word in words:
            if word.plain is not None:
                found.append(word.plain)
                continue
            for field in self._fields(word):
                if _has_pattern(field):
                    found += _matching_paths(field, self._disk)
                else:
                    found.append("".join(text for text, _ in field))
        return found

    def text(self, word: Word) -> str:
        """Return a word as one text: neither split nor a pattern."""
        if word.plain is not None:
            return word.plain
        return "".join(text for text, _, _ in self._pieces(word.parts))

    def _fields(self, word: Word) -> Iterator[list[Segment]]:
        field: list[Segment] = []
        is_open = False
        for text, quoted, splits in self._pieces(word.parts):
            if quoted or not splits:
                field.append((text, quoted))
                is_open = is_open or quoted or bool(text)
                continue
            for number, piece in enumerate(BLANKS.split(text)):
                if number and is_open:
                    yield field
                    field, is_open = [], False
                if piece:
                    field.append((piece, False))
                    is_open = True
        if is_open:
            yield field

    def _pieces(self, parts: Sequence[Part]) -> Iterator[tuple[str, bool, bool]]:
        """Yield the text of each part, whether it is quoted, and whether it is split."""
        for part in parts:
            if isinstance(part, Text):
                yield part.text, part.quoted, False
                continue
            value = self._value(part)
            if not part.quoted and "\\" in value and re.search(r"[*?\[]", value):
                raise NotExact("a pattern with a backslash")
            yield value, part.quoted, True

    def _value(self, part: Expansion) -> str:
        if part.script is not None:
            return self._substitute(part.script)
        if part.name == "?":
            return str(self._state.status)
        value = self._state.variables.get(part.name)
        is_set = value is not None if len(part.operator) == 1 else bool(value)
        if part.operator[-1:] == "+":
            return part.default if is_set else ""
        return (value if is_set else part.default) or ""


def _has_pattern(field: Sequence[Segment]) -> bool:
    return any(not quoted and ("*" in text or "?" in text or "[" in text) for text, quoted in field)


def _pattern_of(field: Sequence[Segment]) -> str:
    """Return a pattern of the shell as a regular expression."""
    return "".join(re.escape(text) if quoted else _translated(text) for text, quoted in field)


def _translated(text: str) -> str:
    if re.search(r"[\[\\]", text) or not text.isascii():
        raise NotExact(f"the pattern {text}")
    return "".join({"*": "(?s:.)*", "?": "(?s:.)"}.get(letter) or re.escape(letter) for letter in text)


def _matching_paths(field: Sequence[Segment], disk: Disk) -> list[str]:
    """Return the sorted paths that match a field with a pattern; without one, the field's text."""
    components: list[list[Segment]] = [[]]
    for text, quoted in field:
        first, *others = text.split("/")
        components[-1].append((first, quoted))
        components += [[(other, quoted)] for other in others]
    found = [""]
    for number, component in enumerate(components):
        is_last = number == len(components) - 1
        found = [path for prefix in found for path in _matching(prefix, component, disk, is_last=is_last)]
    return sorted(found, key=lambda path: path.encode(errors="surrogateescape")) or ["".join(text for text, _ in field)]


def _matching(prefix: str, component: list[Segment], disk: Disk, *, is_last: bool) -> list[str]:
    """Return the paths that a component of a pattern leads to from a prefix, with a slash unless it is the last one."""
    text = "".join(one for one, _ in component)
    end = "" if is_last else "/"
    if not _has_pattern(component):
        path = prefix + text
        if is_last and not text:
            return [path] if disk.kind(prefix) == "directory" else []
        exists = not text or (disk.kind(path) != "" if is_last else disk.kind(path) == "directory")
        return [path + end] if exists else []
    if disk.kind(prefix or ".") != "directory":
        return []
    expression = re.compile(_pattern_of(component))
    names = [name for name in disk.names(prefix or ".") if text.startswith(".") or not name.startswith(".")]
    if any(not name.isascii() for name in names) and "?" in text:
        raise NotExact("a pattern where names are not ASCII")
    if text.startswith(".") and (expression.fullmatch(".") or expression.fullmatch("..")):
        raise NotExact("a pattern that matches . and ..")
    return [
        prefix + name + end
        for name in names
        if expression.fullmatch(name) and (is_last or disk.kind(prefix + name) == "directory")
    ]
