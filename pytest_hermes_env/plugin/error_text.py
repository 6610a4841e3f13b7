"""The text of an error for a terminal of 100 columns: long lines are wrapped under their first word, both sides of a difference are coloured."""

from __future__ import annotations

import re
import textwrap

from _pytest._code.code import TerminalRepr
from _pytest._io import TerminalWriter

WIDTH = 96
FOLDED = re.compile(r"  (?:where|differs) +| {12}")
"""What begins a line that is folded. Other lines hold what is copied as a whole: commands and paths."""
DIFFERENCE = re.compile(r"(recorded .+?), (now .+)")


class ErrorText(TerminalRepr):
    """An error's text as part of pytest's report: in colours on a terminal that has them, plain elsewhere."""

    def __init__(self, text: str) -> None:
        self._text = text

    def toterminal(self, tw: TerminalWriter) -> None:
        """Write the text: what was recorded is red, what came now is green."""
        for line in self._text.split("\n"):
            for part, colour in _parts(line):
                tw.line(part, **dict.fromkeys(filter(None, [colour]), True))


def wrapped(text: str) -> str:
    """Return the text with each line wrapped."""
    return "\n".join(part for line in text.split("\n") for part, _ in _parts(line))


def _parts(line: str) -> list[tuple[str, str]]:
    """Return the lines that a line becomes, each with its colour or an empty text."""
    beginning = FOLDED.match(line)
    if len(line) <= WIDTH or beginning is None:
        return [(line, "")]
    indent = " " * len(beginning[0])
    sides = DIFFERENCE.search(line)
    if sides is None:
        return [(part, "") for part in _folded(line, indent)]
    what = line[: sides.start()].rstrip()
    return [
        *((part, "") for part in _folded(what, indent)),
        *((part, "red") for part in _folded(f"{indent}{sides[1]}", f"{indent}  ")),
        *((part, "green") for part in _folded(f"{indent}{sides[2]}", f"{indent}  ")),
    ]


def _folded(line: str, indent: str) -> list[str]:
    """Return a line as lines of at most `WIDTH` characters. A word that is longer, such as a path, stays whole."""
    if len(line) <= WIDTH:
        return [line]
    return textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
