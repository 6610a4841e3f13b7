"""A source with a place in it: what every reader of it shares."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from pytest_hermes_env.sandbox.bash.tree import Script, SyntaxProblem, Token

__all__ = ["Build", "Reading", "Unreadable", "lines_of"]

BLANKS = re.compile(r"(?:[ \t]|\\\n|#[^\n]*)*")
LINES = re.compile(r"(?:[ \t\n]|\\\n|#[^\n]*)*")

Build: TypeAlias = "Callable[[Sequence[Token], str, SyntaxProblem | None], Script]"
"""Makes a script of tokens, their source, and what is wrong behind them."""


class Unreadable(Exception):
    """The source breaks off, or stands against the grammar."""

    def __init__(self, problem: SyntaxProblem) -> None:
        super().__init__(problem.text)
        self.problem = problem


class Reading:
    """One source, read up to ``at``. ``build`` makes scripts of the tokens inside substitutions and ``case``."""

    def __init__(self, source: str, build: Build) -> None:
        self.source = source
        self.at = 0
        self._build = build
        self._line_start, self._line = 0, 1

    def _skip_blanks(self) -> None:
        self.at = BLANKS.match(self.source, self.at).end()  # type: ignore[union-attr]  # it matches nothing, too

    def _skip_lines(self) -> None:
        self.at = LINES.match(self.source, self.at).end()  # type: ignore[union-attr]
        if self.at >= len(self.source):
            raise Unreadable(self._end_of_file())

    def _line_at(self, at: int) -> int:
        if at < self._line_start:
            self._line_start, self._line = 0, 1
        self._line += self.source.count("\n", self._line_start, at)
        self._line_start = at
        return self._line

    def _broken_off(self, wanted: str, at: int | None = None) -> SyntaxProblem:
        line = lines_of(self.source) + 1 if at is None else self._line_at(at)
        return SyntaxProblem(line=line, text=f"unexpected EOF while looking for matching `{wanted}'")

    def _end_of_file(self) -> SyntaxProblem:
        return SyntaxProblem(line=lines_of(self.source) + 1, text="syntax error: unexpected end of file")


def lines_of(source: str) -> int:
    """Return how many lines a source has; the last may have no end."""
    return source.count("\n") + (not source.endswith("\n"))
