"""Regular expressions as grep and sed write them, as Python's."""

from __future__ import annotations

import functools
import re

from pytest_hermes_env.sandbox.commands.process import UnsupportedOption

__all__ = ["CLASSES", "compiled"]


CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\s",
    "blank": r" \t",
    "punct": r"!-/:-@\[-`{-~",
    "xdigit": "0-9a-fA-F",
    "word": r"\w",
    "print": " -~",
    "graph": "!-~",
    "cntrl": r"\x00-\x1f\x7f",
}
"""POSIX name of a class of letters → what stands for it between brackets."""


ESCAPES = {letter: f"\\{letter}" for letter in "wWsSbB123456789"} | {
    "<": r"\b(?=\w)",
    ">": r"\b(?<=\w)",
    "n": "\n",
    "t": "\t",
    "`": r"\A",
    "'": r"\Z",
}
"""Letter after a backslash → its meaning."""


@functools.lru_cache(maxsize=512)
def compiled(pattern: str, *, extended: bool, ignore_case: bool = False, fixed: bool = False) -> re.Pattern[str]:
    """Return a pattern of grep or sed, compiled. Raises: GNU refuses it, or this machine does not know it → UnsupportedOption."""
    text = re.escape(pattern) if fixed else _translated(pattern, extended=extended)
    try:
        return re.compile(text, re.IGNORECASE if ignore_case else 0)
    except re.error as error:
        raise UnsupportedOption(f"the pattern {pattern}") from error


def _translated(pattern: str, *, extended: bool) -> str:
    """Return a POSIX pattern, basic or extended with GNU's additions, as Python writes it."""
    out: list[str] = []
    at, is_start = 0, True
    special = "+?|(){}"
    while at < len(pattern):
        letter = pattern[at]
        if letter == "[":
            text, at = _bracket(pattern, at)
            out.append(text)
        elif letter == "\\":
            following = pattern[at + 1 : at + 2]
            at += 2
            out.append(_escaped(following, extended=extended, special=special))
            if not extended and following and following in "(|":
                is_start = True
                continue
        elif letter == "*" and is_start:
            out.append(r"\*")
            at += 1
        elif letter in special:
            at += 1
            if not extended:
                out.append("\\" + letter)
            elif letter == "{" and not re.match(r"\d*,?\d*\}", pattern[at:]):
                out.append(r"\{")
            else:
                out.append(letter)
        elif letter == "^":
            at += 1
            out.append("^" if extended or is_start else r"\^")
            continue
        elif letter == "$":
            at += 1
            is_end = extended or at == len(pattern) or pattern.startswith((r"\)", r"\|"), at)
            out.append(r"(?!\n)\Z" if is_end else r"\$")
        else:
            out.append(letter if letter in ".*" else re.escape(letter))
            at += 1
        is_start = extended and letter in "(|"
    return "".join(out)


def _escaped(letter: str, *, extended: bool, special: str) -> str:
    if letter and letter in special:
        return "\\" + letter if extended else letter
    if not letter or (letter.isalnum() and letter not in ESCAPES):
        raise UnsupportedOption(f"the escape \\{letter} in a pattern")
    return ESCAPES.get(letter, re.escape(letter))


def _bracket(pattern: str, start: int) -> tuple[str, int]:
    """Return the set that begins at ``start``, and the place behind it."""
    found = re.compile(r"\[(\^?)(\]?(?:\[:\w+:\]|[^\]])*)\]").match(pattern, start)
    if found is None or set(names := re.findall(r"\[:(\w+):\]", found[2])) - CLASSES.keys():
        raise UnsupportedOption(f"the pattern {pattern}")
    letters = re.split(r"\[:\w+:\]", found[2])
    escaped = [re.sub(r"([\\\[\]&~|^])", r"\\\1", part) for part in letters]
    inner = "".join(part + (CLASSES[names[at]] if at < len(names) else "") for at, part in enumerate(escaped))
    return f"[{found[1]}{inner}]", found.end()
