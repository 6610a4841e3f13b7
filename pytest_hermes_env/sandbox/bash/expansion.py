"""Expands words: variables, substitutions and splitting.

Source: bash 5.2, subst.c.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from pytest_hermes_env.sandbox.bash.state import NotExact, State
from pytest_hermes_env.sandbox.bash.syntax import Part, Script, Text, Word
from pytest_hermes_env.sandbox.bash.words import PATTERN

__all__ = ["Expander"]

BLANKS = re.compile(r"[ \t\n]+")


class Expander:
    """Expands words in the present state of a shell. ``substitute`` returns a script's output."""

    def __init__(self, state: State, substitute: Callable[[Script], str]) -> None:
        self._state = state
        self._substitute = substitute

    def words(self, words: Sequence[Word]) -> list[str]:
        """Return the fields of several words."""
        return [field for word in words for field in ([word.plain] if word.plain is not None else self._fields(word))]

    def text(self, word: Word) -> str:
        """Return a word as one text, which is not split."""
        return word.plain if word.plain is not None else "".join(map(self._value, word.parts))

    def _fields(self, word: Word) -> Iterator[str]:
        field, is_open = "", False
        for part in word.parts:
            value = self._value(part)
            if part.quoted or isinstance(part, Text):
                field += value
                is_open = is_open or part.quoted or bool(value)
                continue
            if PATTERN.search(value):
                raise NotExact(f"the pattern {value}")
            for number, piece in enumerate(BLANKS.split(value)):
                if number and is_open:
                    yield field
                    field, is_open = "", False
                field += piece
                is_open = is_open or bool(piece)
        if is_open:
            yield field

    def _value(self, part: Part) -> str:
        if isinstance(part, Text):
            return part.text
        if part.script is not None:
            return self._substitute(part.script)
        return str(self._state.status) if part.name == "?" else self._state.variables.get(part.name, "")
