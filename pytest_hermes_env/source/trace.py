"""Origins of a value: an expression is followed back through local names, parameters and the calls that pass them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_hermes_env.source.functions import assigned_values
from pytest_hermes_env.source.syntax import SCOPES, argument, defaults_of, last_name, parameters, positional_parameters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_hermes_env.source.frames import Call, Frame
    from pytest_hermes_env.source.functions import Function

_MAX_DEPTH = 8

Origin = tuple[ast.expr, "Frame"]
"""An expression and the frame that contains it."""


def origins(node: ast.expr, frame: Frame, frames: Iterable[Frame], depth: int = 0) -> Iterator[Origin]:
    """Yield the expressions from which ``node`` takes its value; one that cannot be followed is yielded itself.

    Callers of ``frame`` are searched in ``frames``.
    """
    if depth > _MAX_DEPTH:
        yield node, frame
        return
    match node:
        case ast.Await(value=inner) | ast.NamedExpr(value=inner):
            yield from origins(inner, frame, frames, depth + 1)
        case ast.IfExp(body=body, orelse=orelse):
            yield from origins(body, frame, frames, depth + 1)
            yield from origins(orelse, frame, frames, depth + 1)
        case ast.BoolOp(values=values):
            for value in values:
                yield from origins(value, frame, frames, depth + 1)
        case ast.Name():
            yield from _of_name(node, frame, frames, depth + 1)
        case _:
            yield node, frame


def _of_name(node: ast.Name, frame: Frame, frames: Iterable[Frame], depth: int) -> Iterator[Origin]:
    bound = list(bindings(frame.function, node.id))
    if bound:
        for value in bound:
            if value is None:
                yield node, frame
            else:
                yield from origins(value, frame, frames, depth)
        return
    given = list(argument_origins(node, frame, frames))
    if not given:
        yield node, frame
    for value, caller in given:
        if value is node:
            yield value, caller
        else:
            yield from origins(value, caller, frames, depth)


def bindings(function: Function, name: str) -> Iterator[ast.expr | None]:
    """Yield the values that a function, or one inside it, assigns to a local name; None for one that is unpacked or iterated."""
    return assigned_values(function, name, ast.walk(function.node))


def argument_origins(node: ast.Name, frame: Frame, frames: Iterable[Frame]) -> Iterator[Origin]:
    """Yield what callers pass to the parameter ``node``, or its default; ``node`` itself if unpacking hides the argument."""
    scope = _scope_of_parameter(node, frame.function)
    if scope is None:
        return
    if scope is not frame.function.node:
        for call in _calls_of(scope, frame):
            yield _bound(call, scope, node, skipped=0), frame
        return
    skipped = 0 if frame.function.is_static else 1
    for caller in frames:
        for edge, target in caller.edges:
            if target.function is frame.function:
                is_plain = isinstance(edge, ast.Call) and last_name(edge.func) == frame.function.name
                yield (_bound(edge, scope, node, skipped=skipped), caller) if is_plain else (node, frame)


def _scope_of_parameter(node: ast.Name, function: Function) -> ast.AST | None:
    """Return the def or lambda around ``node`` with a parameter of its name."""
    scope = function.scope_of(node)
    while node.id not in parameters(scope):
        if scope is function.node:
            return None
        scope = function.scope_of(scope)
    return scope


def _calls_of(scope: ast.AST, frame: Frame) -> Iterator[ast.Call]:
    name = getattr(scope, "name", "")
    for node in ast.walk(frame.function.node):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


def _bound(call: ast.AST, scope: ast.AST, node: ast.Name, *, skipped: int) -> ast.expr:
    """Return what ``call`` passes to a parameter; the parameter itself if only running it would tell."""
    if not isinstance(call, ast.Call) or not isinstance(scope, SCOPES):
        return node
    positional = [item.arg for item in positional_parameters(scope.args)]
    position = positional.index(node.id) - skipped if node.id in positional else len(call.args)
    found = argument(call, position, node.id)
    if found is not None:
        return found
    if any(word.arg is None for word in call.keywords) or any(isinstance(item, ast.Starred) for item in call.args):
        return node
    return defaults_of(scope.args).get(node.id, node)


def may_be_unpacked(call: Call, name: str) -> bool:
    """Return whether an argument may be passed by ``*`` or ``**`` unpacking."""
    return name not in call.keywords and (
        "**" in call.keywords or any(isinstance(item, ast.Starred) for item in call.node.args)
    )
