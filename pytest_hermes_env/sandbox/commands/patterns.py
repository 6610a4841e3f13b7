"""Regular expressions of grep and sed, as Python's.

Source: GNU grep 3.8 and sed 4.9; POSIX takes the longest match, Python the first alternative, so that where it matters
alternatives are not known.
"""

from __future__ import annotations

import functools
import re

from pytest_hermes_env.sandbox.not_exact import NotExact

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
    "print": " -~",
    "graph": "!-~",
    "cntrl": r"\x00-\x1f\x7f",
}
"""POSIX name of a class of characters → what stands for it between brackets."""

WORD_ENDS = {"<": r"\b(?=\w)", ">": r"\b(?<=\w)"}
SPECIAL = "+?|(){}"
BRACKET = re.compile(r"\[(\^?)(\]?(?:\[:\w+:\]|[^\]\[\\])*)\]")
INTERVAL = re.compile(r"\{(\d{1,3}(?:,\d{0,3})?)(\\?)\}")


@functools.lru_cache(maxsize=512)
def compiled(
    pattern: str,
    *,
    extended: bool,
    ignore_case: bool = False,
    fixed: bool = False,
    finds_text: bool = False,
    is_sed: bool = False,
) -> re.Pattern[str]:
    """Return a pattern, compiled. ``finds_text``: it matters which text matches, not only whether one does.

    Raises: GNU refuses it, or it may match otherwise → NotExact.
    """
    if not pattern.isascii() and ignore_case:
        raise NotExact(f"the pattern {pattern}")
    text = re.escape(pattern) if fixed else _translated(pattern, extended=extended, is_sed=is_sed)
    if finds_text and "|" in re.sub(r"\\.|\[\^?\]?[^\]]*\]", "", text):
        raise NotExact(f"the alternatives of {pattern}")
    try:
        return re.compile(text, re.IGNORECASE | re.ASCII if ignore_case else re.ASCII)
    except re.error:
        raise NotExact(f"the pattern {pattern}") from None


def _translated(pattern: str, *, extended: bool, is_sed: bool) -> str:
    """Return a POSIX pattern, basic or extended, as Python writes it."""
    out: list[str] = []
    at, is_start, can_repeat = 0, True, False
    while at < len(pattern):
        letter = pattern[at]
        is_escaped = letter == "\\"
        if is_escaped:
            at += 1
            letter = pattern[at : at + 1]
        is_operator = letter != "" and letter in SPECIAL and is_escaped != extended
        at += 1
        if (is_operator and letter in "+?{") or (letter == "*" and not is_escaped and not is_start):
            interval = INTERVAL.match(pattern, at - 1) if letter == "{" else None
            if not can_repeat or (letter == "{" and (interval is None or bool(interval[2]) == extended)):
                raise NotExact(f"the pattern {pattern}")
            out.append(f"{{{interval[1]}}}" if interval else letter)
            at = interval.end() if interval else at
            can_repeat = is_start = False
            continue
        can_repeat = True
        if is_operator:
            if letter == "}":
                raise NotExact(f"the pattern {pattern}")
            out.append(letter)
            is_start = letter in "(|"
            can_repeat = letter == ")"
            continue
        if is_escaped:
            out.append(_escaped(letter, pattern, is_sed=is_sed))
            can_repeat = letter not in "<>bB"
        elif letter == "[":
            found = BRACKET.match(pattern, at - 1)
            if found is None or set(re.findall(r"\[:(\w+):\]", found[2])) - CLASSES.keys():
                raise NotExact(f"the pattern {pattern}")
            out.append(_set(found))
            at = found.end()
        elif letter == "^" and (extended or is_start):
            out.append("^")
            can_repeat = False
            continue
        elif letter == "$" and (extended or at == len(pattern) or pattern.startswith((r"\)", r"\|"), at)):
            out.append(r"\Z")
            can_repeat = False
        elif letter == "*" and extended:
            raise NotExact(f"the pattern {pattern}")
        else:
            out.append(letter if letter == "." else re.escape(letter))
        is_start = False
    return "".join(out)


def _escaped(letter: str, pattern: str, *, is_sed: bool) -> str:
    if letter and (letter in "wWsSbB123456789.[]*^$\\" or letter in SPECIAL):
        return f"\\{letter}"
    if letter in WORD_ENDS:
        return WORD_ENDS[letter]
    if is_sed and letter and letter in "nt":
        return {"n": "\n", "t": "\t"}[letter]
    if is_sed and letter and not letter.isalnum() and letter not in "`'\n":
        return re.escape(letter)
    raise NotExact(f"the pattern {pattern}")


def _set(found: re.Match[str]) -> str:
    """Return a set in brackets."""
    letters = re.split(r"\[:\w+:\]", found[2])
    names = re.findall(r"\[:(\w+):\]", found[2])
    escaped = [re.sub(r"([\[\]&~|^])", r"\\\1", part) for part in letters]
    if len(letters) > 1 and any("-" in part for part in letters):
        raise NotExact(f"the set {found[0]}")
    inner = "".join(part + (CLASSES[names[at]] if at < len(names) else "") for at, part in enumerate(escaped))
    return f"[{found[1]}{inner}]"
