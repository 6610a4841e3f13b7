"""Name and attribute lookup: what a name of a module, and an attribute of a value, may hold."""

from __future__ import annotations

import ast
from collections.abc import Callable

from pytest_hermes_env.source.classes import ClassSource, External, Resolved, resolve, resolve_attribute, resolve_name
from pytest_hermes_env.source.functions import Function
from pytest_hermes_env.source.layer_names import INHERITED_METHODS, LAYER_LOOP, LAYER_ROLLOUT
from pytest_hermes_env.source.modules import Module
from pytest_hermes_env.source.values import ANYTHING, CONTEXT, NOTHING, RESULT, SELF, Kind, Value, Values, single

ReadProperty = Callable[[Function], Values]

_MAX_DOTS = 8
"""Dots of the longest external name that is followed."""


def value_of_resolved(target: Resolved | None) -> Values:
    """Return the value of a name that was resolved."""
    if isinstance(target, ClassSource):
        return single(Kind.CLASS, target.name, target=target)
    if isinstance(target, Function):
        return single(Kind.FUNCTION, target.name, target=target)
    if isinstance(target, External):
        return single(Kind.EXTERNAL, target.dotted)
    if isinstance(target, Module):
        return single(Kind.EXTERNAL, target.path, target=target)
    return ANYTHING


def value_of_name(module: Module, name: str) -> Values:
    """Return what a module-level name may hold."""
    target = resolve_name(module, name)
    if target is None:
        return ANYTHING if name in module.names else NOTHING
    return value_of_resolved(target)


def value_of_attribute(value: Value, name: str, source: ClassSource, module: Module, read_property: ReadProperty) -> Values:
    """Return what ``value.name`` may hold in a method of ``source`` that stands in ``module``.

    ``read_property`` returns what a property of self returns.
    """
    kind, target = value.kind, value.target
    if kind is Kind.SELF:
        return _of_self(name, source, read_property)
    if kind in {Kind.ATTRIBUTE, Kind.PART}:
        return single(Kind.PART, value.name)
    if kind is Kind.RESULT:
        return single(Kind.MESSAGE, name) if name == "messages" else ANYTHING
    if kind is Kind.CONTEXT:
        return ANYTHING if value.name else single(Kind.CONTEXT, name)
    if kind is Kind.SUPER:
        return _of_super(name, source, target if isinstance(target, ast.ClassDef) else None)
    if kind is Kind.INSTANCE:
        if value.name == LAYER_LOOP and name == "run":
            return single(Kind.RUN, node=value.node)
        if value.name == LAYER_ROLLOUT:
            return {"result": RESULT, "ctx": CONTEXT}.get(name, ANYTHING)
        if isinstance(target, ClassSource) and (method := target.methods.get(name)):
            return frozenset({Value(Kind.METHOD, target=method, items=(frozenset({value}),))})
    if kind is Kind.EXTERNAL and value.name.count(".") <= _MAX_DOTS:
        base = target if isinstance(target, Module) else External(dotted=value.name)
        return value_of_resolved(resolve_attribute(module, base, name))
    if kind is Kind.CLASS and isinstance(target, ClassSource):
        return value_of_resolved(resolve_attribute(module, target, name))
    return ANYTHING


def _of_super(name: str, source: ClassSource, owner: ast.ClassDef | None) -> Values:
    target = source.after(owner, name)
    if isinstance(target, Function):
        return single(Kind.METHOD, target=target)
    return single(Kind.BASE_METHOD, name) if target is None or target.is_known else ANYTHING


def _of_self(name: str, source: ClassSource, read_property: ReadProperty) -> Values:
    method = source.methods.get(name)
    if method is not None:
        return read_property(method) if method.is_property else single(Kind.METHOD, target=method)
    given = source.attribute(name)
    if given is not None:
        target = resolve(given[0].module, given[1])
        return value_of_resolved(target) if target is not None else single(Kind.ATTRIBUTE, name)
    if name == "__class__":
        return SELF
    return single(Kind.BASE_METHOD if name in INHERITED_METHODS else Kind.ATTRIBUTE, name)
