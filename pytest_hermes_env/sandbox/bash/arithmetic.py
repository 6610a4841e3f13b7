"""Arithmetic of the shell: whole numbers of 64 bits.

Source: bash 5.2, expr.c.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, MutableMapping

from pytest_hermes_env.sandbox.bash.words import COMPUTED
from pytest_hermes_env.sandbox.not_exact import NotExact

__all__ = ["evaluated"]

TOKEN = re.compile(r"\s*([0-9]+|[A-Za-z_][A-Za-z0-9_]*|\*\*|<=|>=|==|!=|&&|\|\||\+\+|--|\+=|-=|\*=|[-+*/%<>=!()?:&|^~,])")
NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")


def _divided(left: int, right: int) -> int:
    if not right:
        raise NotExact("a division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _to_power(left: int, right: int) -> int:
    if not 0 <= right <= 64:  # noqa: PLR2004 - bits
        raise NotExact("this exponent")
    return int(left**right)


BINARY: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "==": (3, operator.eq),
    "!=": (3, operator.ne),
    "<": (4, operator.lt),
    ">": (4, operator.gt),
    "<=": (4, operator.le),
    ">=": (4, operator.ge),
    "+": (5, operator.add),
    "-": (5, operator.sub),
    "*": (6, operator.mul),
    "/": (6, _divided),
    "%": (6, lambda left, right: left - right * _divided(left, right)),
}
"""Operator → how strongly it binds, and what it does. The operators with a right side that may be skipped are `NotExact`."""


def evaluated(text: str, variables: MutableMapping[str, str]) -> int:
    """Return the value of an expression, and make its assignments. Raises: an error, or anything rare → NotExact."""
    if plain := NUMBER.fullmatch(text.strip()):
        return int(plain[0])
    return _Evaluation(text, variables).whole()


class _Evaluation:
    """Reads and evaluates at once. Every operand is evaluated, so what would skip one is refused."""

    def __init__(self, text: str, variables: MutableMapping[str, str]) -> None:
        self.variables = variables
        self.tokens: list[str] = []
        at, text = 0, text.rstrip()
        while at < len(text):
            found = TOKEN.match(text, at)
            if not found:
                raise NotExact(f"the arithmetic {text}")
            self.tokens.append(found[1])
            at = found.end()
        self.tokens.append("")
        self.at = 0

    def whole(self) -> int:
        value = self._assignment()
        if self.tokens[self.at]:
            raise NotExact(f"{self.tokens[self.at]} in arithmetic")
        return value

    def _assignment(self) -> int:
        name, sign = self.tokens[0], self.tokens[1] if len(self.tokens) > 1 else ""
        if not name.isidentifier() or sign not in {"=", "+=", "-=", "*=", "++", "--"}:
            return self._binary(0)
        self.at = 2
        before = self._value_of(name)
        if sign in {"++", "--"}:
            self._set(name, before + (1 if sign == "++" else -1))
            return before
        right = self._binary(0)
        return self._set(name, {"=": right, "+=": before + right, "-=": before - right, "*=": before * right}[sign])

    def _set(self, name: str, value: int) -> int:
        self.variables[name] = str(_in_range(value))
        return value

    def _binary(self, least: int) -> int:
        left = self._unary()
        while (found := BINARY.get(self.tokens[self.at])) and found[0] > least:
            self.at += 1
            left = _in_range(int(found[1](left, self._binary(found[0]))))
        return left

    def _unary(self) -> int:
        token = self.tokens[self.at]
        self.at += 1
        if token in {"-", "+", "!"}:
            value = self._unary()
            return {"-": -value, "+": value, "!": int(not value)}[token]
        value = self._operand(token)
        if self.tokens[self.at] != "**":
            return value
        self.at += 1
        return _in_range(_to_power(value, self._unary()))

    def _operand(self, symbol: str) -> int:
        if symbol == "(":
            value = self._binary(0)
            if self.tokens[self.at] != ")":
                raise NotExact("a syntax error in arithmetic")
            self.at += 1
            return value
        if symbol.isidentifier():
            return self._value_of(symbol)
        if not NUMBER.fullmatch(symbol):
            raise NotExact(f"{symbol} in arithmetic")
        return int(symbol)

    def _value_of(self, name: str) -> int:
        value = self.variables.get(name, "").strip() or "0"
        if not NUMBER.fullmatch(value) or COMPUTED.fullmatch(name):
            raise NotExact(f"the value of {name} in arithmetic")
        return int(value)


def _in_range(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise NotExact("an overflow")
    return value
