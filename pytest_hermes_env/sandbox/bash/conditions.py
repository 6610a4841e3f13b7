"""What ``test``, ``[`` and ``[[ ]]`` decide."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence

from pytest_hermes_env.sandbox.commands.disk import Disk
from pytest_hermes_env.sandbox.commands.process import Process
from pytest_hermes_env.sandbox.not_exact import NotExact

__all__ = ["holds", "test"]

NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": operator.eq,
    "-ne": operator.ne,
    "-lt": operator.lt,
    "-le": operator.le,
    "-gt": operator.gt,
    "-ge": operator.ge,
}
NUMBER = re.compile(r"\s*[-+]?\d{1,18}\s*", re.ASCII)
ONE, TWO, THREE, FOUR = 1, 2, 3, 4


class _NotANumber(Exception):
    """A word that is compared as a number is none."""


def test(process: Process) -> int:
    """``test`` and ``[``: by the number of the words. More than four, and operators that combine, are not known."""
    words = list(process.arguments)
    if process.name == "[" and (not words or words.pop() != "]"):
        return process.fail("missing `]'", code=2)
    if not words:
        return 1
    if len(words) > FOUR or (len(words) > TWO and {words[1], words[-2]} & {"-a", "-o"}) or (len(words) > ONE and "(" in words):
        raise NotExact("test with several conditions")
    is_negated = (words[0] == "!" and len(words) in {TWO, FOUR}) or (
        words[0] == "!" and len(words) == THREE and words[1] not in NUMBERS and words[1] not in {"=", "==", "!=", "<", ">"}
    )
    if is_negated:
        words.pop(0)
    try:
        return int(holds(words, process.disk) == is_negated)
    except _NotANumber as error:
        return process.fail(f"{error}: integer expression expected", code=2)


def holds(words: Sequence[str], disk: Disk, *, is_strict: bool = False) -> bool:
    """Return whether a condition of one to three words holds. ``is_strict``: numbers are arithmetic, as in ``[[ ]]``."""
    if len(words) == ONE:
        return bool(words[0])
    if len(words) == TWO:
        return _holds_of_one(words[0], words[1], disk)
    if len(words) != THREE:
        raise NotExact("this test")
    left, comparison, right = words
    if comparison in {"=", "==", "!="}:
        return (left == right) == (comparison != "!=")
    if comparison not in NUMBERS:
        raise NotExact(f"test {comparison}")
    for word in (left, right):
        if not NUMBER.fullmatch(word) or (is_strict and re.match(r"\s*[-+]?0.|\s*\+", word)):
            if is_strict:
                raise NotExact("arithmetic in [[ ]]")
            if not re.fullmatch(r"[A-Za-z.,:_-]*", word):
                raise NotExact("this number in test")
            raise _NotANumber(word)
    return NUMBERS[comparison](int(left), int(right))


def _holds_of_one(name: str, word: str, disk: Disk) -> bool:
    if name in {"-z", "-n"}:
        return (word == "") == (name == "-z")
    if name not in {"-e", "-f", "-d", "-s", "-r", "-w", "-x"}:
        raise NotExact(f"test {name}")
    if word.startswith("/dev/"):
        raise NotExact(word)
    if disk.is_directory(word):
        return name != "-f"
    if name == "-d" or not disk.is_file(word):
        return False
    if name == "-s":
        return bool(disk.read(word))
    return name != "-x" or disk.is_executable(word)
