"""Arithmetic of the shell: sums, products, remainders and comparisons of whole numbers.

Source: bash 5.2, expr.c. Its expressions without other operators mean the same in Python, but for the division.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping

from pytest_hermes_env.sandbox.bash.words import COMPUTED
from pytest_hermes_env.sandbox.not_exact import NotExact

__all__ = ["evaluated"]

KNOWN = re.compile(
    r"(?:[A-Za-z_][A-Za-z0-9_]*|(?<![0-9])(?:0|[1-9][0-9]{0,14})(?![0-9A-Za-z_])|[ ()+-]|\*(?!\*)|[/%](?![/%])|[<>](?![<>])|[=!<>]=)*"
)
NUMBER = re.compile(r"\s*(0|-?[1-9][0-9]{0,14})\s*")
OPERATORS: dict[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda left, right: abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1),
    ast.Mod: lambda left, right: abs(left) % abs(right) * (-1 if left < 0 else 1),
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
MOST = 2**62


def evaluated(text: str, variables: Mapping[str, str]) -> int:
    """Return the value of an expression. Raises: an error, or anything rare → NotExact."""
    if not KNOWN.fullmatch(text) or re.search(r"\+\+|--", text):
        raise NotExact(f"the arithmetic {text}")
    try:
        return _value(ast.parse(text.strip(), mode="eval").body, variables)
    except (SyntaxError, ZeroDivisionError):
        raise NotExact(f"the arithmetic {text}") from None


def _value(node: ast.AST, variables: Mapping[str, str]) -> int:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name):
            found = NUMBER.fullmatch(variables.get(name, "") or "0")
            if found and not COMPUTED.fullmatch(name):
                return int(found[1])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, variables)
        case ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right]):
            value = int(OPERATORS[type(op)](_value(left, variables), _value(right, variables)))
            if abs(value) < MOST:
                return value
    raise NotExact("this arithmetic")
