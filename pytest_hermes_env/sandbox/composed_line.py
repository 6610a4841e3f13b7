"""Finds the simple commands in a composed line, such as ``cd app && pytest -q 2>&1 | tail -n 1``: a script may answer some of them.

Only lines of words, quotes, redirections, pipes, lists, groups and common keywords are taken apart, not ``$( )``, backquotes,
here-documents, background jobs or process substitutions.

Place in the flow: the terminal of a `FakeSandbox` puts a function in the place of each scripted command, and real bash runs the line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Part", "function_for", "simple_commands"]

_TOKEN = re.compile(
    r"""(?P<blank>[ \t]+|\\\n)
    |(?P<separator>&&|\|\|?|;|\n|[(){}](?=[\s;)]|$)|\()
    |(?P<redirection>(?:\d*(?:>>?|<)(?:&(?:\d|-)|[ \t]*(?:[^\s'"\\;&|<>()`]|'[^']*'|"[^"`$\\]*")+)|&>>?[ \t]*[^\s'"\\;&|<>()`]+))
    |(?P<word>(?:'[^']*'|"(?:[^"`$\\]|\\.|\$(?![({]))*"|\\.|\$(?:\w+|\?)|\$\{\w+\}|[^\s'"\\;&|<>()`$#]|(?<=\S)\#)+)""",
    re.VERBOSE,
)
_BEFORE_COMMAND = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "time", "{"})
_ASSIGNMENT = re.compile(r"\w+=")


@dataclass(frozen=True, kw_only=True)
class Part:
    """One simple command: its place in the line, without assignments before it and redirections after it, and its text."""

    start: int
    end: int
    text: str


def simple_commands(line: str) -> list[Part]:
    """Return the simple commands of a line; none if it has what is not taken apart."""
    parts: list[Part] = []
    start = end = -1
    is_complete = at = 0
    while at < len(line):
        token = _TOKEN.match(line, at)
        if token is None:
            return []
        at = token.end()
        if token["separator"]:
            parts += [Part(start=start, end=end, text=line[start:end])] if start >= 0 else []
            start, is_complete = -1, 0
        elif token["redirection"]:
            is_complete = int(start >= 0)
        elif token["word"] and start < 0:
            if token["word"] not in _BEFORE_COMMAND and not _ASSIGNMENT.match(token["word"]):
                start, end = token.span()
        elif token["word"]:
            if is_complete:  # words on both sides of a redirection
                return []
            end = token.end()
    return [*parts, *([Part(start=start, end=end, text=line[start:end])] if start >= 0 else [])]


def function_for(name: str, output: str, errors: str, exit_code: int) -> str:
    """Return bash's definition of a function that does what a script answers, and notes its name in ``$__hermes_asked``."""
    said = "".join(f" builtin printf %s {_quoted(text)}{where};" for text, where in ((output, ""), (errors, " >&2")) if text)
    return f'{name}() {{ builtin echo {name} >> "$__hermes_asked";{said} return {exit_code}; }}'


def _quoted(text: str) -> str:
    """Quote text on one line: bash counts the lines before a command."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"$'{escaped}'"
