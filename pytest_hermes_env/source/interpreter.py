"""Statements: one pass over a function, in order, that keeps what each local name may hold on each path.

A loop's body is interpreted once; where paths meet, what a name may hold is joined. A branch that cannot be taken with the
values at hand (``if record:`` entered with ``record=False``, ``hasattr(result, "output")``) is skipped.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_hermes_env.source.classes import resolve_binding
from pytest_hermes_env.source.evaluator import Env, Evaluator
from pytest_hermes_env.source.lookup import value_of_resolved
from pytest_hermes_env.source.modules import import_bindings
from pytest_hermes_env.source.values import (
    ANYTHING,
    NOTHING,
    Kind,
    Values,
    attributes_of_self,
    elements,
    may_be,
    must_be,
    sequence_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_hermes_env.source.classes import ClassSource
    from pytest_hermes_env.source.frames import Frame
    from pytest_hermes_env.source.functions import Function
    from pytest_hermes_env.source.modules import Module


class Interpreter(Evaluator):
    """Interprets one function and fills its frame."""

    def __init__(
        self,
        source: ClassSource,
        frame: Frame,
        enter: Callable[[Function, Mapping[str, Values]], Frame],
        module_names: dict[tuple[Module, str], Values],
    ) -> None:
        """Prepare ``frame`` of a method of ``source``; see `Evaluator` for the other arguments."""
        super().__init__(source, frame, enter, module_names, self._run_nested)
        self._ends: list[list[Env]] = []
        """For each loop around the statement, the environments in which it is left by break or continue."""
        self._returned: list[Values] = []
        """For each nested function around the statement, what it returns."""

    def run(self) -> None:
        """Interpret the body."""
        self._block(self.frame.function.node.body)

    def _block(self, body: list[ast.stmt]) -> bool:
        """Interpret statements in order; return whether the end of the block is reached."""
        return all(self._statement(item) for item in body)

    def _statement(self, node: ast.stmt) -> bool:
        """Interpret one statement; return whether the next one is reached."""
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
                return self._block(body)
            case ast.Try() | ast.TryStar():
                return self._try(node)
            case ast.Match():
                return self._match(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for decorator in node.decorator_list:
                    self.value(decorator)
                self.env[node.name] = self.define(node)
            case ast.ClassDef():
                self.env[node.name] = ANYTHING
            case ast.Import() | ast.ImportFrom():
                for name, binding in import_bindings(node):
                    self.env[name] = value_of_resolved(resolve_binding(self.frame.function.module, binding))
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

    def _run_nested(self, body: list[ast.stmt]) -> Values:
        ends, self._ends = self._ends, []
        self._returned.append(NOTHING)
        self._block(body)
        self._ends = ends
        return self._returned.pop()

    def _return(self, node: ast.Return) -> None:
        values = self.value(node.value) if node.value is not None else NOTHING
        if self._returned:
            self._returned[-1] |= values
        else:
            self.frame.returned.append((node, values))
            self.frame.returns |= values

    def _augmented(self, node: ast.AugAssign) -> None:
        added = self.value(node.value)
        target = node.target
        if isinstance(target, ast.Name):
            held = self.env.get(target.id, NOTHING)
            if not attributes_of_self(held):
                self.env[target.id] = (
                    sequence_of(elements(added)) if may_be(held, Kind.MANY) or may_be(added, Kind.MANY) else ANYTHING
                )
        else:
            self.change(target, node, ANYTHING, of_self="add", inside="part")

    def _delete(self, target: ast.expr) -> None:
        if isinstance(target, (ast.Attribute, ast.Subscript)):
            self.change(target, target, ANYTHING, of_self="delete", inside="delete")
        elif isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                self._delete(part)

    def _if(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> bool:
        known = self.value(test)
        if must_be(known, Kind.TRUE):
            return self._block(body)
        if must_be(known, Kind.FALSE):
            return self._block(orelse)
        before = dict(self.env)
        ends: list[Env] = []
        if self._block(body):
            ends.append(self.env)
        self.env = before
        if self._block(orelse):
            ends.append(self.env)
        return self._meet(ends)

    def _for(self, node: ast.For | ast.AsyncFor) -> bool:
        values = elements(self.value(node.iter))
        before = dict(self.env)
        self.bind(node.target, values)
        return self._loop(node, before, [before])

    def _while(self, node: ast.While) -> bool:
        endless = must_be(self.value(node.test), Kind.TRUE)
        before = dict(self.env)
        return self._loop(node, before, [] if endless else [before])

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, before: Env, ends: list[Env]) -> bool:
        self._ends.append([])
        if self._block(node.body) and ends:
            ends.append(self.env)
        ends += self._ends.pop()
        reached = self._meet(ends)
        if not reached:
            self.env = before
        return self._block(node.orelse) if reached else False

    def _try(self, node: ast.Try | ast.TryStar) -> bool:
        before = dict(self.env)
        ends: list[Env] = []
        done = self._block(node.body)
        after = self.env
        failed = _met([before, after])
        if done and self._block(node.orelse):
            ends.append(self.env)
        for handler in node.handlers:
            self.env = dict(failed)
            if handler.type is not None:
                self.value(handler.type)
            if handler.name:
                self.env[handler.name] = ANYTHING
            if self._block(handler.body):
                ends.append(self.env)
        reached = bool(ends)
        self.env = _met(ends or [failed])
        return self._block(node.finalbody) and reached

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
            if self._block(case.body):
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
