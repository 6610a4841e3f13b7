"""Expands words: variables, substitutions, arithmetic, splitting, paths.

Source: bash 5.2, subst.c.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from pytest_hermes_env.sandbox.bash.arithmetic import evaluated
from pytest_hermes_env.sandbox.bash.globs import Segment, has_pattern, matching_paths, pattern_of
from pytest_hermes_env.sandbox.bash.state import State
from pytest_hermes_env.sandbox.bash.syntax import Expansion, Part, Script, Text, Word
from pytest_hermes_env.sandbox.commands.disk import Disk
from pytest_hermes_env.sandbox.not_exact import NotExact

__all__ = ["Expander"]

BLANKS = re.compile(r"[ \t\n]+")


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
                if has_pattern(field):
                    found += matching_paths(field, self._disk)
                else:
                    found.append("".join(text for text, _ in field))
        return found

    def text(self, word: Word) -> str:
        """Return a word as one text: neither split nor a pattern."""
        if word.plain is not None:
            return word.plain
        return "".join(text for text, _ in self.segments(word))

    def segments(self, word: Word) -> list[Segment]:
        """Return the pieces of a word that is not split."""
        return [(text, quoted) for text, quoted, _ in self._pieces(word.parts)]

    def _fields(self, word: Word) -> Iterator[list[Segment]]:
        field: list[Segment] = []
        is_open = False
        for text, quoted, splits in self._pieces(word.parts):
            if quoted or not splits:
                field.append((text, quoted))
                is_open = is_open or quoted or bool(text)
                continue
            pieces = BLANKS.split(text)
            for number, piece in enumerate(pieces):
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
            elif part.operator and part.operator[-1] in "-+":
                yield from self._with_default(part)
            else:
                value = self._value(part)
                if not part.quoted and "\\" in value and re.search(r"[*?\[]", value):
                    raise NotExact("a pattern with a backslash")
                yield value, part.quoted, True

    def _with_default(self, part: Expansion) -> Iterator[tuple[str, bool, bool]]:
        assert part.word is not None
        value = self._state.variables.get(part.name)
        is_set = value is not None and (bool(value) or part.operator[0] != ":")
        if is_set != (part.operator[-1] == "+"):
            yield (value if is_set and value else "", part.quoted, True)
            return
        if part.quoted:
            yield "", True, False
        for text, quoted, _ in self._pieces(part.word.parts):
            yield text, quoted or part.quoted, True

    def _value(self, part: Expansion) -> str:
        if part.script is not None:
            return self._substitute(part.script)
        if part.operator == "((":
            assert part.word is not None
            return str(evaluated(self.text(part.word), self._state.variables))
        if part.name == "?":
            return str(self._state.status)
        value = self._state.variables.get(part.name, "")
        if not part.operator:
            return value
        if part.operator != "length":
            return self._trimmed(part, value)
        if not value.isascii():
            raise NotExact("the length of text that is not ASCII")
        return str(len(value))

    def _trimmed(self, part: Expansion, value: str) -> str:
        """Return a value without what a pattern matches at its beginning or end."""
        assert part.word is not None
        field = self.segments(part.word)
        is_shortest = len(part.operator) == 1
        if part.operator[0] == "#":
            found = re.match(pattern_of(field, lazy=is_shortest), value)
            return value[found.end() :] if found else value
        pattern = re.compile(pattern_of(field))
        starts = range(len(value), -1, -1) if is_shortest else range(len(value) + 1)
        return next((value[:start] for start in starts if pattern.fullmatch(value, start)), value)
