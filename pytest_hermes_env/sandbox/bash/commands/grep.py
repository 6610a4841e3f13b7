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
EXCLUDED = {"o": "vclwx", "l": "cq", "E": "F"}
"""An option, and those that are not known with it."""
LETTER = r"[^][\\^$.*+?(){}|]|\.|\\[][\\^$.*+?(){}|wWsS]|\[\^?(?!-)(?:[A-Za-z0-9 _.,:;@#%=<>!/'\"]|-(?!-))+\]"
PIECE = rf"(?:(?:{LETTER}|\((?:(?:{LETTER})[*+?]?|\|)*\))[*+?]?|\\b)"
BRANCH = rf"\^?{PIECE}*\$?"
KNOWN = re.compile(rf"{BRANCH}(?:\|{BRANCH})*")
"""The extended patterns that Python reads as grep does: no intervals, classes, back-references or groups in groups."""
BASIC = re.compile(r"\\([|+?()])|([|+?(){}])")
"""What has a backslash in a basic pattern where it has none in an extended one, and the other way round."""


def grep(process: Process) -> int:
    """Write the lines that match."""
    options, operands = process.options("inlcqvEFwoxsh")
    if not operands or any(one in options and set(others) & options.keys() for one, others in EXCLUDED.items()):
        raise NotExact("this grep")
    pattern, *names = operands
    is_utf8 = _is_utf8(process)
    expression = _expression(pattern, options, is_utf8=is_utf8)
    is_ascii = not is_utf8 or bool({"i", "w"} & options.keys()) or re.search(r"\\[A-Za-z]", pattern) is not None
    has_names = len(names) > 1 and "h" not in options
    found = False
    for name in names or ["-"]:
        try:
            lines = _lines(process.read(name), is_ascii=is_ascii)
        except OSError as error:
            process.code = TROUBLE
            if "s" not in options:
                process.complain(f"{name}: {os.strerror(error.errno or 0)}", code=TROUBLE)
            continue
        hits = [number for number, line in enumerate(lines, 1) if bool(expression.search(line)) != ("v" in options)]
        found = found or bool(hits)
        shown = "(standard input)" if name == "-" else name
        if "q" in options:
            if found:
                return 0
        elif "l" in options:
            process.write(f"{shown}\n" if hits else "")
        else:
            _write(process, options, f"{shown}:" if has_names else "", lines, hits, expression)
    return process.code or int(not found)


def _write(
    process: Process, options: dict[str, str], prefix: str, lines: list[str], hits: list[int], expression: re.Pattern[str]
) -> None:
    if "c" in options:
        process.write(f"{prefix}{len(hits)}\n")
        return
    out = []
    for number in hits:
        line = lines[number - 1]
        texts = [match[0] for match in expression.finditer(line) if match[0]] if "o" in options else [line]
        out += [f"{prefix}{f'{number}:' if 'n' in options else ''}{text}\n" for text in texts]
    process.write("".join(out))


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


def _is_utf8(process: Process) -> bool:
    variables, exported = process.state.variables, process.state.exported
    names = [name for name in ("LC_ALL", "LC_CTYPE", "LANG") if variables.get(name)]
    return bool(names) and names[0] in exported and variables[names[0]] in {"C.UTF-8", "C.utf8"}


def _expression(pattern: str, options: dict[str, str], *, is_utf8: bool) -> re.Pattern[str]:
    """Return the pattern as Python's. Raises: it may match otherwise → NotExact."""
    is_plain = "F" in options or re.fullmatch(r"[\w -]*", pattern, re.ASCII) is not None
    text = pattern if "E" in options else BASIC.sub(lambda found: found[1] or f"\\{found[2]}", pattern)
    is_known = is_plain or (KNOWN.fullmatch(text) and ("E" in options or not re.search(r"\\[{}]", pattern)))
    if not is_known or "\n" in pattern or not (pattern.isascii() or (is_utf8 and "i" not in options)):
        raise NotExact(f"the pattern {pattern}")
    if is_plain:
        text = re.escape(pattern)
    elif "w" in options or ("o" in options and re.search(r"[|(]", text)):
        raise NotExact(f"which text matches {pattern}")
    if "w" in options:
        text = rf"(?<!\w){text}(?!\w)"
    if "w" in options and not pattern:
        raise NotExact("an empty word")
    try:
        return re.compile(rf"\A(?:{text})\Z" if "x" in options else text, re.ASCII | (re.IGNORECASE if "i" in options else 0))
    except re.error:
        raise NotExact(f"the pattern {pattern}") from None
