"""Helpers for syntax trees: child nodes, names, parameters and annotations."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

_BLOCKS = (
    ast.If, ast.Try, ast.TryStar, ast.With, ast.AsyncWith, ast.For, ast.AsyncFor, ast.While, ast.Match,
)  # fmt: skip

_OPTIONAL = r"(?:Optional\[)?[\w.]*\b{}\]?(?:\s*\|\s*None)?"
"""How an annotation of a class, perhaps optional, is written."""


def flat_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a block and of the if, try, with, loop and match blocks in it, but not of a def or class."""
    pending = list(body)[::-1]
    while pending:
        statement = pending.pop()
        yield statement
        if not isinstance(statement, _BLOCKS):
            continue
        inner: list[ast.stmt] = []
        for name in ("body", "handlers", "orelse", "finalbody", "cases"):
            for part in getattr(statement, name, ()):
                inner.extend(part.body if isinstance(part, (ast.ExceptHandler, ast.match_case)) else [part])
        pending.extend(reversed(inner))


def named_values(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Yield the plain names that an assignment binds, with its value; nothing for another statement."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
        for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
            if isinstance(target, ast.Name):
                yield target.id, statement.value


def last_name(node: ast.AST) -> str:
    """Return the last part of a dotted name, seen through calls and subscripts; empty for anything else."""
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """Return the value of a keyword argument, or None if it is not passed."""
    return next((word.value for word in call.keywords if word.arg == name), None)


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """Return the argument passed by keyword or position; None if it is not passed or a starred argument hides it."""
    found = keyword(call, name)
    before = call.args[: position + 1]
    if found is not None or len(before) <= position or any(isinstance(item, ast.Starred) for item in before):
        return found
    return before[position]


def positional_parameters(arguments: ast.arguments) -> list[ast.arg]:
    """Return the parameters that can be passed by position."""
    return [*arguments.posonlyargs, *arguments.args]


def parameters(scope: ast.AST) -> tuple[str, ...]:
    """Return the names of the parameters of a def or a lambda."""
    return (
        tuple(item.arg for item in (*positional_parameters(scope.args), *scope.args.kwonlyargs))
        if isinstance(scope, SCOPES)
        else ()
    )


def defaults_of(arguments: ast.arguments) -> Mapping[str, ast.expr]:
    """Return the default expressions by parameter name."""
    names = [item.arg for item in positional_parameters(arguments)]
    found = dict(zip(names[::-1], arguments.defaults[::-1], strict=False))
    for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            found[item.arg] = default
    return found


def is_annotated_as(name: str, node: ast.expr | None) -> bool:
    """Return whether an annotation is ``name``, a class of the layer, perhaps quoted, perhaps optional."""
    return node is not None and re.fullmatch(_OPTIONAL.format(name), annotation_text(node).strip()) is not None


def annotation_text(node: ast.expr) -> str:
    """Return an annotation as text, whether it is quoted or not."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    try:
        return ast.unparse(node)
    except RecursionError:
        return ""
