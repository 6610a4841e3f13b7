"""Statements, read in order: one pass over a function that keeps what each local name may hold on each path.

A loop's body is read once; where paths meet, what a name may hold is joined. A branch that cannot be taken with the
values at hand (``if record:`` entered with ``record=False``, ``hasattr(result, "output")``) is not read.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_hermes_env.source.calls import CallReader, hung_on_self
from pytest_hermes_env.source.classes import resolve_binding
from pytest_hermes_env.source.expressions import named
from pytest_hermes_env.source.functions import is_result_annotation
from pytest_hermes_env.source.modules import import_bindings
from pytest_hermes_env.source.values import (
    ANYTHING,
    NOTHING,
    RESULT,
    Kind,
    Value,
    Values,
    has,
    many,
    members,
    only,
)

if TYPE_CHECKING:
    from pytest_hermes_env.source.flow import Flow, Frame

Env = dict[str, Values]
_MAX_NESTED = 6


class Interpreter(CallReader):
    """Reads one function into its frame."""

    def __init__(self, flow: Flow, frame: Frame) -> None:
        """Prepare to read ``frame.function``."""
        super().__init__(flow, frame)
        self._calls = {}
        self._ends: list[list[Env]] = []
        self._nested: list[Values] = []
        self._reentered: dict[tuple[object, ...], Values] = {}

    def run(self) -> None:
        """Read the body."""
        self.block(self.function.node.body)

    def block(self, body: list[ast.stmt]) -> bool:
        """Read statements in order; return whether the end of the block is reached."""
        return all(self.statement(item) for item in body)

    def statement(self, node: ast.stmt) -> bool:
        """Read one statement; return whether the next one is reached."""
        match node:
            case ast.Expr(value=value):
                self.value(value)
            case ast.Assign(targets=targets, value=value):
                values = self.value(value)
                for target in targets:
                    self.bind(target, values)
            case ast.AnnAssign(target=target, value=value):
                if value is not None:
                    self.bind(target, self.value(value))
            case ast.AugAssign():
                self._augmented(node)
            case ast.Return():
                self._return(node)
                return False
            case ast.If(test=test, body=body, orelse=orelse):
                return self._if(test, body, orelse)
            case ast.For() | ast.AsyncFor():
                return self._for(node)
            case ast.While():
                return self._while(node)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for item in items:
                    values = self.value(item.context_expr)
                    if item.optional_vars is not None:
                        self.bind(item.optional_vars, values)
                return self.block(body)
            case ast.Try() | ast.TryStar():
                return self._try(node)
            case ast.Match():
                return self._match(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for decorator in node.decorator_list:
                    self.value(decorator)
                self.env[node.name] = self._define(node)
            case ast.ClassDef():
                self.env[node.name] = ANYTHING
            case ast.Import() | ast.ImportFrom():
                for name, binding in import_bindings(node):
                    self.env[name] = named(resolve_binding(self.module, binding))
            case ast.Delete(targets=targets):
                for target in targets:
                    self._delete(target)
            case ast.Raise():
                for part in (node.exc, node.cause):
                    if part is not None:
                        self.value(part)
                return False
            case ast.Break() | ast.Continue():
                if self._ends:
                    self._ends[-1].append(dict(self.env))
                return False
            case ast.Assert():
                self.value(node.test)
            case _:
                pass
        return True

    def bind(self, target: ast.expr, values: Values) -> None:
        """Give ``target`` the ``values``, noting it where the target hangs on self."""
        match target:
            case ast.Name(id=name):
                self.env[name] = values
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part, held in zip(parts, _unpacked(parts, values), strict=True):
                    self.bind(part, held)
            case ast.Starred(value=inner):
                self.bind(inner, many(members(values)))
            case ast.Attribute(value=holder, attr=name):
                base = self.value(holder)
                if has(base, Kind.SELF):
                    self.change(name, "set", target, values)
                for attribute in hung_on_self(base):
                    self.change(attribute, "part", target, values)
            case ast.Subscript(value=holder, slice=index):
                base = self.value(holder)
                self.value(index)
                for attribute in hung_on_self(base):
                    how = "slice" if isinstance(index, ast.Slice) else "part"
                    self.change("*" if attribute == "__dict__" else attribute, how, target, values)
            case _:
                self.value(target)

    def define(self, node: ast.Lambda) -> Values:
        """Read a lambda and return it as a value."""
        return self._define(node)

    def reenter(self, local: Value, given: list[Values], keywords: dict[str, Values]) -> Values:
        """Read a nested function again with the arguments that it is given, and return what it gives."""
        node = local.node
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        names = [item.arg for item in (*node.args.posonlyargs, *node.args.args)]
        bound = dict(zip(names, given, strict=False))
        bound.update((name, values) for name, values in keywords.items() if name != "**")
        key = (node, tuple(bound.items()))
        if key not in self._reentered and len(self._nested) < _MAX_NESTED:
            self._reentered[key] = NOTHING
            self._reentered[key] = self._body(node, bound)
        return self._reentered.get(key, ANYTHING)

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Values:
        arguments = node.args
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self.value(default)
        returned = self._body(node, {}) if len(self._nested) < _MAX_NESTED else ANYTHING
        return frozenset({Value(Kind.LOCAL, node=node, items=(returned,))})

    def _body(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, bound: Env) -> Values:
        outer, ends = self.env, self._ends
        arguments = node.args
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        self.env = dict(outer)
        for item in every:
            self.env[item.arg] = bound.get(item.arg, RESULT if is_result_annotation(item.annotation) else NOTHING)
        self._ends = []
        self._nested.append(NOTHING)
        if isinstance(node, ast.Lambda):
            self._nested[-1] = self.value(node.body)
        else:
            self.block(node.body)
        self.env, self._ends = outer, ends
        return self._nested.pop()

    def _return(self, node: ast.Return) -> None:
        values = self.value(node.value) if node.value is not None else NOTHING
        if self._nested:
            self._nested[-1] |= values
        else:
            self.frame.returned.append((node, values))
            self.frame.returns |= values

    def _augmented(self, node: ast.AugAssign) -> None:
        added = self.value(node.value)
        target = node.target
        if isinstance(target, ast.Name):
            held = self.env.get(target.id, NOTHING)
            if not hung_on_self(held):
                self.env[target.id] = many(members(added)) if has(held, Kind.MANY) or has(added, Kind.MANY) else ANYTHING
            return
        base = self.value(target.value)
        if isinstance(target, ast.Attribute) and has(base, Kind.SELF):
            self.change(target.attr, "add", node)
        for attribute in hung_on_self(base):
            self.change(attribute, "part", node)

    def _delete(self, target: ast.expr) -> None:
        if isinstance(target, ast.Subscript):
            base = self.value(target.value)
            self.value(target.slice)
            for attribute in hung_on_self(base):
                self.change(attribute, "slice" if isinstance(target.slice, ast.Slice) else "delete", target)
        elif isinstance(target, ast.Attribute) and has(self.value(target.value), Kind.SELF):
            self.change(target.attr, "delete", target)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                self._delete(part)

    def _if(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> bool:
        known = self.value(test)
        if only(known, Kind.TRUE):
            return self.block(body)
        if only(known, Kind.FALSE):
            return self.block(orelse)
        before = dict(self.env)
        ends: list[Env] = []
        if self.block(body):
            ends.append(self.env)
        self.env = before
        if self.block(orelse):
            ends.append(self.env)
        return self._meet(ends)

    def _for(self, node: ast.For | ast.AsyncFor) -> bool:
        values = members(self.value(node.iter))
        before = dict(self.env)
        self.bind(node.target, values)
        return self._loop(node, before, [before])

    def _while(self, node: ast.While) -> bool:
        endless = only(self.value(node.test), Kind.TRUE)
        before = dict(self.env)
        return self._loop(node, before, [] if endless else [before])

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, before: Env, ends: list[Env]) -> bool:
        self._ends.append([])
        if self.block(node.body) and ends:
            ends.append(self.env)
        ends += self._ends.pop()
        reached = self._meet(ends)
        if not reached:
            self.env = before
        return self.block(node.orelse) if reached else False

    def _try(self, node: ast.Try | ast.TryStar) -> bool:
        before = dict(self.env)
        ends: list[Env] = []
        done = self.block(node.body)
        after = self.env
        failed = _met([before, after])
        if done and self.block(node.orelse):
            ends.append(self.env)
        for handler in node.handlers:
            self.env = dict(failed)
            if handler.type is not None:
                self.value(handler.type)
            if handler.name:
                self.env[handler.name] = ANYTHING
            if self.block(handler.body):
                ends.append(self.env)
        reached = bool(ends)
        self.env = _met(ends or [failed])
        return self.block(node.finalbody) and reached

    def _match(self, node: ast.Match) -> bool:
        self.value(node.subject)
        before = dict(self.env)
        ends = [before]
        for case in node.cases:
            self.env = dict(before)
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None) or getattr(part, "rest", None)
                if name:
                    self.env[name] = ANYTHING
            if case.guard is not None:
                self.value(case.guard)
            if self.block(case.body):
                ends.append(self.env)
        return self._meet(ends)

    def _meet(self, ends: list[Env]) -> bool:
        if ends:
            self.env = _met(ends)
        return bool(ends)


def _met(ends: list[Env]) -> Env:
    if len(ends) == 1:
        return ends[0]
    found: Env = {}
    for env in ends:
        for name, values in env.items():
            found[name] = found[name] | values if name in found else values
    return found


def _unpacked(parts: list[ast.expr], values: Values) -> list[Values]:
    """Return what each of ``parts`` gets when ``values`` is unpacked into them."""
    found = [NOTHING] * len(parts)
    starred = any(isinstance(part, ast.Starred) for part in parts)
    for value in values:
        if value.kind is Kind.TUPLE and len(value.items) == len(parts) and not starred:
            found = [held | item for held, item in zip(found, value.items, strict=True)]
        else:
            held_by_each = members(frozenset({value}))
            found = [held | held_by_each for held in found]
    return found
