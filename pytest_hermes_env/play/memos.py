"""Attributes that are only looked up by key, such as a memory of rewards by content: they hold nothing that training adds up.

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
    """Return the attributes of self that a class makes as an empty mapping, and then only asks for and sets by key; none where its source is not known."""
    uses: dict[str, list[str]] = {}
    for one in env_class.__mro__:
        if one is not object and not one.__module__.startswith(_LAYER):
            with contextlib.suppress(OSError, TypeError, SyntaxError):
                for name, use in _uses(ast.parse(textwrap.dedent(inspect.getsource(one)))):
                    uses.setdefault(name, []).append(use)
    return frozenset(
        name for name, found in uses.items() if {"set", "asked"} <= {*found} <= {"made", "set", "asked", "counted"}
    )


def _uses(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each attribute of self with how it is used."""
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            yield node.attr, _use(node, parents)


def _use(node: ast.Attribute, parents: dict[ast.AST, ast.AST]) -> str:
    parent = parents[node]
    above = parents.get(parent)
    match parent:
        case ast.Assign(value=value) | ast.AnnAssign(value=value) if isinstance(node.ctx, ast.Store):
            is_empty = ast.unparse(value) in {"{}", "dict()", "OrderedDict()"} if value is not None else False
            return "made" if is_empty else "other"
        case ast.Subscript(value=held, ctx=ctx) if held is node:
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
