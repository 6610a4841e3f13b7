"""find: the paths below directories that satisfy every test.

Source: GNU findutils 4.9. Names come in the order of their bytes: the order of a file system is arbitrary.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pytest_hermes_env.sandbox.commands.process import Process
from pytest_hermes_env.sandbox.not_exact import NotExact

__all__ = ["find"]

Test = Callable[[Process, str], bool]
"""Returns whether a path, as it is shown, is wanted."""


@dataclass(kw_only=True)
class _Expression:
    tests: list[Test] = field(default_factory=list)
    least: int = 0
    most: int = 1000
    end: str = "\n"


def find(process: Process) -> int:
    """Write the paths that satisfy every test."""
    words = list(process.arguments)
    starts: list[str] = []
    while words and not words[0].startswith(("-", "(", "!")):
        starts.append(words.pop(0))
    expression = _expression(words)
    for start in starts or ["."]:
        if not process.disk.exists(start):
            process.complain(f"{process.locale_quoted(start)}: No such file or directory")
            continue
        for shown, depth in _below(process, start, 0, expression.most):
            if depth >= expression.least and all(test(process, shown) for test in expression.tests):
                process.write(shown + expression.end)
    return process.code


def _expression(words: list[str]) -> _Expression:
    found = _Expression()
    while words:
        word = words.pop(0)
        is_negated = word in {"!", "-not"}
        if is_negated and words:
            word = words.pop(0)
        if word in {"-print", "-print0"} and not words and not is_negated:
            found.end = "\n" if word == "-print" else "\0"
        elif (
            word in {"-maxdepth", "-mindepth"}
            and words
            and re.fullmatch(r"\d{1,3}", words[0])
            and not is_negated
            and not found.tests
        ):
            setattr(found, "most" if word == "-maxdepth" else "least", int(words.pop(0)))
        elif word in TESTS and words:
            found.tests.append(_tested(word, words.pop(0), is_negated=is_negated))
        else:
            raise NotExact(f"find {word}")
    return found


def _tested(word: str, value: str, *, is_negated: bool) -> Test:
    if (
        (word == "-type" and value not in {"f", "d"})
        or (word != "-type" and re.search(r"[\[\\]", value))
        or not value.isascii()
    ):
        raise NotExact(f"find {word} {value}")
    test = TESTS[word](value)
    return (lambda process, shown: not test(process, shown)) if is_negated else test


def _name(shown: str) -> str:
    return posixpath.basename(shown.rstrip("/")) or "/"


TESTS: dict[str, Callable[[str], Test]] = {
    "-type": lambda kind: lambda process, shown: process.disk.is_directory(shown) == (kind == "d"),
    "-path": lambda glob: lambda _, shown: fnmatch.fnmatchcase(shown, glob),
    "-name": lambda glob: lambda _, shown: fnmatch.fnmatchcase(_name(shown), glob),
    "-iname": lambda glob: lambda _, shown: fnmatch.fnmatchcase(_name(shown).lower(), glob.lower()),
}


def _below(process: Process, shown: str, depth: int, most: int) -> Iterator[tuple[str, int]]:
    yield shown, depth
    if depth < most and process.disk.is_directory(shown):
        for entry in process.disk.names(shown):
            yield from _below(process, f"{shown}{'' if shown.endswith('/') else '/'}{entry}", depth + 1, most)
