"""The parts of a parsed command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["AndOr", "Expansion", "Group", "If", "Node", "Part", "Pipeline", "Redirect", "Script", "Simple", "Text", "Word"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Literal text."""

    text: str
    quoted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """``$name``, ``${name}`` or ``$( script )``."""

    quoted: bool
    name: str = ""
    script: Script | None = None


Part: TypeAlias = Text | Expansion


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word. ``raw`` is its source; ``plain`` its value if nothing in it is expanded."""

    parts: tuple[Part, ...]
    raw: str
    plain: str | None


@dataclass(slots=True, kw_only=True)
class Redirect:
    """A redirection. ``target`` is a path, a descriptor, or the text of a here-document, which is read after the line."""

    fd: int
    operator: str
    target: Word | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Simple:
    """A simple command. ``text`` is its source without redirections; an assignment is a name and a value."""

    assignments: tuple[tuple[str, Word], ...]
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


Node: TypeAlias = Simple | Pipeline | AndOr | Group | If
Script: TypeAlias = tuple[Node, ...]
"""Commands that run one after the other."""
