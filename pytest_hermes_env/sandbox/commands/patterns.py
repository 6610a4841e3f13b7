"""Regular expressions as grep and sed write them, as Python's."""

from __future__ import annotations

import functools
import re

from pytest_hermes_env.sandbox.commands.process import UnsupportedOption

__all__ = ["BadPattern", "compiled", "translated"]


class BadPattern(Exception):
    """A regular expression that GNU refuses."""


_BRACKET_CLASSES = {
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
}


@functools.lru_cache(maxsize=512)
def compiled(pattern: str, *, extended: bool, ignore_case: bool = False, fixed: bool = False) -> re.Pattern[str]:
    """Return a pattern of grep or sed, compiled. Raises: BadPattern, UnsupportedOption."""
    text = re.escape(pattern) if fixed else translated(pattern, extended=extended)
    try:
        return re.compile(text, re.IGNORECASE if ignore_case else 0)
    except re.error as error:
        raise BadPattern(_as_gnu_says(str(error))) from error


def _as_gnu_says(error: str) -> str:
    for words, text in (
        ("missing ), unterminated", r"Unmatched ( or \("),
        ("unbalanced parenthesis", r"Unmatched ) or \)"),
        ("unterminated character set", "Unmatched [, [^, [:, [., or [="),
        ("invalid group reference", "Invalid back reference"),
        ("bad character range", "Invalid range end"),
        ("min repeat greater", r"Invalid content of \{\}"),
    ):
        if words in error:
            return text
    return "Invalid preceding regular expression"


def translated(pattern: str, *, extended: bool) -> str:
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
            if not following:
                raise BadPattern("Trailing backslash")
            at += 2
            text = _escaped(following, extended=extended, special=special)
            if not extended and following == "(":
                is_start = True
                out.append(text)
                continue
            out.append(text)
            if not extended and following == "|":
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
    if letter in special:
        return "\\" + letter if extended else letter
    if letter in "<>":
        return r"\b(?=\w)" if letter == "<" else r"\b(?<=\w)"
    if letter in "wWsSbB123456789":
        return "\\" + letter
    if letter in "nt":
        return {"n": "\n", "t": "\t"}[letter]
    if letter == "`":
        return r"\A"
    if letter == "'":
        return r"\Z"
    if letter.isalnum():
        raise UnsupportedOption(f"the escape \\{letter} in a pattern")
    return re.escape(letter)


def _bracket(pattern: str, start: int) -> tuple[str, int]:
    at = start + 1
    out = "["
    if pattern[at : at + 1] == "^":
        out += "^"
        at += 1
    is_first = True
    while True:
        if at >= len(pattern):
            raise BadPattern("Unmatched [, [^, [:, [., or [=")
        letter = pattern[at]
        if letter == "]" and not is_first:
            return out + "]", at + 1
        if pattern.startswith("[:", at):
            end = pattern.find(":]", at)
            name = pattern[at + 2 : end] if end > 0 else ""
            if name not in _BRACKET_CLASSES:
                raise BadPattern("Invalid character class name")
            out += _BRACKET_CLASSES[name]
            at = end + 2
        else:
            out += "\\" + letter if letter in "\\[]&~|^" else letter
            at += 1
        is_first = False
