"""The local names of a function: which statements bind one, to what, and which of them certainly reach a use."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_hermes_env.source.functions import Function
from pytest_hermes_env.source.syntax import last_name

_APPENDING = frozenset({"append", "extend", "insert", "add"})


def binds(target: ast.AST, name: str) -> bool:
    """Return whether a target binds the name."""
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(target))


def assignments(function: Function, name: str) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    """Yield the statements that bind a name, with the expression that each binds it to; None for an exception."""
    for node in ast.walk(function.node):
        if isinstance(node, ast.Assign) and any(binds(target, name) for target in node.targets if _is_plain(target)):
            yield node, _part_of(node, name)
        elif (isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None and binds(node.target, name)) or (
            isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == name
        ):
            yield node, node.value
        elif isinstance(node, (ast.For, ast.AsyncFor)) and binds(node.target, name):
            yield node, node.iter
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if item.optional_vars is not None and binds(item.optional_vars, name):
                    yield node, item.context_expr
        elif isinstance(node, ast.ExceptHandler) and node.name == name:
            yield node, None
        elif isinstance(node, ast.Call) and node.args and _is_method_of(node.func, name, _APPENDING):
            yield node, node.args[-1]


def is_membership_test(node: ast.Compare, name: str) -> bool:
    """Return whether a comparison asks whether the name is in something."""
    is_of_name = isinstance(node.left, ast.Name) and node.left.id == name
    return is_of_name and any(isinstance(operator, (ast.In, ast.NotIn)) for operator in node.ops)


def _is_method_of(node: ast.AST, name: str, methods: frozenset[str]) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in methods and last_name(node.value) == name


def _is_plain(target: ast.AST) -> bool:
    return isinstance(target, (ast.Name, ast.Tuple, ast.List))


def _part_of(node: ast.Assign, name: str) -> ast.expr:
    """Return the part of a tuple that is assigned to a name, if both sides are written out."""
    for target in node.targets:
        if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(node.value, (ast.Tuple, ast.List)):
            continue
        pairs = zip(target.elts, node.value.elts, strict=False)
        found = [value for part, value in pairs if binds(part, name)]
        if found and len(target.elts) == len(node.value.elts):
            return found[0]
    return node.value


def statements_around(function: Function, use: ast.AST) -> set[ast.AST]:
    """Return the statements of the blocks that contain ``use``: an earlier assignment among them certainly reaches it."""
    found: set[ast.AST] = set()
    for child, parent in function.ancestors(use):
        blocks = (getattr(parent, name, None) for name in ("body", "orelse", "finalbody"))
        found.update(*(block for block in blocks if isinstance(block, list) and child in block))
    return found
