"""Patterns of the shell, as in ``*.txt``, ``${name%pattern}`` and ``[[ text == pattern ]]``, and the paths that match them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from pytest_hermes_env.sandbox.commands.disk import Disk
from pytest_hermes_env.sandbox.not_exact import NotExact

__all__ = ["Segment", "has_pattern", "matching_paths", "pattern_of"]

Segment: TypeAlias = tuple[str, bool]
"""A piece of a field, and whether it is quoted."""

BRACKET = re.compile(r"\[([!^]?)(\]?[A-Za-z0-9_.,+@%=:]*(?:[A-Za-z0-9]-[A-Za-z0-9][A-Za-z0-9_.,+@%=:]*)*-?)\]")


def has_pattern(field: Sequence[Segment]) -> bool:
    """Return whether a field has a character of a pattern."""
    return any(not quoted and ("*" in text or "?" in text or "[" in text) for text, quoted in field)


def pattern_of(field: Sequence[Segment], *, lazy: bool = False) -> str:
    """Return a pattern as a regular expression. ``lazy``: stars match as little as possible."""
    return "".join(re.escape(text) if quoted else _translated(text, lazy) for text, quoted in field)


@lru_cache(maxsize=256)
def _translated(text: str, lazy: bool) -> str:
    if "\\" in text or not text.isascii():
        raise NotExact(f"the pattern {text}")
    out, at = "", 0
    while at < len(text):
        letter = text[at]
        at += 1
        if letter == "*":
            out += "(?s:.)*?" if lazy else "(?s:.)*"
        elif letter == "?":
            out += "(?s:.)"
        elif letter == "[":
            found = BRACKET.match(text, at - 1)
            if not found or found[2] in {"", "]"} or found[2][0] in ":.=":
                raise NotExact(f"the pattern {text}")
            inner = found[2].replace("]", "\\]").removesuffix("-")
            out += f"[{'^' if found[1] else ''}{inner}{chr(92) + '-' if found[2].endswith('-') else ''}]"
            at = found.end()
        else:
            out += re.escape(letter)
    return out


def matching_paths(field: Sequence[Segment], disk: Disk) -> list[str]:
    """Return the sorted paths that match a field with a pattern; without one, the field's text."""
    components: list[list[Segment]] = [[]]
    for text, quoted in field:
        first, *others = text.split("/")
        components[-1].append((first, quoted))
        components += [[(other, quoted)] for other in others]
    found = [""]
    for number, component in enumerate(components):
        is_last = number == len(components) - 1
        found = [path for prefix in found for path in _matching(prefix, component, disk, is_last=is_last)]
    return sorted(found, key=lambda path: path.encode(errors="surrogateescape")) or ["".join(text for text, _ in field)]


def _matching(prefix: str, component: list[Segment], disk: Disk, *, is_last: bool) -> list[str]:
    """Return the paths that a component of a pattern leads to from a prefix, with a slash unless it is the last one."""
    text = "".join(one for one, _ in component)
    end = "" if is_last else "/"
    if not has_pattern(component):
        path = prefix + text
        if is_last and not text:
            return [path] if disk.is_directory(prefix) else []
        exists = not text or (disk.exists(path) if is_last else disk.is_directory(path))
        return [path + end] if exists else []
    if not disk.is_directory(prefix or "."):
        return []
    expression = re.compile(pattern_of(component))
    names = [name for name in disk.names(prefix or ".") if text.startswith(".") or not name.startswith(".")]
    if any(not name.isascii() for name in names) and ("?" in text or "[" in text):
        raise NotExact("a pattern where names are not ASCII")
    if text.startswith(".") and (expression.fullmatch(".") or expression.fullmatch("..")):
        raise NotExact("a pattern that matches . and ..")
    return [
        prefix + name + end for name in names if expression.fullmatch(name) and (is_last or disk.is_directory(prefix + name))
    ]
