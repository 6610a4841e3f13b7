"""Patterns as bash matches them: in paths, ``case``, ``[[ == ]]`` and ``${name#...}``. A backslash quotes the next letter."""

from __future__ import annotations

import functools
import os
import re

from pytest_hermes_env.sandbox.commands.patterns import CLASSES
from pytest_hermes_env.sandbox.files import Files

__all__ = ["escaped", "expression", "matching_paths"]

SET = re.compile(r"([!^]?)(\]?(?:\[:[a-z]+:\]|\\.|[^\]\\])*)\]", re.DOTALL)
"""A set of letters behind its opening bracket."""
ITEM = re.compile(r"\[:([a-z]+):\]|(\\?.)(?:-(\\?.))?", re.DOTALL)
"""In it, a class, a letter, or a range."""


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
    found = SET.match(pattern, at)
    if found is None:
        return None
    out: list[str] = []
    for item in ITEM.finditer(found[2]):
        if item[1]:
            if item[1] not in CLASSES:
                return None
            out.append(CLASSES[item[1]])
            continue
        first, last = item[2][-1], (item[3] or item[2])[-1]
        if first <= last:
            out.append(re.escape(first) if first == last else f"{re.escape(first)}-{re.escape(last)}")
    if not out:  # only ranges that run backwards
        return "." if found[1] else "(?!)", found.end()
    return f"[{'^' if found[1] else ''}{''.join(out)}]", found.end()


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
