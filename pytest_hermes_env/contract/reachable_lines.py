"""Which lines of a file a class or a function leads to: its own, and those of the functions of that file that it calls."""

from __future__ import annotations

import ast
import linecache
from collections import defaultdict

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def lines_reached(path: str, line: int) -> frozenset[int]:
    """Return the lines of the definition that begins at ``line``, where its decorators count as its beginning.

    With those of a function come the lines of all that it calls by name. Empty where no definition begins.
    """
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:
        return frozenset()
    functions: dict[str, list[_Function]] = defaultdict(list)
    met: set[_Function | ast.ClassDef] = set()
    for node in ast.walk(tree):
        if isinstance(node, _Function):
            functions[node.name].append(node)
        if isinstance(node, (_Function, ast.ClassDef)) and _begins(node) <= line <= node.lineno:
            met.add(node)
    pending = [node for node in met if isinstance(node, _Function)]
    while pending:
        for part in ast.walk(pending.pop()):
            for called in functions.get(_name_of(part), ()):
                if called not in met:
                    met.add(called)
                    pending.append(called)
    return frozenset(number for node in met for number in range(_begins(node), (node.end_lineno or node.lineno) + 1))


def _begins(node: _Function | ast.ClassDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _name_of(node: ast.AST) -> str:
    """Return the name that an expression may call: ``helper``, or ``self.helper`` whatever the object."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else ""
