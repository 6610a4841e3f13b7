"""grep: the lines that match.

Source: GNU grep 3.8.
"""

from __future__ import annotations

import os
import re

from pytest_hermes_env.sandbox.bash.commands.process import Process
from pytest_hermes_env.sandbox.bash.state import NotExact

__all__ = ["grep"]

TROUBLE = 2
KNOWN = re.compile(r"\^?(?:\.\*?|\\\.|[^][\\^$.*+?(){}|])*\$?")
"""The patterns that mean the same to grep, with ``-E`` and without, and to Python: text, ``.``, ``.*``, and both ends of a line."""


def grep(process: Process) -> int:
    """Write the lines that match."""
    options, operands = process.options("inlcqvEF")
    if not operands or {"E", "F"} <= options.keys() or len({"l", "c", "q"} & options.keys()) > 1:
        raise NotExact("this grep")
    pattern, *names = operands
    expression = _expression(pattern, options)
    is_ascii = "i" in options
    found = False
    for name in names or ["-"]:
        try:
            lines = _lines(process.read(name), is_ascii=is_ascii)
        except OSError as error:
            process.complain(f"{name}: {os.strerror(error.errno or 0)}", code=TROUBLE)
            continue
        hits = [number for number, line in enumerate(lines, 1) if bool(expression.search(line)) != ("v" in options)]
        found = found or bool(hits)
        prefix = f"{name}:" if len(names) > 1 else ""
        if "q" in options:
            if found:
                return 0
        elif "l" in options:
            process.write(f"{'(standard input)' if name == '-' else name}\n" if hits else "")
        elif "c" in options:
            process.write(f"{prefix}{len(hits)}\n")
        else:
            numbered = [(f"{number}:" if "n" in options else "", lines[number - 1]) for number in hits]
            process.write("".join(f"{prefix}{number}{line}\n" for number, line in numbered))
    return process.code or int(not found)


def _lines(data: bytes, *, is_ascii: bool) -> list[str]:
    """Return the lines of an input. Raises: it is not text in the present locale → NotExact."""
    try:
        text = data.decode("ascii" if is_ascii else "utf-8")
    except UnicodeDecodeError:
        raise NotExact("grep of what is not text") from None
    if "\0" in text:
        raise NotExact("grep of what is not text")
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _expression(pattern: str, options: dict[str, str]) -> re.Pattern[str]:
    """Return the pattern as Python's. Raises: it may match otherwise → NotExact."""
    is_plain = "F" in options or re.fullmatch(r"[\w -]*", pattern, re.ASCII) is not None
    if not (is_plain or KNOWN.fullmatch(pattern)) or "\n" in pattern or ("i" in options and not pattern.isascii()):
        raise NotExact(f"the pattern {pattern}")
    return re.compile(re.escape(pattern) if is_plain else pattern, re.ASCII | (re.IGNORECASE if "i" in options else 0))
