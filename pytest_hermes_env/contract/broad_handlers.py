"""Whether what a line raises is caught whatever it is."""

from __future__ import annotations

import ast
import linecache
from typing import TypeGuard

_BROAD = frozenset({"Exception", "BaseException"})


def is_caught_broadly(path: str, line: int) -> bool:
    """Return whether the innermost ``try`` or ``suppress`` around a line catches every exception."""
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:
        return False
    around = [node for node in ast.walk(tree) if _catches_at(node, line)]
    return bool(around) and _is_broad(max(around, key=lambda node: node.lineno))


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
