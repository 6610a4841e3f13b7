"""Constants: values that are written in the source, as literals, as names of them, or put together from these."""

from __future__ import annotations

import ast
import enum
from typing import Final

from pytest_hermes_env.source.classes import ClassSource, class_of, resolve
from pytest_hermes_env.source.functions import Function
from pytest_hermes_env.source.modules import Binding, Module

_DEEPEST = 12
_COLLECTIONS = frozenset({"list", "tuple", "set", "frozenset", "sorted", "str"})


class _Unknown(enum.Enum):
    """The type of `UNKNOWN`."""

    UNKNOWN = "unknown"


UNKNOWN: Final = _Unknown.UNKNOWN
"""The value of an expression that only running it would tell."""


def constant_value(node: ast.AST | None, module: Module, function: Function | None = None, depth: int = 0) -> object:
    """Return the value of ``node``, with `UNKNOWN` for each part that is not constant; a dict is the list of its keys.

    ``function`` is the function around the expression: its local names are followed if they are assigned once.
    """
    if depth > _DEEPEST:
        return UNKNOWN

    def value_of(part: ast.AST | None) -> object:
        return constant_value(part, module, function, depth + 1)

    match node:
        case ast.Constant(value=value):
            return value
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            spread = [_listed(value_of(part.value)) if isinstance(part, ast.Starred) else [value_of(part)] for part in parts]
            return [item for items in spread for item in items]
        case ast.Dict(keys=keys):
            return [UNKNOWN if key is None else value_of(key) for key in keys]
        case ast.JoinedStr(values=parts):
            texts = [value_of(part) for part in parts]
            return "".join(map(str, texts)) if all(isinstance(text, (str, int, float)) for text in texts) else UNKNOWN
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _sum(value_of(left), value_of(right))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            held = value_of(operand)
            return -held if isinstance(held, (int, float)) else UNKNOWN
        case ast.FormattedValue(value=inner) | ast.NamedExpr(value=inner):
            return value_of(inner)
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in _COLLECTIONS:
            return value_of(inner)
        case ast.Call(func=ast.Attribute(value=text, attr="strip" | "split" as name), args=[], keywords=[]):
            held = value_of(text)
            return (held.strip() if name == "strip" else held.split()) if isinstance(held, str) else UNKNOWN
        case ast.Name(id=name):
            return _name(name, module, function, depth + 1)
        case ast.Attribute():
            return _attribute(node, module, function, depth + 1)
    return UNKNOWN


def _sum(left: object, right: object) -> object:
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    return [*_listed(left), *_listed(right)] if isinstance(left, list) or isinstance(right, list) else UNKNOWN


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [UNKNOWN]


def _name(name: str, module: Module, function: Function | None, depth: int) -> object:
    if function is not None and name in function.local_names:
        bound = function.values_of(name)
        is_one = len(bound) == 1 and name not in function.positional
        return constant_value(bound[0], module, function, depth) if is_one else UNKNOWN
    return _module_value(name, module, depth)


def _module_value(name: str, module: Module, depth: int) -> object:
    """Return the value of a module-level name that is bound once."""
    bindings = module.names.get(name, ())
    return _binding(bindings[0], module, depth) if len(bindings) == 1 and depth <= _DEEPEST else UNKNOWN


def _binding(binding: Binding, module: Module, depth: int) -> object:
    if not binding.module:
        return constant_value(binding.node, module, None, depth)
    source = module.imported(binding.module) if binding.attribute else None
    return _module_value(binding.attribute, source, depth + 1) if source is not None else UNKNOWN


def _attribute(node: ast.Attribute, module: Module, function: Function | None, depth: int) -> object:
    """Return the value of an attribute of a class, of the class around ``function``, or of a module."""
    if function is not None and function.owner is not None and function.is_self(node.value):
        holder: object = class_of(function.owner, function.module)
    else:
        holder = resolve(module, node.value)
    if isinstance(holder, ClassSource) and (given := holder.attribute(node.attr)) is not None:
        return constant_value(given[1], given[0].module, None, depth)
    return _module_value(node.attr, holder, depth) if isinstance(holder, Module) else UNKNOWN
