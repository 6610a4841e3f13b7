"""What stands at a line of a file: whether its statement was run, and which lines the definition has that begins there."""

from __future__ import annotations

import ast
import linecache
import os
from collections.abc import Set as AbstractSet

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def was_run(path: str, line: int, lines: AbstractSet[tuple[str, int]]) -> bool:
    """Return whether the innermost statement at ``line`` was run; a function definition is when its body was.

    A statement outside of all functions counts as run, because the class was imported; one below an ``if`` does not.
    """
    around = [node for node in _statements(path) if _begins(node) <= line <= _end(node)]
    if not around:
        return False
    statement = max(around, key=_begins)
    if not any(isinstance(node, _Function) for node in around):
        return not any(isinstance(node, ast.If | ast.Try) for node in around)
    file = os.path.realpath(path)
    return any((file, number) in lines for number in _own_lines(statement))


def lines_of_definition(path: str, line: int) -> range:
    """Return the lines of the function or class that begins at ``line``, with its decorators; none where no definition begins."""
    found = [node for node in _statements(path) if isinstance(node, _DEFINITIONS) and _begins(node) <= line <= node.lineno]
    return range(_begins(found[0]), _end(found[0]) + 1) if found else range(0)


def _statements(path: str) -> list[ast.stmt]:
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]


def _begins(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _own_lines(statement: ast.stmt) -> range:
    """Return the lines whose run shows that a statement was run: the body of a function, the head of a block, all of another."""
    body = getattr(statement, "body", None)
    if not body:
        return range(statement.lineno, _end(statement) + 1)
    if isinstance(statement, _Function):
        return range(body[0].lineno, _end(statement) + 1)
    return range(statement.lineno, max(body[0].lineno, statement.lineno + 1))
