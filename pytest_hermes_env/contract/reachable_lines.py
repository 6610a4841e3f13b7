"""Which lines of a file a function leads to: its own, and those of the functions and methods of that file that it calls."""

from __future__ import annotations

import ast
import linecache
from collections import defaultdict

__all__ = ["lines_reached"]


def lines_reached(path: str, line: int) -> frozenset[int]:
    """Return the lines of the function whose ``def`` or decorator stands at ``line``, and of all that it calls by name.

    Empty where no function begins there.
    """
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:
        return frozenset()
    functions: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = defaultdict(list)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            functions[node.name].append(node)
    pending = [node for several in functions.values() for node in several if _begins(node) <= line <= node.lineno]
    met = set(pending)
    while pending:
        for part in ast.walk(pending.pop()):
            for called in functions.get(_name_of(part), ()):
                if called not in met:
                    met.add(called)
                    pending.append(called)
    return frozenset(number for node in met for number in range(_begins(node), (node.end_lineno or node.lineno) + 1))


def _begins(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _name_of(node: ast.AST) -> str:
    """Return the name that an expression may call: ``helper``, or ``self.helper`` whatever the object."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else ""
