"""grep: the lines that match.

Source: GNU grep 3.8. A recursive search goes through names in the order of their bytes: the order of a file system is arbitrary.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from pytest_hermes_env.sandbox.commands.patterns import compiled
from pytest_hermes_env.sandbox.commands.process import Options, Process
from pytest_hermes_env.sandbox.not_exact import NotExact

__all__ = ["grep"]

LONG = {
    "ignore-case": "i",
    "line-number": "n",
    "recursive": "r",
    "files-with-matches": "l",
    "count": "c",
    "quiet": "q",
    "invert-match": "v",
    "extended-regexp": "E",
    "fixed-strings": "F",
    "word-regexp": "w",
    "line-regexp": "x",
    "only-matching": "o",
    "no-messages": "s",
    "no-filename": "h",
    "with-filename": "H",
    "after-context": "A:",
    "before-context": "B:",
    "context": "C:",
    "regexp": "e:",
    "max-count": "m:",
    "include": "include:",
    "exclude-dir": "exclude-dir:",
}
STDIN = "(standard input)"
TROUBLE = 2
Matcher = Callable[[str], "Iterator[re.Match[str]]"]


def grep(process: Process) -> int:
    """Write the lines that match."""
    options = process.options("inrlcqvEFwoxshHA:B:C:e:m:", LONG)
    patterns, operands = options.given.get("e", []), list(options.operands)
    if not patterns:
        if not operands:
            raise NotExact("grep without a pattern")
        patterns = [operands.pop(0)]
    _check(options)
    matcher = _matcher(patterns, options)
    is_recursive = "r" in options
    has_names = "H" in options or ((len(operands) > 1 or is_recursive) and "h" not in options)
    if is_recursive and len(operands) == 1 and "H" not in options and not process.disk.is_directory(operands[0]):
        has_names = False
    found = False
    for name, data in _inputs(process, operands or (("",) if is_recursive else ("-",)), options):
        found = (
            _search(process, options, matcher, name if has_names or "l" in options else None, data, shows_name=has_names)
            or found
        )
        if found and "q" in options:
            return 0
    return process.code or int(not found)


def _check(options: Options) -> None:
    """Raise NotExact for combinations that are not known."""
    given = options.given.keys()
    numbers = [value for letter in "ABCm" for value in options.given.get(letter, ())]
    if any(not re.fullmatch(r"[1-9]\d{0,5}|0", value) for value in numbers) or options.get("m") == "0":
        raise NotExact("this grep")
    has_context = bool({"A", "B", "C"} & given)
    if ("m" in given and (has_context or "v" in given)) or (has_context and {"c", "l", "q", "o"} & given):
        raise NotExact("this grep")
    if len({"c", "l", "q"} & given) > 1 or ("o" in given and {"v", "c", "l", "w", "x"} & given) or len({"E", "F"} & given) > 1:
        raise NotExact("this grep")


def _matcher(patterns: Sequence[str], options: Options) -> Matcher:
    parts = [one for pattern in patterns for one in pattern.split("\n")]
    if len(parts) > 1 and ("o" in options or any(re.search(r"\\\d", one) for one in parts)):
        raise NotExact("grep of several patterns")
    ready = []
    for part in parts:
        pattern = compiled(
            part, extended="E" in options, ignore_case="i" in options, fixed="F" in options, finds_text="o" in options
        )
        if "x" in options or "w" in options:
            if re.search(r"\\[1-9]", pattern.pattern):
                raise NotExact("grep of words with a group")
            whole = f"(?:{pattern.pattern})"
            pattern = re.compile(rf"^{whole}\Z" if "x" in options else rf"(?<!\w){whole}(?!\w)", pattern.flags)
            if "w" in options and pattern.search(""):
                raise NotExact("grep -w of a pattern that matches nothing")
        ready.append(pattern)

    if len(ready) == 1:
        return ready[0].finditer

    def matches(line: str) -> Iterator[re.Match[str]]:
        return (match for pattern in ready for match in pattern.finditer(line))

    return matches


def _inputs(process: Process, operands: Sequence[str], options: Options) -> Iterator[tuple[str, bytes]]:
    """Yield each file's shown name and content."""
    for name in operands:
        if name == "-":
            yield STDIN, process.streams.source.take(leaves_rest="q" in options or "m" in options)
        elif process.disk.is_directory(name or "."):
            if "r" not in options:
                raise NotExact("grep of a directory")
            yield from ((shown, process.disk.read(shown)) for shown in _below(process, name, options))
        else:
            try:
                data = process.disk.read(name)
            except OSError as error:
                process.code = TROUBLE
                if "s" not in options:
                    process.complain(f"{name}: {os.strerror(error.errno or 0)}", code=TROUBLE)
            else:
                if "include" in options:
                    raise NotExact("grep --include of a file")
                yield name, data


def _below(process: Process, name: str, options: Options) -> Iterator[str]:
    for entry in process.disk.names(name or "."):
        shown = f"{name}{'' if name.endswith('/') or not name else '/'}{entry}"
        if process.disk.is_directory(shown):
            if not _fits(entry, options.given.get("exclude-dir", ())):
                yield from _below(process, shown, options)
        elif "include" not in options or _fits(entry, options.given["include"]):
            yield shown


def _fits(name: str, patterns: Sequence[str]) -> bool:
    if any(re.search(r"[\[\\/{]", pattern) for pattern in patterns):
        raise NotExact("a pattern of names")
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _search(process: Process, options: Options, matcher: Matcher, name: str | None, data: bytes, *, shows_name: bool) -> bool:
    text = process.text(data)
    if "\0" in text:
        raise NotExact("grep of what is not text")
    if not text.isascii() and ("i" in options or "w" in options):
        raise NotExact("grep of what is not ASCII")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    limit = int(options.get("m") or len(lines))
    hits: list[int] = []
    wants_match, limit = "v" not in options, 1 if {"q", "l"} & options.given.keys() else limit
    for number, line in enumerate(lines):
        if (next(matcher(line), None) is not None) == wants_match:
            hits.append(number)
            if len(hits) == limit:
                break
    if "q" in options:
        return bool(hits)
    if "l" in options:
        process.write(f"{name}\n" if hits else "")
        return bool(hits)
    prefix = f"{name}:" if shows_name else ""
    if "c" in options:
        process.write(f"{prefix}{len(hits)}\n")
    elif "o" in options:
        for number in hits:
            position = f"{prefix}{number + 1}:" if "n" in options else prefix
            process.write("".join([f"{position}{match[0]}\n" for match in matcher(lines[number]) if match[0]]))
    else:
        _write_lines(process, options, name if shows_name else None, lines, hits)
    return bool(hits)


def _write_lines(process: Process, options: Options, name: str | None, lines: list[str], hits: list[int]) -> None:
    """Write the lines that match, and those around them."""
    around = options.get("C") or "0"
    before, after = int(options.get("B") or around), int(options.get("A") or around)
    has_context = bool({"A", "B", "C"} & options.given.keys())
    matching = set(hits)
    shown = sorted({near for hit in hits for near in range(max(hit - before, 0), min(hit + after + 1, len(lines)))})
    out: list[str] = []
    for previous, number in pairwise([-1, *shown]):
        if has_context and out and number > previous + 1:
            out.append("--\n")
        mark = ":" if number in matching else "-"
        head = (f"{name}{mark}" if name is not None else "") + (f"{number + 1}{mark}" if "n" in options else "")
        out.append(f"{head}{lines[number]}\n")
    if has_context and out and process.streams.out.data and name is not None:
        raise NotExact("grep of several files with lines around")
    process.write("".join(out))
