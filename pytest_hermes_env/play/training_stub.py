"""Tells by its own code whether a class is an evaluation only: its training methods give nothing, whatever the data are.

A setting may decide that: then its value in the configuration that is played counts.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

LOGS = frozenset({"log", "logger", "logging", "_log", "_logger", "LOG", "LOGGER", "warnings", "print"})


def why_nothing_is_trained(env_class: type, base: type) -> str:
    """Return which training method returns nothing by its own code, as a sentence; empty for a class that is meant to train."""
    collects = next((name for name in ("collect_trajectories", "collect_trajectory") if _is_own(env_class, name, base)), "")
    for name in filter(None, ("get_next_item", collects)):
        if _is_own(env_class, name, base) and _gives_nothing(env_class, name, frozenset()):
            return f"{name} returns nothing by its own code, so the class is an evaluation"
    return ""


def why_configured_to_train_nothing(env: Any, base: type) -> str:
    """Return which setting makes a training method of ``env`` return nothing, as a sentence; empty without one.

    ``if self.config.X: return None`` in the method, or an attribute that setup leaves empty by such a test and that the method tests.
    """
    cls = type(env)
    for name in ("get_next_item", "collect_trajectories", "collect_trajectory"):
        function = _syntax_of(getattr(cls, name, None)) if _is_own(cls, name, base) else None
        for node in function.body if function is not None else ():
            if not isinstance(node, ast.If) or not _Stub(cls, frozenset({name})).is_empty(node.body):
                continue
            test = _setting_in(node.test) if _is_true(node.test, env) else _emptied_by(cls, node.test, env)
            if test:
                return f"{name} returns nothing because of {test} in its configuration, so this is an evaluation"
    return ""


def _emptied_by(cls: type, test: ast.expr, env: Any) -> str:
    """Return the setting by which setup leaves an attribute empty, where ``test`` is ``not self.attribute``."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=ast.Attribute(value=ast.Name(id="self"), attr=attribute)):
            setup = _syntax_of(getattr(cls, "setup", None))
        case _:
            return ""
    for node in ast.walk(setup) if setup is not None else ():
        if isinstance(node, ast.Assign) and any(_name(target) == attribute for target in node.targets):
            match node.value:
                case ast.IfExp(test=chosen, body=body, orelse=orelse) if setting := _setting_in(chosen):
                    taken = body if _is_true(chosen, env) else orelse
                    return setting if _Stub(cls, frozenset()).gives_nothing(taken) else ""
    return ""


def _setting_in(test: ast.expr) -> str:
    """Return the setting that a test reads, where it reads settings and constants only."""
    settings = [node for node in ast.walk(test) if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self.config"]
    others = [node for node in ast.walk(test) if isinstance(node, ast.Name) and node.id != "self"]
    calls = [node for node in ast.walk(test) if isinstance(node, ast.Call | ast.Await | ast.NamedExpr)]
    attributes = [node for node in ast.walk(test) if isinstance(node, ast.Attribute)]
    is_plain = settings and not others and not calls and len(attributes) == 2 * len(settings)
    return f"the setting {settings[0].attr}" if is_plain else ""


def _is_true(test: ast.expr, env: Any) -> bool:
    """Return whether a test of settings is true now."""
    if not _setting_in(test):
        return False
    code = compile(ast.Expression(body=test), "<a test of settings>", "eval")
    try:
        return bool(eval(code, {"__builtins__": {}, "self": env}))  # noqa: S307 - the environment's own test, without calls
    except Exception:  # noqa: BLE001 - then the method itself raises it, and a rule reports that
        return False


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
                return self.gives_nothing(value)
            case ast.Raise(exc=ast.expr() as error):
                return _name(error.func if isinstance(error, ast.Call) else error) == "NotImplementedError"
            case ast.Expr(value=ast.Call(func=function)):
                return _root(function) in LOGS
            case ast.Assign(targets=[target], value=value) if self.gives_nothing(value):
                self._nothing |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
                return True
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if self.gives_nothing(value):
                self._nothing.add(name)
                return True
        return False

    def gives_nothing(self, node: ast.expr) -> bool:
        """Return whether an expression is None or an empty collection."""
        match node:
            case ast.Constant(value=None) | ast.Dict(keys=[]):
                return True
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return all(self.gives_nothing(part) for part in parts)
            case ast.Name(id=name):
                return name in self._nothing
            case ast.Call(func=ast.Name(id="list" | "tuple" | "dict"), args=[], keywords=[]):
                return True
            case ast.Await(value=value):
                return self.gives_nothing(value)
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
