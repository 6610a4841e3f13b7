"""Patterns as bash matches them: in paths, ``case``, ``[[ == ]]`` and ``${name#...}``. A backslash quotes the next letter."""

from __future__ import annotations

import functools
import os
import re

from pytest_hermes_env.sandbox.files import Files

__all__ = ["escaped", "expression", "matching_paths"]

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
    "print": r" -~",
    "graph": r"!-~",
    "cntrl": r"\x00-\x1f\x7f",
}


def escaped(text: str) -> str:
    """Return a text as a pattern that matches it alone."""
    return re.sub(r"([*?\[\]\\])", r"\\\1", text)


@functools.lru_cache(maxsize=512)
def expression(pattern: str) -> str:
    """Return a pattern as a regular expression."""
    out: list[str] = []
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        at += 1
        if letter == "*":
            out.append(".*")
        elif letter == "?":
            out.append(".")
        elif letter == "\\" and at < len(pattern):
            out.append(re.escape(pattern[at]))
            at += 1
        elif letter == "[" and (found := _set(pattern, at)):
            text, at = found
            out.append(text)
        else:
            out.append(re.escape(letter))
    return "".join(out)


def _set(pattern: str, at: int) -> tuple[str, int] | None:
    """Return the set that begins behind its bracket, and the place behind it; None when it is not closed."""
    start = at
    negated = pattern[at : at + 1] in {"!", "^"} and at < len(pattern)
    at += negated
    out: list[str] = []
    first = True
    while at < len(pattern):
        letter = pattern[at]
        if letter == "]" and not first:
            text = "".join(out)
            return (f"[^{text}]" if negated else f"[{text}]"), at + 1
        first = False
        if found := re.compile(r"\[:([a-z]+):\]").match(pattern, at):
            if found[1] not in CLASSES:
                return None
            out.append(CLASSES[found[1]])
            at = found.end()
            continue
        if letter == "\\" and at + 1 < len(pattern):
            at += 1
            letter = pattern[at]
        at += 1
        is_range = letter != "]" and pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in {"]", ""}
        if is_range:
            last = pattern[at + 1]
            at += 2
            if last >= letter:
                out.append(f"{re.escape(letter)}-{re.escape(last)}")
        else:
            out.append(re.escape(letter))
    del start
    return None


@functools.lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(expression(pattern), re.DOTALL)


def matching_paths(pattern: str, files: Files, cwd: str) -> list[str]:
    """Return the paths that a pattern finds, in the order of their bytes."""
    found = ["/" if pattern.startswith("/") else ""]
    parts = [part for part in re.split(r"/+", pattern) if part]
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        found = [path for above in found for path in _entries(above, part, files, cwd, needs_directory=not is_last)]
    if pattern.endswith("/"):
        found = [f"{path}/" for path in found if files.is_dir(files.resolve(path, cwd))]
    return sorted(found, key=os.fsencode)


def _entries(above: str, part: str, files: Files, cwd: str, *, needs_directory: bool) -> list[str]:
    joined = above if not above or above.endswith("/") else f"{above}/"
    plain = re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL)
    if not re.search(r"(?<!\\)[*?\[]", part):
        names = [plain]
    else:
        directory = files.resolve(above or ".", cwd)
        if not files.is_dir(directory):
            return []
        compiled = _compiled(part)
        shows_hidden = part.startswith((".", "\\."))
        names = [
            name
            for name in files.list_directory(directory)
            if compiled.fullmatch(name) and (shows_hidden or not name.startswith("."))
        ]
    paths = [joined + name for name in names]
    exists = files.is_dir if needs_directory else files.exists
    return [path for path in paths if exists(files.resolve(path, cwd))]
