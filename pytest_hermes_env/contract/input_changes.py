"""Where compute_reward, or a helper, changes the item or the result that it was given: also in code that only good work reaches.

Followed are names for the objects themselves and for what is inside them, also into helpers; a call that makes a copy ends it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pytest_hermes_env.source import ClassSource, Frame, Function, data_flow
from pytest_hermes_env.source.local_names import assignments
from pytest_hermes_env.source.syntax import positional_parameters

_CHANGES = frozenset(
    {
        "add",
        "append",
        "clear",
        "discard",
        "extend",
        "insert",
        "pop",
        "popitem",
        "remove",
        "reverse",
        "setdefault",
        "sort",
        "update",
    }
)
_PARTS = frozenset({"get", "items", "values"})
"""Methods that return what is inside of a collection, and no copy of it."""
_COLLECTIONS = (ast.List, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp)
_MAKERS = frozenset({"list", "set", "dict", "sorted"})


def changed_inputs(source: ClassSource) -> Iterator[tuple[Function, ast.AST, str]]:
    """Yield the functions and nodes that change an input of compute_reward, and which one: "the item" or "the result"."""
    start = data_flow(source).method("compute_reward")
    if start is not None:
        names = dict(zip(start.function.positional[1:3], ("the item", "the result"), strict=False))
        yield from _Inputs().changes(start, names)


@dataclass
class _Inputs:
    """The functions that were looked at, each with the names that it has for inputs."""

    seen: set[tuple[Function, tuple[tuple[str, str], ...]]] = field(default_factory=set)

    def changes(self, frame: Frame, given: Mapping[str, str]) -> Iterator[tuple[Function, ast.AST, str]]:
        function = frame.function
        names = _with_locals(function, {name: what for name, what in given.items() if not any(assignments(function, name))})
        key = function, tuple(sorted(names.items()))
        if not names or key in self.seen:
            return
        self.seen.add(key)
        for node in function.own_nodes():
            if (changed := _changed(node, names)) and (what := _input(changed, names)):
                yield function, node, what
        for call, inner in frame.edges:
            if isinstance(call, ast.Call):
                passed = {name: what for name, part in _passed(call, inner.function) if (what := _input(part, names))}
                yield from self.changes(inner, passed)


def _with_locals(function: Function, names: Mapping[str, str]) -> dict[str, str]:
    """Return the names with the local ones that are bound to nothing but inputs, or to what is inside them."""
    found = dict(names)
    size = -1
    while size != len(found):
        size = len(found)
        for node in function.own_nodes():
            targets = [node.target] if isinstance(node, ast.For | ast.NamedExpr) else getattr(node, "targets", [])
            for name in (inner.id for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)):
                bound = [value for at, value in assignments(function, name) if not isinstance(at, ast.AugAssign | ast.Call)]
                whats = {_input(value, found) if isinstance(value, ast.expr) else "" for value in bound}
                if len(whats) == 1 and "" not in whats:
                    found[name] = whats.pop()
    return found


def _input(node: ast.AST, names: Mapping[str, str]) -> str:
    """Return which input an expression is, or is inside of; nothing for a copy."""
    while not isinstance(node, ast.Name):
        if (isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice)) or isinstance(node, ast.Attribute):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PARTS:
            node = node.func.value
        else:
            return ""
    return names.get(node.id, "")


def _changed(node: ast.AST, names: Mapping[str, str]) -> ast.expr | None:
    """Return what a node changes."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
        return node.func.value
    if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
        return node.value
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        is_made = isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name) and node.value.func.id in _MAKERS
        if is_made or isinstance(node.value, _COLLECTIONS) or _input(node.value, names):
            return node.target
    return None


def _passed(call: ast.Call, function: Function) -> Iterator[tuple[str, ast.expr]]:
    names = [item.arg for item in positional_parameters(function.node.args)]
    names = names if function.is_static else names[1:]
    yield from ((name, part) for name, part in zip(names, call.args, strict=False) if not isinstance(part, ast.Starred))
    yield from ((word.arg, word.value) for word in call.keywords if word.arg)
