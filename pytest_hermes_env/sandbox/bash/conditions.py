"""What ``[[ ... ]]`` says."""

from __future__ import annotations

import os
import re

from pytest_hermes_env.errors import UnsupportedSyntax
from pytest_hermes_env.sandbox.bash.expansion import Expander
from pytest_hermes_env.sandbox.bash.globs import expression
from pytest_hermes_env.sandbox.bash.tree import Test
from pytest_hermes_env.sandbox.commands.patterns import CLASSES
from pytest_hermes_env.sandbox.commands.words import NUMBERS, UNARY, holds_of_file, holds_of_files

__all__ = ["BadExpression", "holds"]


class BadExpression(Exception):
    """A regular expression that cannot be read."""


def holds(test: Test, expander: Expander) -> bool:
    """Return whether a test holds. Raises: BadExpression, ArithmeticProblem, UnsupportedSyntax."""
    if test.operator == "!":
        return not holds(test.tests[0], expander)
    if test.operator == "&&":
        return all(holds(one, expander) for one in test.tests)
    if test.operator == "||":
        return any(holds(one, expander) for one in test.tests)
    first = expander.text(test.words[0])
    if len(test.words) == 1:
        return _of_one(test.operator, first, expander)
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
    return holds_of_files(test.operator, first, second, expander.files, expander.state.cwd)


def _of_one(operator: str, word: str, expander: Expander) -> bool:
    if operator in {"-n", "-z"}:
        return bool(word) == (operator == "-n")
    if operator == "-v":
        return word in expander.state.variables
    if operator != "-a" and operator not in UNARY:
        raise UnsupportedSyntax(f"[[ {operator} {word} ]]", f"[[ {operator} ]]")
    return holds_of_file(operator, word, expander.files, expander.state.cwd)


def _matches(text: str, pattern: str) -> bool:
    translated = re.sub(r"\[:([a-z]+):\]", lambda found: CLASSES.get(found[1], found[0]), pattern)
    try:
        return re.search(translated, text, re.DOTALL) is not None
    except re.error as error:
        raise BadExpression(str(error)) from error
