"""What stands at a line of a file: whether its statement was run or catches whatever is raised there, and the lines of a definition."""

from __future__ import annotations

import ast
import linecache
import os
from collections.abc import Set as AbstractSet
from typing import TypeGuard

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BROAD = frozenset({"Exception", "BaseException"})
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


def is_caught_broadly(path: str, line: int) -> bool:
    """Return whether the innermost ``try`` or ``suppress`` around a line catches every exception."""
    around = [node for node in _statements(path) if _catches_at(node, line)]
    return bool(around) and _is_broad(max(around, key=lambda node: node.lineno))


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


def _catches_at(node: ast.AST, line: int) -> TypeGuard[ast.Try | ast.With | ast.AsyncWith]:
    if isinstance(node, ast.Try):
        return node.body[0].lineno <= line <= (node.body[-1].end_lineno or 0) and bool(node.handlers)
    if isinstance(node, ast.With | ast.AsyncWith):
        return node.lineno <= line <= (node.end_lineno or 0) and any(_suppressed(item) for item in node.items)
    return False


def _is_broad(node: ast.Try | ast.With | ast.AsyncWith) -> bool:
    if isinstance(node, ast.Try):
        return any(handler.type is None or _names(handler.type) & _BROAD for handler in node.handlers)
    return any(_names(argument) & _BROAD for item in node.items for argument in _suppressed(item))


def _suppressed(item: ast.withitem) -> list[ast.expr]:
    call = item.context_expr
    return call.args if isinstance(call, ast.Call) and "suppress" in _names(call.func) else []


def _names(node: ast.expr) -> set[str]:
    nodes = node.elts if isinstance(node, ast.Tuple) else [node]
    return {one.id if isinstance(one, ast.Name) else one.attr for one in nodes if isinstance(one, ast.Name | ast.Attribute)}
