"""HE802 wandb-log-accepts-none
`wandb_log` accepts None, and a call without metrics.

What: In an override of `wandb_log` the metrics parameter has a default, and is not written to, read or iterated before
None is replaced by a dict.

Why: Atropos calls `wandb_log()` without an argument in process mode, and its own default is None. An override that
begins with `metrics["train/x"] = ...` works under `serve` and fails in `process`: after a whole group was generated,
with its API money spent.

Fix: Write `async def wandb_log(self, wandb_metrics=None)`, and on the first line `if wandb_metrics is None:
wandb_metrics = {}`.

Source: atroposlib 0.4.0, `envs/base.py`, `BaseEnv.wandb_log` (`wandb_metrics: Optional[Dict] = None`) and
`process_manager`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.evidence import Evidence
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.source import ClassSource, Function, finding_at
from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_NEEDS_A_DICT = frozenset({"dict", "enumerate", "iter", "len", "list", "set", "sorted", "sum", "tuple"})
_MAX_HELPERS = 5


def static(source: ClassSource) -> Verdict:
    """Follow the metrics parameter of each wandb_log that can be read, as None."""
    overrides = [owner.own_methods["wandb_log"] for owner in source.readable if "wandb_log" in owner.own_methods]
    if not overrides:
        if source.unreadable or source.has("wandb_log"):
            return Verdict.undecided("wandb_log may be overridden in code that cannot be read")
        return Verdict.not_applicable("wandb_log is not overridden")
    findings = [finding for item in overrides for finding in _check(source, item)]
    return Verdict.of_source(findings, "wandb_log replaces None before it uses the metrics")


def _check(source: ClassSource, function: Function) -> Iterator[Finding]:
    names = function.positional[0 if function.is_static else 1 :]
    arguments = function.node.args
    if not names:
        if arguments.vararg is None and arguments.kwarg is None and not arguments.kwonlyargs:
            yield finding_at(function, function.node, "wandb_log has no metrics parameter, but the base class passes one")
        return
    metrics, *others = names
    if metrics not in function.defaults:
        yield finding_at(function, function.node, f"wandb_log requires {metrics}; wandb_log() without an argument fails")
    if any(name not in function.defaults for name in others):
        yield finding_at(
            function, function.node, f"wandb_log requires {', '.join(others)}; wandb_log() without an argument fails"
        )
    for inner, node in _uses(source, function, metrics, ()):
        yield finding_at(inner, node, f"{inner.name} uses the metrics before it replaces None with a dict")


def _uses(
    source: ClassSource, function: Function, name: str, above: tuple[Function, ...]
) -> Iterator[tuple[Function, ast.AST]]:
    """Yield the first uses of the parameter ``name`` that fail when it is None, those in helpers included."""
    if function in above or len(above) > _MAX_HELPERS:
        return
    walk = _Walk(maybe_none=frozenset({name}))
    walk.block(function.node.body)
    yield from ((function, node) for node in walk.uses[:1])
    if walk.uses:
        return
    for call, position in walk.handed:
        helper = source.methods.get(_own_method(call, function))
        if helper is None:
            continue
        names = helper.positional[0 if helper.is_static else 1 :]
        given = names[position] if isinstance(position, int) and position < len(names) else position
        if isinstance(given, str):
            yield from _uses(source, helper, given, (*above, function))


def _own_method(call: ast.Call, function: Function) -> str:
    func = call.func
    first = function.positional[0] if function.positional else ""
    is_own = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == first
    return func.attr if is_own and isinstance(func, ast.Attribute) else ""


@dataclass(kw_only=True)
class _Walk:
    """A walk along the paths of a function that keeps which names may still be None."""

    maybe_none: frozenset[str]
    uses: list[ast.AST] = field(default_factory=list)
    handed: list[tuple[ast.Call, int | str]] = field(default_factory=list)

    def block(self, body: list[ast.stmt]) -> bool:
        """Walk a block; return whether its end is reached."""
        return all(self._statement(item) for item in body)

    def _statement(self, node: ast.stmt) -> bool:  # one case for each kind of statement
        match node:
            case ast.Assign(targets=targets, value=value):
                self._read(value)
                is_none = self._is_none(value)
                for target in targets:
                    self._bind(target, is_none=is_none)
            case ast.AnnAssign(target=target, value=value):
                if value is not None:
                    self._read(value)
                    self._bind(target, is_none=self._is_none(value))
            case ast.AugAssign(target=target, value=value):
                self._read(value)
                self._read(target)
                if isinstance(target, ast.Name) and target.id in self.maybe_none:
                    self.uses.append(node)
            case ast.If(test=test, body=body, orelse=orelse):
                return self._if(test, body, orelse)
            case ast.For() | ast.AsyncFor():
                self._needs(node.iter)
                before = self.maybe_none
                self.block(node.body)
                self.maybe_none |= before
                return self.block(node.orelse)
            case ast.While():
                self._read(node.test)
                before = self.maybe_none
                self.block(node.body)
                self.maybe_none |= before
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    self._read(item.context_expr)
                return self.block(node.body)
            case ast.Try() | ast.TryStar():
                return self._try(node)
            case ast.Match():
                self._read(node.subject)
                before = self.maybe_none
                after = before
                for case in node.cases:
                    self.maybe_none = before
                    self.block(case.body)
                    after |= self.maybe_none
                self.maybe_none = after
            case ast.Return() | ast.Raise():
                self._read(node)
                return False
            case ast.Break() | ast.Continue():
                return False
            case ast.Assert(test=test):
                self._read(test)
                self.maybe_none -= _sure(test, holds=True)
            case _:
                if not isinstance(node, _SCOPES):
                    self._read(node)
        return True

    def _if(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> bool:
        self._read(test)
        before = self.maybe_none
        ends: list[frozenset[str]] = []
        for block, holds in ((body, True), (orelse, False)):
            self.maybe_none = before - _sure(test, holds=holds)
            if self.block(block):
                ends.append(self.maybe_none)
        self.maybe_none = frozenset().union(*ends)
        return bool(ends)

    def _try(self, node: ast.Try | ast.TryStar) -> bool:
        before = self.maybe_none
        done = self.block(node.body) and self.block(node.orelse)
        ends = [self.maybe_none] if done else []
        for handler in node.handlers:
            self.maybe_none = before
            if self.block(handler.body):
                ends.append(self.maybe_none)
        self.maybe_none = before.union(*ends) if not ends else frozenset().union(*ends)
        return self.block(node.finalbody) and bool(ends)

    def _bind(self, target: ast.expr, *, is_none: bool) -> None:
        if isinstance(target, ast.Name):
            self.maybe_none = self.maybe_none | {target.id} if is_none else self.maybe_none - {target.id}
        elif isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                self._bind(part, is_none=False)
        else:
            self._read(target)

    def _is_none(self, node: ast.expr) -> bool:
        """Whether an expression may give None because one of the names is still None."""
        match node:
            case ast.Name(id=name):
                return name in self.maybe_none
            case ast.NamedExpr(value=value):
                return self._is_none(value)
            case ast.BoolOp(op=ast.Or(), values=values):
                return self._is_none(values[-1])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                kept = self.maybe_none
                self.maybe_none = kept - _sure(test, holds=True)
                found = self._is_none(body)
                self.maybe_none = kept - _sure(test, holds=False)
                found = found or self._is_none(orelse)
                self.maybe_none = kept
                return found
        return False

    def _needs(self, node: ast.expr) -> None:
        """Read an expression that must not be None."""
        if isinstance(node, ast.Name):
            if node.id in self.maybe_none:
                self.uses.append(node)
        else:
            self._read(node)

    def _read(self, node: ast.AST) -> None:  # one case for each kind of expression
        match node:
            case ast.Subscript(value=value, slice=index):
                self._needs(value)
                self._read(index)
            case ast.Attribute(value=value) if not isinstance(value, ast.Name) or value.id in self.maybe_none:
                self._needs(value)
            case ast.Compare(left=left, ops=ops, comparators=parts):
                self._read(left)
                for op, part in zip(ops, parts, strict=True):
                    (self._needs if isinstance(op, (ast.In, ast.NotIn)) else self._read)(part)
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    if key is None:
                        self._needs(value)
                    else:
                        self._read(key)
                        self._read(value)
            case ast.Starred(value=value) | ast.comprehension(iter=value):
                self._needs(value)
                for test in getattr(node, "ifs", ()):
                    self._read(test)
            case ast.BinOp(left=left, right=right):
                self._needs(left)
                self._needs(right)
            case ast.BoolOp(op=op, values=values):
                kept = self.maybe_none
                for value in values:
                    self._read(value)
                    self.maybe_none -= _sure(value, holds=isinstance(op, ast.And))
                self.maybe_none = kept - self._rebound(node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._read(test)
                kept = self.maybe_none
                for part, holds in ((body, True), (orelse, False)):
                    self.maybe_none = kept - _sure(test, holds=holds)
                    self._read(part)
                self.maybe_none = kept
            case ast.NamedExpr(target=target, value=value):
                self._read(value)
                self._bind(target, is_none=self._is_none(value))
            case ast.Call():
                self._call(node)
            case (
                ast.ListComp(generators=generators)
                | ast.SetComp(generators=generators)
                | ast.GeneratorExp(generators=generators)
                | ast.DictComp(generators=generators)
            ):
                for item in generators:
                    self._read(item)
            case _:
                for child in ast.iter_child_nodes(node):
                    self._read(child)

    def _rebound(self, node: ast.AST) -> frozenset[str]:
        """Return names that a walrus in ``node`` has given a value."""
        named = (item.target.id for item in ast.walk(node) if isinstance(item, ast.NamedExpr))
        return frozenset(named) - self.maybe_none

    def _call(self, node: ast.Call) -> None:
        self._read(node.func)
        needs = isinstance(node.func, ast.Name) and node.func.id in _NEEDS_A_DICT
        spreads = isinstance(node.func, ast.Attribute) and node.func.attr == "update"
        for index, item in enumerate(node.args):
            if isinstance(item, ast.Name) and item.id in self.maybe_none:
                self.handed.append((node, index))
            (self._needs if needs or spreads else self._read)(item)
        for word in node.keywords:
            if word.arg and isinstance(word.value, ast.Name) and word.value.id in self.maybe_none:
                self.handed.append((node, word.arg))
            (self._needs if word.arg is None else self._read)(word.value)


def _sure(test: ast.expr, *, holds: bool) -> frozenset[str]:
    """Return the names that are certainly not None when ``test`` holds, or when it does not."""
    match test:
        case ast.Name(id=name) | ast.NamedExpr(target=ast.Name(id=name)):
            return frozenset({name}) if holds else frozenset()
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _sure(operand, holds=not holds)
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
            return frozenset() if holds else frozenset({name})
        case ast.Compare(left=ast.Name(id=name), ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return frozenset({name}) if holds else frozenset()
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), *_]):
            return frozenset({name}) if holds else frozenset()
        case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) is holds:
            return frozenset().union(*(_sure(value, holds=holds) for value in values))
    return frozenset()


SCENARIOS = ("wandb_log_none", "wandb_log_without")
CALLS = {"wandb_log_none": "wandb_log(None)", "wandb_log_without": "wandb_log()"}


def dynamic(evidence: Evidence) -> Verdict:
    """Call it with None and without an argument."""
    if not evidence.is_own("wandb_log"):
        return Verdict.not_applicable("wandb_log is not overridden")
    ran = evidence.scenarios(*SCENARIOS)
    if not ran:
        return Verdict.not_exercised(evidence.why_missing(*SCENARIOS))
    with_metrics = evidence.scenario("wandb_log")
    failing = [run for run in ran if run.error]
    if failing and with_metrics.error:
        return Verdict.not_exercised(f"wandb_log also fails with metrics: {with_metrics.error}", "HE801")
    findings = [
        evidence.finding(f"{CALLS[run.name]} {run.failure}", "wandb_log", place=run.error_place, scenario=run.name)
        for run in failing
    ]
    return Verdict.of(findings[:1], "wandb_log(None) and wandb_log() returned")


RULE = Rule(
    doc=__doc__,
    severity=Severity.ERROR,
    static=static,
    dynamic=dynamic,
    scenarios=SCENARIOS,
    former_names=("takes-no-metrics",),
    holds_for_base_env=True,
)
