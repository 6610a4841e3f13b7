"""Tells by its own code whether a class is an evaluation only: its training methods give nothing, whatever the data are."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

__all__ = ["why_nothing_is_trained"]

LOGS = frozenset({"log", "logger", "logging", "_log", "_logger", "LOG", "LOGGER", "warnings", "print"})


def why_nothing_is_trained(env_class: type, base: type) -> str:
    """Return which training method returns nothing by its own code, as a sentence; empty for a class that is meant to train."""
    collects = next((name for name in ("collect_trajectories", "collect_trajectory") if _is_own(env_class, name, base)), "")
    for name in filter(None, ("get_next_item", collects)):
        if _is_own(env_class, name, base) and _gives_nothing(env_class, name, frozenset()):
            return f"{name} returns nothing by its own code, so the class is an evaluation"
    return ""


def _is_own(env_class: type, name: str, base: type) -> bool:
    owner = next((cls for cls in env_class.__mro__ if name in vars(cls)), base)
    return owner not in base.__mro__


def _gives_nothing(env_class: type, name: str, visited: frozenset[str]) -> bool:
    """Return whether a method returns only nothing: None, empty collections, a pair of these, or what such a method gives."""
    function = _syntax_of(getattr(env_class, name, None))
    if function is None or name in visited:
        return False
    return _Stub(env_class, visited | {name}).is_empty(function.body)


def _syntax_of(function: Any) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    first = tree.body[0] if tree.body else None
    return first if isinstance(first, ast.FunctionDef | ast.AsyncFunctionDef) else None


class _Stub:
    """Reads the statements of one method; ``visited`` are the methods that led to it."""

    def __init__(self, env_class: type, visited: frozenset[str]) -> None:
        self._env_class, self._visited = env_class, visited
        self._nothing: set[str] = set()
        """Local names that hold nothing."""

    def is_empty(self, statements: list[ast.stmt]) -> bool:
        """Return whether the statements do nothing but log, and return nothing."""
        return all(self._is_idle(statement) for statement in statements)

    def _is_idle(self, node: ast.stmt) -> bool:
        match node:
            case ast.Pass() | ast.Delete() | ast.Expr(value=ast.Constant()) | ast.Return(value=None):
                return True
            case ast.Return(value=value) if value is not None:
                return self._is_nothing(value)
            case ast.Raise(exc=ast.expr() as error):
                return _name(error.func if isinstance(error, ast.Call) else error) == "NotImplementedError"
            case ast.Expr(value=ast.Call(func=function)):
                return _root(function) in LOGS
            case ast.Assign(targets=[target], value=value) if self._is_nothing(value):
                self._nothing |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
                return True
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if self._is_nothing(value):
                self._nothing.add(name)
                return True
        return False

    def _is_nothing(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant(value=None) | ast.Dict(keys=[]):
                return True
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return all(self._is_nothing(part) for part in parts)
            case ast.Name(id=name):
                return name in self._nothing
            case ast.Call(func=ast.Name(id="list" | "tuple" | "dict"), args=[], keywords=[]):
                return True
            case ast.Await(value=value):
                return self._is_nothing(value)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name)):
                return _gives_nothing(self._env_class, name, self._visited)
        return False


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return node.attr
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
