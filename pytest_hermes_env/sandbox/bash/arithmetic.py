"""Arithmetic as bash does it: whole numbers of 64 bits, C's operators, variables by name."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

from pytest_hermes_env.errors import UnsupportedSyntax
from pytest_hermes_env.sandbox.bash.state import State

__all__ = ["ArithmeticProblem", "Unbound", "evaluated"]

TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]+#[0-9a-zA-Z@_]+|0[xX][0-9a-fA-F]+|[0-9]+[0-9a-zA-Z_]*)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<operator>\*\*|<<=|>>=|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&^|]=|[-+*/%<>=!~&^|?:,()]))"
)
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ@_"
ASSIGNING = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "^=", "|="})
LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": lambda left, right: left << (right & 63),
    ">>": lambda left, right: left >> (right & 63),
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
DEEPEST = 64


class ArithmeticProblem(Exception):
    """An expression that has no value; the text is bash's."""


class Unbound(Exception):
    """A variable without a value, under ``set -u``."""


def evaluated(text: str, state: State, depth: int = 0) -> int:
    """Return the value of an expression; assignments in it happen. Raises: ArithmeticProblem, Unbound."""
    if depth > DEEPEST:
        raise ArithmeticProblem(f'{text}: expression recursion level exceeded (error token is "{text}")')
    return _Expression(text, state, depth).value()


def _wrapped(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


class _Expression:
    def __init__(self, text: str, state: State, depth: int) -> None:
        self._text = text
        self._state = state
        self._depth = depth
        self._at = 0
        self._kind, self._token, self._start = "", "", 0
        self._skips = 0

    def value(self) -> int:
        self._next()
        if self._kind == "end":
            return 0
        number = self._comma()
        if self._kind != "end":
            raise self._problem("syntax error in expression")
        return number

    def _next(self) -> None:
        found = TOKEN.match(self._text, self._at)
        rest = self._text[self._at :].lstrip()
        self._start = len(self._text) - len(rest)
        if found:
            self._kind = found.lastgroup or ""
            self._token = found.group(self._kind)
            self._at = found.end()
        elif not rest:
            self._kind, self._token = "end", ""
        else:
            raise self._problem(
                "syntax error: operand expected" if not self._kind else "syntax error: invalid arithmetic operator"
            )

    def _problem(self, said: str) -> ArithmeticProblem:
        token = self._text[self._start :] or self._text[max(len(self._text.rstrip()) - 1, 0) :]
        return ArithmeticProblem(f'{self._text.lstrip()}: {said} (error token is "{token}")')

    def _takes(self, *operators: str) -> str:
        if self._kind == "operator" and self._token in operators:
            token = self._token
            self._next()
            return token
        return ""

    def _comma(self) -> int:
        number = self._conditional()
        while self._takes(","):
            number = self._conditional()
        return number

    def _conditional(self) -> int:
        number = self._binary(0)
        if not self._takes("?"):
            return number
        first = self._skipping(number == 0, self._comma)
        if not self._takes(":"):
            raise self._problem("`:' expected for conditional expression")
        second = self._skipping(number != 0, self._conditional)
        return first if number else second

    def _skipping(self, skips: bool, part: Callable[[], int]) -> int:
        self._skips += skips
        try:
            return part()
        finally:
            self._skips -= skips

    def _binary(self, level: int) -> int:
        if level == len(LEVELS):
            return self._power()
        number = self._binary(level + 1)
        while operator := self._takes(*LEVELS[level]):
            if operator in {"||", "&&"}:
                decided = bool(number) if operator == "||" else not number
                right = self._skipping(decided, lambda: self._binary(level + 1))
                number = int(bool(number) or bool(right)) if operator == "||" else int(bool(number) and bool(right))
            else:
                start = self._start
                number = self._applied(operator, number, self._binary(level + 1), start)
        return number

    def _power(self) -> int:
        number = self._unary()
        if self._takes("**"):
            start = self._start
            exponent = self._power()
            if exponent < 0:
                self._start = start + 1  # as bash does, behind the sign
                raise self._problem("exponent less than 0")
            return _wrapped(pow(number, exponent, 2**64))
        return number

    def _unary(self) -> int:
        if operator := self._takes("++", "--"):
            if self._kind != "name":
                return self._unary()  # two signs
            name = self._token
            self._next()
            return self._assign(name, self._variable(name) + (1 if operator == "++" else -1))
        if operator := self._takes("!", "~", "-", "+"):
            number = self._unary()
            return {"!": int(not number), "~": ~number, "-": _wrapped(-number), "+": number}[operator]
        return self._operand()

    def _operand(self) -> int:
        if self._takes("("):
            number = self._comma()
            if not self._takes(")"):
                raise self._problem("missing `)'")
            return number
        if self._kind == "number":
            number = self._number(self._token)
            self._next()
            return number
        if self._kind == "name":
            return self._named()
        raise self._problem("syntax error: operand expected")

    def _named(self) -> int:
        name = self._token
        if self._text.startswith("[", self._at):
            raise UnsupportedSyntax(self._text, "an array")
        self._next()
        if self._kind == "operator" and self._token in ASSIGNING:
            operator, start = self._token, self._start
            self._next()
            start = self._start
            number = self._conditional()
            if operator != "=":
                number = self._applied(operator[:-1], self._variable(name), number, start)
            return self._assign(name, number)
        if operator := self._takes("++", "--"):
            number = self._variable(name)
            self._assign(name, number + (1 if operator == "++" else -1))
            return number
        return self._variable(name)

    def _assign(self, name: str, number: int) -> int:
        number = _wrapped(number)
        if not self._skips:
            if name in self._state.readonly:
                raise ArithmeticProblem(f"{name}: readonly variable")
            self._state.variables[name] = str(number)
        return number

    def _variable(self, name: str) -> int:
        if self._skips:
            return 0
        if "u" in self._state.options and name not in self._state.variables:
            raise Unbound(name)
        text = self._state.variables.get(name, "")
        if re.fullmatch(r"\s*-?(0|[1-9][0-9]*)\s*", text):
            return _wrapped(int(text))
        return evaluated(text, self._state, self._depth + 1)

    def _number(self, text: str) -> int:
        base, hash_, digits = text.partition("#")
        radix = 10
        if hash_:
            radix = int(base)
            digits = digits if radix > 36 else digits.lower()  # noqa: PLR2004 - beyond it capitals are digits of their own
            if not 2 <= radix <= 64:  # noqa: PLR2004
                raise self._problem("invalid arithmetic base")
        elif text[:2] in {"0x", "0X"}:
            radix, digits = 16, text[2:].lower()
        elif text.startswith("0") and len(text) > 1:
            radix, digits = 8, text[1:]
        else:
            digits = text
        number = 0
        for digit in digits:
            value = DIGITS.find(digit)
            if not 0 <= value < radix:
                raise self._problem("value too great for base")
            number = number * radix + value
        return _wrapped(number)

    def _applied(self, sign: str, left: int, right: int, start: int) -> int:
        if sign in {"/", "%"}:
            if not right:
                if self._skips:
                    return 0
                self._start = start
                raise self._problem("division by 0")
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            return _wrapped(quotient) if sign == "/" else left - quotient * right
        return _wrapped(int(OPERATIONS[sign](left, right)))
