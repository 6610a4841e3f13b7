"""What ``[[ ... ]]`` says."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from pytest_hermes_env.errors import UnsupportedSyntax
from pytest_hermes_env.sandbox.bash.expansion import Expander
from pytest_hermes_env.sandbox.bash.globs import expression
from pytest_hermes_env.sandbox.bash.state import State
from pytest_hermes_env.sandbox.bash.tree import Test
from pytest_hermes_env.sandbox.files import Files

__all__ = ["BadExpression", "holds", "on_disk"]

NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda left, right: left == right,
    "-ne": lambda left, right: left != right,
    "-lt": lambda left, right: left < right,
    "-le": lambda left, right: left <= right,
    "-gt": lambda left, right: left > right,
    "-ge": lambda left, right: left >= right,
}
CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\s",
    "punct": r"!-/:-@\[-`{-~",
}


class BadExpression(Exception):
    """A regular expression that cannot be read."""


def holds(test: Test, expander: Expander, files: Files, state: State) -> bool:
    """Return whether a test holds. Raises: BadExpression, ArithmeticProblem, UnsupportedSyntax."""
    if test.operator == "!":
        return not holds(test.tests[0], expander, files, state)
    if test.operator == "&&":
        return all(holds(one, expander, files, state) for one in test.tests)
    if test.operator == "||":
        return any(holds(one, expander, files, state) for one in test.tests)
    first = expander.text(test.words[0])
    if len(test.words) == 1:
        return _of_one(test.operator, first, files, state)
    if test.operator in {"=", "==", "!="}:
        matches = re.fullmatch(expression(expander.pattern(test.words[1])), first, re.DOTALL) is not None
        return matches == (test.operator != "!=")
    if test.operator == "=~":
        return _matches(first, expander.regex(test.words[1]))
    second = expander.text(test.words[1])
    if test.operator in NUMBERS:
        return NUMBERS[test.operator](expander.evaluated(first), expander.evaluated(second))
    if test.operator in {"<", ">"}:
        left, right = os.fsencode(first), os.fsencode(second)
        return left < right if test.operator == "<" else left > right
    one, other = files.resolve(first, state.cwd), files.resolve(second, state.cwd)
    if test.operator == "-ef":
        return files.exists(one) and one == other
    if test.operator == "-ot":
        one, other = other, one
    return files.exists(one) and (not files.exists(other) or files.changed_at(one) > files.changed_at(other))


def _of_one(operator: str, word: str, files: Files, state: State) -> bool:
    if operator == "-n":
        return bool(word)
    if operator == "-z":
        return not word
    if operator == "-v":
        return word in state.variables
    if operator == "-o":
        return {"errexit": "e", "nounset": "u", "xtrace": "x", "noglob": "f"}.get(word, word) in state.options
    if operator == "-t":
        return False
    if operator not in {
        "-a",
        "-e",
        "-f",
        "-d",
        "-s",
        "-r",
        "-w",
        "-x",
        "-L",
        "-h",
        "-O",
        "-G",
        "-b",
        "-c",
        "-p",
        "-S",
        "-g",
        "-k",
        "-u",
    }:
        raise UnsupportedSyntax(f"[[ {operator} {word} ]]", f"[[ {operator} ]]")
    return on_disk(operator, word, files, state.cwd)


def on_disk(operator: str, word: str, files: Files, cwd: str) -> bool:
    """Return what an operator says of a path."""
    if not word:
        return False
    path = files.resolve(word if not word.startswith("~") else f"./{word}", cwd)
    if path == "/dev/null":
        return operator in {"-a", "-e", "-r", "-w", "-c", "-O", "-G"}
    if operator == "-f":
        return files.is_file(path)
    if operator == "-d":
        return files.is_dir(path)
    if operator == "-s":
        return files.is_dir(path) or (files.is_file(path) and bool(files.read(path)))
    if operator == "-x":
        return files.is_dir(path) or (files.is_file(path) and files.is_executable(path))
    if operator in {"-a", "-e", "-r", "-w", "-O", "-G"}:
        return files.exists(path)
    return False


def _matches(text: str, pattern: str) -> bool:
    translated = re.sub(r"\[:([a-z]+):\]", lambda found: CLASSES.get(found[1], found[0]), pattern)
    try:
        return re.search(translated, text, re.DOTALL) is not None
    except re.error as error:
        raise BadExpression(str(error)) from error
