"""Whether what an async function returns is awaited, as far as the function around the call shows."""

from __future__ import annotations

import ast

from pytest_hermes_env.source import Function, last_name

__all__ = ["is_awaited"]

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


def _is_of_a_group(function: Function, call: ast.Call) -> bool:
    """Whether a task is started by what an ``async with`` around it binds, which awaits it at its end."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return isinstance(owner, ast.Name) and any(
        isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name) and node.optional_vars.id == owner.id
        for node in function.own_nodes()
    )
