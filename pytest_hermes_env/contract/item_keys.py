"""Keys that a reward asks an item for, and that no item has: such a line raises as soon as good work reaches it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.source import Function, last_name, reach_of

if TYPE_CHECKING:
    from pytest_hermes_env.source import ClassSource

_DEPTH = 3
_OF_KEYS = frozenset({"KeyError", "LookupError"})


def unknown_keys(source: ClassSource, items: Sequence[Any]) -> Iterator[tuple[Function, ast.Subscript, str]]:
    """Yield each ``item["key"]`` in compute_reward and what it calls whose key no item has; only dicts are judged.

    A key that the code also looks for in another way (``in``, ``get``, a handler for KeyError) may be missing on purpose.
    """
    function = source.methods.get("compute_reward")
    if function is None or not items or not all(type(item) is dict for item in items):
        return
    positional = function.positional[0 if function.is_static else 1 :]
    known = {key for item in items for key in item}
    if positional:
        for inner, node, key in dict.fromkeys(_reads(source, function, positional[0], 0)):
            if key not in known and not _is_optional(source, key):
                yield inner, node, key


def _reads(source: ClassSource, function: Function, item: str, depth: int) -> Iterator[tuple[Function, ast.Subscript, str]]:
    nodes = list(function.own_nodes())
    if any(isinstance(node, ast.Name) and node.id == item and not isinstance(node.ctx, ast.Load) for node in nodes):
        return  # from somewhere on the name holds something else
    for node in nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _is_name(node.value, item):
            key = node.slice.value if isinstance(node.slice, ast.Constant) else None
            if isinstance(key, str) and not _is_guarded(function, node):
                yield function, node, key
    if depth == _DEPTH:
        return
    for call in reach_of(source).calls_in(function):
        if isinstance(call.target, Function) and call.target is not function:
            for given, name in zip(call.node.args, call.target.positional_without_self, strict=False):
                if _is_name(given, item):
                    yield from _reads(source, call.target, name, depth + 1)


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_guarded(function: Function, node: ast.AST) -> bool:
    """Tell whether a handler for missing keys, a lambda or a condition is around a read."""
    for child, parent in function.ancestors(node):
        if isinstance(parent, ast.If | ast.IfExp | ast.While) and child is not parent.test:
            return True
        if isinstance(parent, ast.Lambda | ast.Match):
            return True
        if isinstance(parent, ast.Try):
            kinds = [kind for handler in parent.handlers for kind in _kinds(handler.type)]
            if _OF_KEYS & {last_name(kind) for kind in kinds}:
                return True
    return False


def _kinds(node: ast.expr | None) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node] if node is not None else []


def _is_optional(source: ClassSource, key: str) -> bool:
    """Tell whether the module names the key anywhere but in a read, such as in a test, an assignment or a table of names."""
    for module in source.modules:
        reads = {
            node.slice for node in ast.walk(module.tree) if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
        }
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Constant) and node.value == key and node not in reads:
                return True
    return False
