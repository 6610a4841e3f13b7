"""Constant folding: values that are written in the source, as literals or as names of them."""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass
from typing import Final

from pytest_hermes_env.source.classes import ClassSource, External, class_of, resolve
from pytest_hermes_env.source.functions import Function, assigned_values
from pytest_hermes_env.source.modules import Binding, Module
from pytest_hermes_env.source.syntax import keyword, last_name, parameters

_MAX_DEPTH = 12
_ENVIRONMENT = frozenset({"os.environ.get", "os.getenv"})


class _Unknown(enum.Enum):
    """The type of `UNKNOWN`."""

    UNKNOWN = "unknown"


UNKNOWN: Final = _Unknown.UNKNOWN
"""The value of an expression that only running it would tell."""


@dataclass(frozen=True, kw_only=True)
class FromEnvironment:
    """The value of an environment variable; ``default`` is the fallback in the source, None if there is none."""

    name: str
    default: object = None


def constant_value(node: ast.AST | None, module: Module, function: Function | None = None, depth: int = 0) -> object:
    """Return the value of ``node``, with `UNKNOWN` for each part that is not constant.

    ``function`` is the function around the expression: its local names are followed if they are assigned once.
    """
    if depth > _MAX_DEPTH:
        return UNKNOWN
    inner = depth + 1
    match node:
        case ast.Constant(value=value):
            return value
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return [item for part in parts for item in _spread(part, module, function, inner)]
        case ast.Dict(keys=keys):  # what it gives in a loop, and holds
            return [UNKNOWN if key is None else constant_value(key, module, function, inner) for key in keys]
        case ast.JoinedStr(values=parts):
            return _text([constant_value(part, module, function, inner) for part in parts])
        case ast.FormattedValue(value=value):
            return constant_value(value, module, function, inner)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _sum(constant_value(left, module, function, inner), constant_value(right, module, function, inner))
        case ast.BoolOp(op=ast.Or(), values=parts):
            return _first_of([constant_value(part, module, function, inner) for part in parts])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            held = constant_value(operand, module, function, inner)
            return -held if isinstance(held, (int, float)) else UNKNOWN
        case ast.NamedExpr(value=value) | ast.Await(value=value):
            return constant_value(value, module, function, inner)
        case ast.Subscript(value=holder, slice=index) if _dotted(holder, module) == "os.environ":
            return FromEnvironment(name=str(constant_value(index, module, function, inner)))
        case ast.Call():
            return _call(node, module, function, inner)
        case ast.Name(id=name):
            return _name(name, module, function, inner)
        case ast.Attribute():
            return _attribute(node, module, function, inner)
        case _:
            return UNKNOWN


def _spread(node: ast.AST, module: Module, function: Function | None, depth: int) -> list[object]:
    if not isinstance(node, ast.Starred):
        return [constant_value(node, module, function, depth)]
    held = constant_value(node.value, module, function, depth)
    return held if isinstance(held, list) else [UNKNOWN]


def _text(parts: list[object]) -> object:
    return UNKNOWN if any(not isinstance(part, (str, int, float)) for part in parts) else "".join(map(str, parts))


def _sum(left: object, right: object) -> object:
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    if isinstance(left, list) or isinstance(right, list):
        return [*_listed(left), *_listed(right)]
    return UNKNOWN


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [UNKNOWN]


def _first_of(values: list[object]) -> object:
    """Return the value of ``a or b``; for an environment variable, ``b`` is its default."""
    first, *rest = values
    if first is UNKNOWN or not rest:
        return first
    if isinstance(first, FromEnvironment):
        return first if first.default else FromEnvironment(name=first.name, default=_first_of(rest))
    return first or _first_of(rest)


def _call(node: ast.Call, module: Module, function: Function | None, depth: int) -> object:
    if _dotted(node.func, module) in _ENVIRONMENT and node.args:
        given = [constant_value(item, module, function, depth) for item in node.args]
        default = keyword(node, "default")
        if len(given) == 1 and default is not None:
            given.append(constant_value(default, module, function, depth))
        return FromEnvironment(name=str(given[0]), default=given[1] if len(given) > 1 else None)
    if (
        isinstance(node.func, ast.Name)
        and node.func.id in {"list", "tuple", "set", "frozenset", "sorted", "str"}
        and len(node.args) == 1
    ):
        return constant_value(node.args[0], module, function, depth)
    if isinstance(node.func, ast.Attribute) and node.func.attr in {"strip", "rstrip", "lstrip", "split"}:
        held = constant_value(node.func.value, module, function, depth)
        if isinstance(held, str) and node.func.attr == "split" and not node.keywords:
            given = [constant_value(item, module, function, depth) for item in node.args]
            return held.split(*given) if all(isinstance(item, str) for item in given) else UNKNOWN  # type: ignore[arg-type]
        return held if isinstance(held, FromEnvironment) or (isinstance(held, str) and not node.args) else UNKNOWN
    return UNKNOWN


def _name(name: str, module: Module, function: Function | None, depth: int) -> object:
    if function is not None:
        bound = list(assigned_values(function, name, function.own_nodes()))
        if bound:
            return constant_value(bound[0], module, function, depth) if len(bound) == 1 else UNKNOWN
        if name in parameters(function.node):
            return UNKNOWN
    return _module_value(name, module, depth)


def _module_value(name: str, module: Module, depth: int) -> object:
    """Return the value of a module-level name that is bound once."""
    bindings = module.names.get(name, ())
    return _binding(bindings[0], module, depth) if len(bindings) == 1 else UNKNOWN


def _binding(binding: Binding, module: Module, depth: int) -> object:
    if not binding.module:
        return constant_value(binding.node, module, None, depth)
    source = module.imported(binding.module)
    if source is None or not binding.attribute:
        return UNKNOWN
    return _module_value(binding.attribute, source, depth + 1) if depth < _MAX_DEPTH else UNKNOWN


def _attribute(node: ast.Attribute, module: Module, function: Function | None, depth: int) -> object:
    holder: object = None
    if function is not None and function.owner is not None and isinstance(node.value, ast.Name):
        first = function.positional[:1]
        holder = class_of(function.owner, function.module) if first == (node.value.id,) else None
    holder = holder or resolve(module, node.value)
    if isinstance(holder, ClassSource):
        given = holder.attribute(node.attr)
        return constant_value(given[1], given[0].module, None, depth) if given else UNKNOWN
    if isinstance(holder, Module):
        return _module_value(node.attr, holder, depth)
    return UNKNOWN


def _dotted(node: ast.AST, module: Module) -> str:
    target = resolve(module, node)
    return target.dotted if isinstance(target, External) else last_name(node)
