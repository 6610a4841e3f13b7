"""Expressions, as `interpret` reads them: what each may hold, and which reads were seen."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.source.classes import ClassSource, External, Resolved, resolve, resolve_attribute
from pytest_hermes_env.source.classes import resolve_name as resolve_module_name
from pytest_hermes_env.source.flow import Access, Comparison, Flow, Frame
from pytest_hermes_env.source.functions import Function, children
from pytest_hermes_env.source.layer_names import BASE_METHODS, LAYER_LOOP, LAYER_ROLLOUT, LAYER_RUNS, REQUIRED_METHODS
from pytest_hermes_env.source.modules import Module
from pytest_hermes_env.source.values import (
    ANYTHING,
    CONTEXT,
    EMPTY,
    FALSE,
    NOTHING,
    RESULT,
    SELF,
    TRUE,
    Kind,
    Value,
    Values,
    has,
    inside,
    joined,
    many,
    members,
    one,
    only,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_BASE = BASE_METHODS | LAYER_RUNS | frozenset(REQUIRED_METHODS)
_LONGEST_NAME = 8
_SLICED = frozenset({Kind.MANY, Kind.EMPTY, Kind.MESSAGE})
_DULL = (ANYTHING, NOTHING)
_NEVER_NONE = frozenset({Kind.SELF, Kind.RESULT, Kind.INSTANCE, Kind.MANY, Kind.EMPTY, Kind.TUPLE, Kind.TRUE, Kind.FALSE})


class ExpressionReader:
    """Reads expressions against the local names of one frame."""

    def __init__(self, flow: Flow, frame: Frame) -> None:
        """Start with the values that the frame is entered with."""
        self.flow = flow
        self.frame = frame
        self.function = frame.function
        self.module = frame.function.module
        self.env: dict[str, Values] = dict(frame.entry)
        self._reads: dict[ast.AST, int] = {}

    def value(self, node: ast.AST) -> Values:
        """Return what ``node`` may hold, noting what is seen on the way."""
        handler = _HANDLERS.get(node.__class__)
        if handler is not None:
            return handler(self, node)
        for child in children(node):
            self.value(child)
        return ANYTHING

    def bind(self, target: ast.expr, values: Values) -> None:
        """Give ``target`` the ``values``."""
        raise NotImplementedError

    def call(self, node: ast.Call) -> Values:
        """Return what a call may give."""
        raise NotImplementedError

    def define(self, node: ast.Lambda) -> Values:
        """Return the value of a lambda."""
        raise NotImplementedError

    def invoke(self, function: Function, given: dict[str, Values], node: ast.AST) -> Values:
        """Enter ``function`` and return what it gives."""
        raise NotImplementedError

    def note_read(self, node: ast.Attribute | ast.Subscript, base: Values) -> None:
        """Keep a read of ``base``, unless nothing is known of it."""
        if base in _DULL:
            return
        index = self._reads.setdefault(node, len(self.frame.reads))
        if index == len(self.frame.reads):
            self.frame.reads.append(Access(node, base))
        else:
            self.frame.reads[index] = Access(node, self.frame.reads[index].base | base)

    def attribute(self, base: Values, name: str, node: ast.AST) -> Values:
        """Return what ``base.name`` may hold."""
        if base == ANYTHING:
            return ANYTHING
        if len(base) == 1:
            return self._attribute_of(next(iter(base)), name, node)
        return joined([self._attribute_of(value, name, node) for value in base])

    def _attribute_of(self, value: Value, name: str, node: ast.AST) -> Values:
        kind = value.kind
        if kind is Kind.SELF:
            return self._of_self(name, node)
        if kind in {Kind.ATTRIBUTE, Kind.PART}:
            return one(Kind.PART, value.name)
        if kind is Kind.RESULT:
            return one(Kind.MESSAGE, name) if name == "messages" else ANYTHING
        if kind is Kind.CONTEXT:
            return ANYTHING if value.name else one(Kind.CONTEXT, name)
        if kind is Kind.SUPER:
            owner = value.target if isinstance(value.target, ClassSource) else None
            target = self.flow.source.after(owner, name)
            if isinstance(target, Function):
                return one(Kind.METHOD, target=target)
            return one(Kind.BASE_METHOD, name) if target is None or target.is_known else ANYTHING
        if kind is Kind.INSTANCE:
            if value.name == LAYER_LOOP and name == "run":
                return one(Kind.RUN, node=value.node)
            if value.name == LAYER_ROLLOUT:
                return {"result": RESULT, "ctx": CONTEXT}.get(name, ANYTHING)
            if isinstance(value.target, ClassSource) and (method := value.target.methods.get(name)):
                return frozenset({Value(Kind.METHOD, target=method, items=(frozenset({value}),))})
            return ANYTHING
        if kind is Kind.EXTERNAL:
            if value.name.count(".") > _LONGEST_NAME:
                return ANYTHING
            inside = value.target if isinstance(value.target, Module) else External(dotted=value.name)
            return named(resolve_attribute(self.module, inside, name))
        if kind is Kind.CLASS and isinstance(value.target, ClassSource):
            return named(resolve_attribute(self.module, value.target, name))
        return ANYTHING

    def _of_self(self, name: str, node: ast.AST) -> Values:
        source = self.flow.source
        method = source.methods.get(name)
        if method is not None:
            if method.is_property:
                return self.invoke(method, {method.positional[0]: SELF} if method.positional else {}, node)
            return one(Kind.METHOD, target=method)
        given = source.attribute(name)
        if given is not None:
            target = resolve(given[0].module, given[1])
            return named(target) if target is not None else one(Kind.ATTRIBUTE, name)
        if name == "__class__":
            return SELF
        return one(Kind.BASE_METHOD if name in _BASE else Kind.ATTRIBUTE, name)

    def _Name(self, node: ast.Name) -> Values:
        if node.id in self.env:
            return self.env[node.id]
        key = (self.module, node.id)
        if key not in self.flow.globals:
            target = resolve_module_name(self.module, node.id)
            unknown = ANYTHING if node.id in self.module.names else NOTHING
            self.flow.globals[key] = named(target) if target is not None else unknown
        return self.flow.globals[key]

    def _Constant(self, node: ast.Constant) -> Values:
        if node.value is None:
            return NOTHING
        if node.value is True:
            return TRUE
        return FALSE if node.value is False else ANYTHING

    def _Attribute(self, node: ast.Attribute) -> Values:
        base = self.value(node.value)
        self.note_read(node, base)
        return self.attribute(base, node.attr, node)

    def _Subscript(self, node: ast.Subscript) -> Values:
        base = self.value(node.value)
        self.value(node.slice)
        self.note_read(node, base)
        if isinstance(node.slice, ast.Slice):
            return frozenset(value if value.kind in _SLICED else Value(Kind.ANYTHING) for value in base)
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str) and has(base, Kind.MESSAGE):
            return joined(
                inside(value.name, node.slice.value) if value.kind is Kind.MESSAGE else members(frozenset({value}))
                for value in base
            )
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int) and only(base, Kind.TUPLE):
            index = node.slice.value
            return joined(value.items[index] for value in base if -len(value.items) <= index < len(value.items))
        return members(base)

    def _Call(self, node: ast.Call) -> Values:
        return self.call(node)

    def _Await(self, node: ast.Await) -> Values:
        return self.value(node.value)

    def _NamedExpr(self, node: ast.NamedExpr) -> Values:
        values = self.value(node.value)
        self.bind(node.target, values)
        return values

    def _BoolOp(self, node: ast.BoolOp) -> Values:
        ends = Kind.FALSE if isinstance(node.op, ast.And) else Kind.TRUE
        found: Values = NOTHING
        for part in node.values:
            values = self.value(part)
            found |= values
            if only(values, ends):
                return values if ends is Kind.FALSE else found
        return found

    def _JoinedStr(self, node: ast.JoinedStr) -> Values:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.value(part.value)
                if part.format_spec is not None:
                    self.value(part.format_spec)
        return ANYTHING

    def _UnaryOp(self, node: ast.UnaryOp) -> Values:
        values = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            if only(values, Kind.TRUE):
                return FALSE
            if only(values, Kind.FALSE):
                return TRUE
        return ANYTHING

    def _BinOp(self, node: ast.BinOp) -> Values:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, (ast.BitAnd, ast.Sub)) and (names_a_tool(left) or names_a_tool(right)):
            self.frame.compared.append(Comparison(node, (node.left, node.right), (left, right)))
        both = left | right
        if both and any(value.kind is Kind.MANY for value in both):
            return many(members(frozenset(value for value in both if value.kind is not Kind.ANYTHING)))
        return EMPTY if left == right == EMPTY else ANYTHING

    def _Compare(self, node: ast.Compare) -> Values:
        left = self.value(node.left)
        operands = (left, *[self.value(part) for part in node.comparators])
        if any(map(names_a_tool, operands)):
            self.frame.compared.append(Comparison(node, (node.left, *node.comparators), operands))
        right = node.comparators[0]
        if isinstance(right, ast.Constant) and right.value is None and len(node.ops) == 1:
            never_none = bool(left) and all(value.kind in _NEVER_NONE for value in left)
            if never_none and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
                return FALSE if isinstance(node.ops[0], ast.Is) else TRUE
        return ANYTHING

    def _IfExp(self, node: ast.IfExp) -> Values:
        test = self.value(node.test)
        found: Values = NOTHING
        if not only(test, Kind.FALSE):
            found |= self.value(node.body)
        if not only(test, Kind.TRUE):
            found |= self.value(node.orelse)
        return found

    def _Tuple(self, node: ast.Tuple) -> Values:
        if not node.elts:
            return EMPTY
        items = tuple(self.value(item) for item in node.elts)
        if any(isinstance(item, ast.Starred) for item in node.elts):
            return many(joined(items))
        return frozenset({Value(Kind.TUPLE, items=items)})

    def _List(self, node: ast.List | ast.Set) -> Values:
        return many(joined([self.value(item) for item in node.elts])) if node.elts else EMPTY

    def _Set(self, node: ast.Set) -> Values:
        return self._List(node)

    def _Dict(self, node: ast.Dict) -> Values:
        for part in (*node.keys, *node.values):
            if part is not None:
                self.value(part)
        return ANYTHING if node.values else EMPTY

    def _Starred(self, node: ast.Starred) -> Values:
        return members(self.value(node.value))

    def _comprehension(self, generators: list[ast.comprehension], *parts: ast.expr) -> Values:
        outer = self.env
        self.env = dict(outer)
        for item in generators:
            self.bind(item.target, members(self.value(item.iter)))
            for test in item.ifs:
                self.value(test)
        found = [self.value(part) for part in parts]
        self.env = outer
        return many(found[-1])

    def _ListComp(self, node: ast.ListComp) -> Values:
        return self._comprehension(node.generators, node.elt)

    def _SetComp(self, node: ast.SetComp) -> Values:
        return self._comprehension(node.generators, node.elt)

    def _GeneratorExp(self, node: ast.GeneratorExp) -> Values:
        return self._comprehension(node.generators, node.elt)

    def _DictComp(self, node: ast.DictComp) -> Values:
        self._comprehension(node.generators, node.key, node.value)
        return ANYTHING

    def _Lambda(self, node: ast.Lambda) -> Values:
        return self.define(node)

    def _Yield(self, node: ast.Yield) -> Values:
        self.frame.is_generator = True
        self.frame.yields |= self.value(node.value) if node.value else NOTHING
        return ANYTHING

    def _YieldFrom(self, node: ast.YieldFrom) -> Values:
        self.frame.is_generator = True
        self.frame.yields |= members(self.value(node.value))
        return ANYTHING


def names_a_tool(values: Values) -> bool:
    """Whether ``values`` may be the name of a tool that was called, or a series of such names."""
    return any(
        (value.kind is Kind.MESSAGE and value.name == "name") or (value.items and any(map(names_a_tool, value.items)))
        for value in values
    )


def named(target: Resolved | None) -> Values:
    """Return the value of a name that was resolved."""
    if isinstance(target, ClassSource):
        return one(Kind.CLASS, target.name, target=target)
    if isinstance(target, Function):
        return one(Kind.FUNCTION, target.name, target=target)
    if isinstance(target, External):
        return one(Kind.EXTERNAL, target.dotted)
    if isinstance(target, Module):
        return one(Kind.EXTERNAL, target.path, target=target)
    return ANYTHING


_HANDLERS: dict[type[ast.AST], Callable[[ExpressionReader, Any], Values]] = {
    kind: getattr(ExpressionReader, f"_{kind.__name__}")
    for kind in (
        ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Call, ast.Await, ast.NamedExpr, ast.BoolOp,
        ast.UnaryOp, ast.BinOp, ast.Compare, ast.IfExp, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Starred,
        ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp, ast.Lambda, ast.Yield, ast.YieldFrom,
        ast.JoinedStr,
    )
}  # fmt: skip
