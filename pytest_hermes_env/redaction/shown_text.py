"""Makes text from elsewhere fit to be shown: what a model, a server, a file's name or an exception says is data.

Secrets become placeholders. Control characters, which could move a terminal's cursor, hide text or turn its direction, become escapes,
and so do the marks at which GitHub Actions begins a workflow command. Reports, ledgers, errors and terminal lines are written with it.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping

from pytest_hermes_env.redaction.redactor import TextRedactor
from pytest_hermes_env.redaction.secret_names import secrets_of

_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
_COLOUR = re.compile(r"\x1b\[[\d;]{0,20}m")
_COMMAND = re.compile(r"^([^\S\n]*)(::)(?=[A-Za-z])|##(?=\[)", re.MULTILINE)


def shown(text: str) -> str:
    """Return a text without secrets and control characters."""
    return printable(environment_redactor().text(text)) if text else ""


def shown_name(name: str) -> str:
    """Return the name of a file or a class without secrets and control characters, on one line."""
    return shown(name.replace("\n", "\\n").replace("\t", "\\t"))


def shown_path(path: str) -> str:
    """Return a path relative to the working directory where it lies below it."""
    return shown_name(path.removeprefix(os.getcwd() + os.sep))


def environment_redactor(also: Mapping[str, str] | None = None) -> TextRedactor:
    """Return a redactor for what looks like a key, the secrets that the variables of this process hold now, and ``also``, by name."""
    return _redactor(frozenset({**secrets_of(os.environ), **(also or {})}.items()))


@functools.lru_cache(maxsize=8)
def _redactor(known: frozenset[tuple[str, str]]) -> TextRedactor:
    return TextRedactor(known=dict(sorted(known)))


def printable(text: str, *, has_colour: bool = False) -> str:
    """Return a text whose control characters, but line feeds and tabs, are escapes. ``has_colour`` keeps colours, and nothing else.

    A line that would be a workflow command of GitHub Actions (``::error::``, ``##[error]``) gets a backslash.
    """
    if text.isascii() and text.isprintable():  # most lines
        return _without_commands(text)
    if not has_colour:
        return _without_commands(_escaped(text))
    pieces = _COLOUR.split(text)
    colours = [*_COLOUR.findall(text), ""]
    return _without_commands("".join(_escaped(piece) + colour for piece, colour in zip(pieces, colours, strict=True)))


def _escaped(text: str) -> str:
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


def _without_commands(text: str) -> str:
    if "::" not in text and "##[" not in text:
        return text
    return _COMMAND.sub(lambda found: f"{found[1]}\\::" if found[2] else "##\\", text)
