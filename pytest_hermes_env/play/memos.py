"""Attributes in which one method remembers its results by key, such as rewards by content: training adds nothing up in them.

Place in the flow: `buffers` leaves them out of its pictures.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import textwrap
from collections.abc import Iterator

_ASKED = frozenset({"get", "pop", "clear", "popitem"})
_LAYER = ("environments.", "atroposlib.")


@functools.cache
def memos_of(env_class: type) -> frozenset[str]:
    """Return the attributes of self that one method alone asks for and sets by key, and that are empty mappings at first.

    What another method reads is a result, such as a metric; so is what has fixed keys. None where the source is not known.
    """
    uses: dict[str, list[tuple[str, str]]] = {}
    for one in env_class.__mro__:
        if one is not object and not one.__module__.startswith(_LAYER):
            with contextlib.suppress(OSError, TypeError, SyntaxError):
                for name, use in _uses(ast.parse(textwrap.dedent(inspect.getsource(one)))):
                    uses.setdefault(name, []).append(use)
    return frozenset(name for name, found in uses.items() if _remembers(found))


def _remembers(uses: list[tuple[str, str]]) -> bool:
    kinds, methods = {kind for _, kind in uses}, {method for method, kind in uses if kind != "made"}
    return len(methods) == 1 and {"set", "asked"} <= kinds <= {"made", "set", "asked", "counted"}


def _uses(tree: ast.Module) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each attribute of self with the method that uses it, and how."""
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    for method in ast.walk(tree):
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and isinstance(parents[method], ast.ClassDef):
            for node in ast.walk(method):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
                    yield node.attr, (method.name, _use(node, parents))


def _use(node: ast.Attribute, parents: dict[ast.AST, ast.AST]) -> str:
    parent = parents[node]
    above = parents.get(parent)
    match parent:
        case ast.Assign(value=value) | ast.AnnAssign(value=value) if isinstance(node.ctx, ast.Store):
            is_empty = value is not None and ast.unparse(value) in {"{}", "dict()", "OrderedDict()"}
            return "made" if is_empty else "other"
        case ast.Subscript(value=held, slice=key, ctx=ctx) if held is node and not isinstance(key, ast.Constant):
            if isinstance(ctx, ast.Load):
                return "other" if isinstance(above, ast.Attribute) else "asked"
            return "other" if isinstance(above, ast.AugAssign) else "set"
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[held]) if held is node:
            return "asked"
        case ast.Attribute(attr=name) if name in _ASKED:
            return "asked"
        case ast.Call(func=ast.Name(id="len")):
            return "counted"
    return "other"
