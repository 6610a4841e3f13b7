"""Whether what an async function returns is awaited, as far as the function around the call shows."""

from __future__ import annotations

import ast
from collections.abc import Coroutine

from pytest_hermes_env.source import Function, last_name

_OF_COROUTINES = frozenset({name for name in dir(Coroutine) if not name.startswith("_")} | {"__await__"})
_STARTS = frozenset({"create_task", "ensure_future", "run_coroutine_threadsafe"})


def is_awaited(function: Function, node: ast.AST) -> bool:
    """Whether the coroutine is awaited, or handed to something that awaits it."""
    parent = function.parents[node]
    if isinstance(parent, ast.Call) and last_name(parent.func) in _STARTS and not _is_of_a_group(function, parent):
        return is_awaited(function, parent)
    if isinstance(parent, (ast.Await, ast.Call, ast.Starred, ast.List, ast.Tuple)):
        return True
    if isinstance(parent, (ast.Assign, ast.NamedExpr, ast.AnnAssign)):
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        names = {item.id for item in targets if isinstance(item, ast.Name)}
        return any(
            isinstance(other, ast.Await) and isinstance(other.value, ast.Name) and other.value.id in names
            for other in function.own_nodes()
        )
    return False


def used_unawaited(function: Function, node: ast.AST) -> str:
    """Return how a coroutine is used as if it were its result, or nothing: it is dropped, or an attribute or item of it is read."""
    parent = function.parents[node]
    if isinstance(parent, ast.Expr):
        return "is dropped: nothing of it runs"
    if (read := _read_of(function, node)) is not None:
        return f"is no result: {ast.unparse(read)} raises"
    name = parent.targets[0] if isinstance(parent, ast.Assign) and len(parent.targets) == 1 else None
    if not isinstance(name, ast.Name):
        return ""
    uses = [
        other for other in function.own_nodes() if isinstance(other, ast.Name) and other.id == name.id and other is not name
    ]
    reads = [read for use in uses if (read := _read_of(function, use)) is not None]
    is_plain = all(isinstance(use.ctx, ast.Load) for use in uses) and len(reads) == len(uses)  # nobody else gets it
    return f"is no result: {ast.unparse(reads[0])} raises" if reads and is_plain else ""


def _read_of(function: Function, node: ast.AST) -> ast.expr | None:
    parent = function.parents[node]
    if isinstance(parent, ast.Attribute) and parent.value is node and parent.attr not in _OF_COROUTINES:
        return parent
    return parent if isinstance(parent, ast.Subscript) and parent.value is node else None


def _is_of_a_group(function: Function, call: ast.Call) -> bool:
    """Whether a task is started by what an ``async with`` around it binds, which awaits it at its end."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return isinstance(owner, ast.Name) and any(
        isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name) and node.optional_vars.id == owner.id
        for node in function.own_nodes()
    )
