"""The parts of a parsed command line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

__all__ = [
    "ASSIGNMENT",
    "AndOr",
    "Arithmetic",
    "ArithmeticCommand",
    "Assignment",
    "Combination",
    "Condition",
    "For",
    "Group",
    "If",
    "Node",
    "Part",
    "Pipeline",
    "Redirect",
    "Script",
    "Simple",
    "Substitution",
    "Test",
    "Text",
    "Variable",
    "While",
    "Word",
]

ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
"""The beginning of an assignment: its name, and a plus sign if it appends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Literal text."""

    text: str
    quoted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """``$name``, or ``${name operator word}``; ``second`` is a replacement. The operator ``length`` is ``${#name}``."""

    name: str
    quoted: bool
    operator: str = ""
    word: Word | None = None
    second: Word | None = None
    span: tuple[int, int | None] = (0, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Substitution:
    """``$( )`` or backquotes."""

    script: Script
    quoted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """``$(( ))``."""

    word: Word
    quoted: bool


Part: TypeAlias = Text | Variable | Substitution | Arithmetic


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word. ``raw`` is its source; ``plain`` its value if nothing in it is expanded."""

    parts: tuple[Part, ...]
    raw: str
    plain: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """``name=value``, or ``name+=value``."""

    name: str
    value: Word
    appends: bool


@dataclass(slots=True, kw_only=True)
class Redirect:
    """A redirection. ``target`` is a path, a descriptor, or the text of a here-document, which is read after the line."""

    fd: int
    operator: str
    target: Word | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Simple:
    """A simple command. ``text`` is its source without redirections."""

    assignments: tuple[Assignment, ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """Commands connected by pipes."""

    commands: tuple[Node, ...]
    negated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AndOr:
    """Commands connected by ``&&`` and ``||``."""

    first: Node
    rest: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Commands that run one after the other."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """``( )`` or ``{ }``."""

    body: Script
    is_subshell: bool
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class If:
    """Conditions with what they lead to; the last branch has no condition if it is an ``else``."""

    branches: tuple[tuple[Script | None, Script], ...]
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class While:
    """``while`` or ``until``."""

    condition: Script
    body: Script
    is_until: bool
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class For:
    """``for name in words``."""

    name: str
    words: tuple[Word, ...]
    body: Script
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A test in ``[[ ]]``: a word alone, an operator before a word, or between two."""

    left: Word | None
    operator: str
    right: Word


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """Tests in ``[[ ]]`` combined by ``&&``, ``||`` or ``!``, which has one part."""

    operator: str
    parts: tuple[Test | Combination, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """``[[ ]]``."""

    test: Test | Combination
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArithmeticCommand:
    """``(( ))``."""

    word: Word
    redirects: tuple[Redirect, ...]


Node: TypeAlias = Simple | Pipeline | AndOr | Script | Group | If | While | For | Condition | ArithmeticCommand
