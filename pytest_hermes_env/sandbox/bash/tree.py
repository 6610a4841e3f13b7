"""What a command line is, once it has been read: words of parts, and commands of words.

Place in the flow: `lexer` makes words, `grammar` makes commands of them, `runner` runs commands. All of it is immutable: one tree
serves every machine that runs the same line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from typing import TypeAlias

__all__ = [
    "AndOr",
    "ArithmeticCommand",
    "ArithmeticPart",
    "Assignment",
    "Case",
    "Clause",
    "Condition",
    "Counting",
    "CountingLoop",
    "For",
    "Function",
    "Group",
    "If",
    "Loop",
    "Node",
    "Parameter",
    "Part",
    "Pipeline",
    "Redirect",
    "Script",
    "Sequence",
    "Simple",
    "Substitution",
    "SyntaxProblem",
    "Test",
    "Text",
    "Token",
    "Word",
    "word_of",
]


HOME = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_]*\+?=)?~")
"""How a word begins in which a tilde means a directory."""


@dataclass(frozen=True, slots=True)
class Text:
    """Letters that mean themselves; where they are not quoted, globs and a leading tilde have their meaning."""

    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """``$name`` or ``${name...}``. ``operator`` is what follows the name in braces; ``length`` is ``${#name}``.

    ``name`` is empty where bash would speak of a bad substitution.
    """

    name: str
    raw: str
    quoted: bool = False
    length: bool = False
    indirect: bool = False
    operator: str = ""
    argument: Word | None = None
    second: Word | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Substitution:
    """``$(...)`` or backquotes."""

    script: Script
    quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ArithmeticPart:
    """``$((...))``."""

    expression: Word
    quoted: bool = False


Part: TypeAlias = Text | Parameter | Substitution | ArithmeticPart


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word as it was written. ``plain`` is what it becomes when that does not depend on anything."""

    raw: str
    parts: tuple[Part, ...]
    plain: str | None = None


def word_of(raw: str, parts: SequenceOf[Part]) -> Word:
    """Return a word, with what it becomes where that is already known."""
    texts = [part for part in parts if isinstance(part, Text)]
    bare = "".join(part.text for part in texts if not part.quoted)
    is_glob = "*" in bare or "?" in bare or ("[" in bare and "]" in bare)
    is_home = bool(texts) and not texts[0].quoted and HOME.match(texts[0].text) is not None
    is_plain = bool(parts) and len(texts) == len(parts) and not is_glob and not is_home
    return Word(raw=raw, parts=tuple(parts), plain="".join(part.text for part in texts) if is_plain else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """One redirection. ``fd`` is the stream that is led elsewhere; ``body`` is a here-document's."""

    operator: str
    fd: int
    target: Word
    body: Word | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """``name=value`` before a command, or alone."""

    name: str
    value: Word
    appends: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Simple:
    """A simple command. ``text`` is its source without redirections, ``line`` where it stands, from 1."""

    assignments: tuple[Assignment, ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]
    text: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """Commands of which each reads what the one before wrote; ``merges`` tells for each pipe whether it takes complaints, too."""

    commands: tuple[Node, ...]
    merges: tuple[bool, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AndOr:
    """``first && ... || ...``: each further command with the operator before it."""

    first: Node
    rest: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    """Commands one after the other."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """``{ ...; }``, or with ``subshell`` ``( ... )``."""

    body: Node
    subshell: bool
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class If:
    """Conditions with what they lead to, and what happens when none holds."""

    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node | None
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """``while``, or ``until``."""

    condition: Node
    body: Node
    until: bool
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class For:
    """``for name in words``; without words over the positional parameters."""

    name: str
    words: tuple[Word, ...] | None
    body: Node
    line: int
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Counting:
    """``for ((first; condition; step))``; each may be empty."""

    first: Word
    condition: Word
    step: Word
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingLoop:
    """A loop with such a head."""

    head: Counting
    body: Node
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One clause of ``case``. ``end`` is ``;;``, ``;&`` or ``;;&``."""

    patterns: tuple[Word, ...]
    body: Script
    end: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``case word in ... esac``."""

    word: Word
    clauses: tuple[Clause, ...]
    line: int
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """One node of what stands in ``[[ ]]``: ``!``, ``&&``, ``||``, or an operator with its words."""

    operator: str
    words: tuple[Word, ...] = ()
    tests: tuple[Test, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """``[[ ... ]]``."""

    test: Test
    line: int
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArithmeticCommand:
    """``((...))``."""

    expression: Word
    line: int
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """The definition of a function."""

    name: str
    body: Node
    redirects: tuple[Redirect, ...] = ()


Node: TypeAlias = (
    Simple
    | Pipeline
    | AndOr
    | Sequence
    | Group
    | If
    | Loop
    | For
    | CountingLoop
    | Case
    | Condition
    | ArithmeticCommand
    | Function
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntaxProblem:
    """Why the rest of a script cannot be read. ``shown`` is the source line that bash repeats, if it does."""

    line: int
    text: str
    shown: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Complete commands in their order, then perhaps a problem.

    Warnings are of here-documents without an end, their lines and delimiters: those of each command, and ``warnings`` of what
    cannot be read. ``lines``: of the whole source.
    """

    commands: tuple[tuple[Node, tuple[tuple[int, str], ...]], ...]
    lines: int
    problem: SyntaxProblem | None = None
    warnings: tuple[tuple[int, str], ...] = ()


@dataclass(slots=True)
class Token:
    """One token. ``kind``: word, operator, newline, redirect, or compound, whose ``node`` is already read.

    ``body`` is a here-document's, ``warning`` its line and its delimiter when that is not there.
    """

    kind: str
    text: str
    start: int
    end: int
    line: int
    word: Word | None = None
    node: Case | Condition | ArithmeticCommand | Counting | None = None
    fd: int | None = None
    body: Word | None = None
    warning: tuple[int, str] | None = None
    is_reserved: bool = False
    is_assignment: bool = False
