"""HE801 awaits-super-wandb-log
An override of `wandb_log` awaits `super().wandb_log` with its metrics, on every path, after the last metric was added.

What: Every path through `wandb_log` that does not raise reaches `await super().wandb_log(metrics)`, with the metrics
that it was given and its own. Nothing is added to them later. Clearing buffers later is fine.

Why: Only the base class sends anything to wandb. Without the call, or without its await, the run trains for days with
empty charts, and it stays hidden that the reward collapsed on the first. An early return loses the base's own numbers
(tool errors, completion lengths, server times) for that step.

Fix: Collect your metrics into the dict first, then end with `await super().wandb_log(metrics)`. Turn `if not
self.buffer: return` into an `if` around the metrics.

Source: atroposlib 0.4.0, `envs/base.py`, `BaseEnv.wandb_log`;
`environments.hermes_base_env.HermesAgentBaseEnv.wandb_log`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.awaited_calls import is_awaited
from pytest_hermes_env.contract.evidence import Evidence
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.play.scenario import Scenario
from pytest_hermes_env.source import (
    Call,
    ClassSource,
    Frame,
    Function,
    Kind,
    data_flow,
    finding_at,
    may_be,
)
from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
"""Functions that start a coroutine without waiting for it."""
_ADDS = frozenset({"update", "setdefault"})
_NOT_YET = frozenset({False})
_DEAD: frozenset[bool] = frozenset()


def static(source: ClassSource) -> Verdict:
    """Walk every path of each wandb_log that can be read."""
    overrides = [owner.own_methods["wandb_log"] for owner in source.readable if "wandb_log" in owner.own_methods]
    if not overrides:
        if source.unreadable or source.has("wandb_log"):
            return Verdict.undecided("wandb_log may be overridden in code that cannot be read")
        return Verdict.not_applicable("wandb_log is not overridden")
    findings = [finding for item in overrides for finding in _check(source, item)]
    return Verdict.of_source(findings, "every path of wandb_log awaits super().wandb_log(metrics)")


def _check(source: ClassSource, function: Function) -> Iterator[Finding]:
    frame = data_flow(source).entry(function)
    supers = {call.node: call for call in frame.calls if _is_super(call)}
    helpers = {node for node, target in frame.edges if _helper_logs(source, frame, target)} - supers.keys()
    if not supers and not helpers:
        yield finding_at(function, function.node, "wandb_log never calls super().wandb_log: nothing reaches wandb")
        return
    for node, call in supers.items():
        if function.is_async and not is_awaited(function, node):
            yield finding_at(function, node, "super().wandb_log(...) is not awaited: it never runs")
        elif not _gives_metrics(call):
            yield finding_at(function, node, "super().wandb_log() is called without the metrics: they are lost")
        elif lost := _lost_copy(function, node):
            message = (
                f"super().wandb_log() is given its parameter, and not {lost}, which holds the metrics: they are lost after None"
            )
            yield finding_at(function, node, message)
    walk = _Walk(logs=frozenset({*supers, *helpers}), metrics=_metrics_of(supers))
    end = walk.block(function.node.body, _NOT_YET)
    for returned in walk.early:
        yield finding_at(function, returned, "wandb_log returns before it awaits super().wandb_log(metrics)")
    for statement in walk.late:
        yield finding_at(function, statement, "wandb_log adds to the metrics after super().wandb_log has sent them")
    if False in end and not walk.early:
        first = min(walk.logs, key=lambda node: getattr(node, "lineno", 0))
        yield finding_at(function, first, "super().wandb_log is called only on some paths of wandb_log")


def _is_super(call: Call) -> bool:
    if call.name != "wandb_log":
        return False
    if may_be(call.receiver, Kind.SUPER):
        return True
    named = may_be(call.receiver, Kind.CLASS) or may_be(call.receiver, Kind.EXTERNAL)
    return named and bool(call.arguments) and may_be(call.arguments[0], Kind.SELF)


def _helper_logs(source: ClassSource, frame: Frame, target: Frame) -> bool:
    return target.function.name != "wandb_log" and any(
        _is_super(call) for inner in data_flow(source).reached_from(target) if inner is not frame for call in inner.calls
    )


def _gives_metrics(call: Call) -> bool:
    given = list(call.node.args)
    if not may_be(call.receiver, Kind.SUPER):
        given = given[1:]
    values = given + [word.value for word in call.node.keywords]
    return any(not (isinstance(item, ast.Constant) and item.value is None) for item in values)


def _lost_copy(function: Function, node: ast.Call) -> str:
    """Return the local name that the metrics go to, where the parameter is sent, which may be None or another dict."""
    given = [item.id for item in (*node.args, *(word.value for word in node.keywords)) if isinstance(item, ast.Name)]
    parameter = next((name for name in function.positional[1:2] if given == [name]), "")
    nodes = list(function.own_nodes())
    if not parameter or any(
        isinstance(item, ast.Name) and item.id == parameter and isinstance(item.ctx, ast.Store) for item in nodes
    ):
        return ""
    copies = [
        item.targets[0].id
        for item in nodes
        if isinstance(item, ast.Assign)
        and isinstance(item.targets[0], ast.Name)
        and any(isinstance(part, ast.Name) and part.id == parameter for part in ast.walk(item.value))
    ]
    filled = {
        item.value.id
        for item in nodes
        if isinstance(item, ast.Subscript) and isinstance(item.ctx, ast.Store) and isinstance(item.value, ast.Name)
    }
    return next((name for name in copies if name in filled), "")


def _metrics_of(supers: dict[ast.Call, Call]) -> frozenset[str]:
    """Return the names of the dicts that are handed to super().wandb_log."""
    given = [item for node in supers for item in (*node.args, *(word.value for word in node.keywords))]
    return frozenset(item.id for item in given if isinstance(item, ast.Name)) - {"self"}


def _holds(node: ast.AST, inner: ast.AST) -> bool:
    """Whether ``inner`` stands inside ``node``, by their places in the file."""
    first, last = _span(node)
    begin, end = _span(inner)
    return first <= begin and end <= last


def _span(node: ast.AST) -> tuple[tuple[int, int], tuple[int, int]]:
    place = tuple(getattr(node, name, 0) or 0 for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"))
    return (place[0], place[1]), (place[2], place[3])


@dataclass(kw_only=True)
class _Walk:
    """A walk along the paths of a function; a state says whether super().wandb_log was called on the way."""

    logs: frozenset[ast.AST]
    metrics: frozenset[str]
    early: list[ast.stmt] = field(default_factory=list)
    late: list[ast.stmt] = field(default_factory=list)

    def block(self, body: list[ast.stmt], states: frozenset[bool]) -> frozenset[bool]:
        """Return the states at the end of a block; none if its end is never reached."""
        for statement in body:
            if not states:
                break
            states = self._statement(statement, states)
        return states

    def _statement(self, node: ast.stmt, states: frozenset[bool]) -> frozenset[bool]:
        match node:
            case ast.If(test=test):
                states = self._expression(test, states)
                return self.block(node.body, states) | self.block(node.orelse, states)
            case ast.For() | ast.AsyncFor():
                states = self._expression(node.iter, states)
                return self.block(node.orelse, states | self.block(node.body, states))
            case ast.While():
                return self.block(node.orelse, states | self.block(node.body, states))
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    states = self._expression(item.context_expr, states)
                return self.block(node.body, states)
            case ast.Try() | ast.TryStar():
                return self._try(node, states)
            case ast.Match():
                ends = [self.block(case.body, states) for case in node.cases]
                return states.union(*ends)
        if isinstance(node, _SCOPES):
            return states
        after = self._expression(node, states)
        if isinstance(node, ast.Return):
            if False in after:
                self.early.append(node)
            return _DEAD
        if isinstance(node, ast.Raise):
            return _DEAD
        if states == {True} and self._adds(node):
            self.late.append(node)
        return after

    def _try(self, node: ast.Try | ast.TryStar, states: frozenset[bool]) -> frozenset[bool]:
        raised: frozenset[bool] = frozenset()
        done = states
        for statement in node.body:
            if not done:
                break
            after = self._statement(statement, done)
            raised |= after if self._logs_in(statement) and after else done
            done = after
        done = self.block(node.orelse, done)
        ends = done.union(*(self.block(handler.body, raised) for handler in node.handlers))
        return self.block(node.finalbody, ends) if ends else ends

    def _expression(self, node: ast.AST, states: frozenset[bool]) -> frozenset[bool]:
        return frozenset({True}) if self._logs_in(node) else states

    def _logs_in(self, node: ast.AST) -> bool:
        return any(_holds(node, item) for item in self.logs)

    def _adds(self, node: ast.stmt) -> bool:
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AugAssign):
            targets = [node.target]
        holders = [item.value for item in targets if isinstance(item, ast.Subscript)]
        called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in _ADDS:
            holders.append(called.value)
        return any(isinstance(item, ast.Name) and item.id in self.metrics for item in holders)


SCENARIOS = ("wandb_log", "wandb_log_none", "wandb_log_without")
PROBE = "hermes_env/probe"
"""The metric that these scenarios pass to wandb_log."""
WITH_METRICS = {"wandb_log": "", "wandb_log_empty": ", with empty buffers"}
"""Calls with metrics, and what is special about them."""


def dynamic(evidence: Evidence) -> Verdict:
    """Look whether the metrics arrived at wandb."""
    if not evidence.is_own("wandb_log"):
        return Verdict.not_applicable("wandb_log is not overridden")
    for run in evidence.scenarios(*WITH_METRICS):
        if run.error:
            message = f"wandb_log(metrics) {run.failure}{WITH_METRICS[run.name]}"
            return Verdict.failed([evidence.finding(message, "wandb_log", place=run.error_place, scenario=run.name)])
    ran = [run for run in evidence.scenarios(*SCENARIOS) if not run.error]
    if not ran:
        return Verdict.not_exercised(evidence.why_missing(*SCENARIOS))
    findings = [
        evidence.finding(f"wandb_log returned and nothing was logged: {_cause(run)}", "wandb_log", scenario=run.name)
        for run in ran
        if not run.logged
    ]
    findings = findings or list(_lost(evidence))
    return Verdict.of(findings[:1], f"{len(ran)} calls of wandb_log reached wandb, with the given metrics and with its own")


def _lost(evidence: Evidence) -> Iterator[Finding]:
    """Yield the metrics that do not arrive: those that wandb_log is given, and its own beside those."""
    names = {name: _names(evidence.scenario(name)) for name in (*WITH_METRICS, "wandb_log_none", "wandb_log_without")}
    for name, logged in names.items():
        if name in WITH_METRICS and logged and not any(PROBE in metric for metric in logged):
            message = f"wandb_log(metrics) loses the metrics that it is given{WITH_METRICS[name]}"
            yield evidence.finding(message, "wandb_log", seen=_listed(logged), scenario=name)
    own = names["wandb_log_none"] - names["wandb_log_without"]
    if names["wandb_log"] and (lost := own - names["wandb_log"]):
        message = f"wandb_log(metrics) loses its own metrics, which wandb_log(None) logs: {_listed(lost)}"
        yield evidence.finding(message, "wandb_log", seen=_listed(names["wandb_log"]), scenario="wandb_log")


def _names(run: Scenario) -> set[str]:
    return {str(name) for logged in run.logged for name in logged}


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)[:5])


def _cause(run: Scenario) -> str:
    forgotten = any("wandb_log" in warning and "never awaited" in warning for warning in run.warnings)
    return "super().wandb_log(...) is not awaited" if forgotten else "super().wandb_log(...) was not reached"


RULE = Rule(
    doc=__doc__,
    severity=Severity.ERROR,
    static=static,
    dynamic=dynamic,
    scenarios=(*SCENARIOS, "wandb_log_empty"),
    rollouts_decide=False,
    holds_for_base_env=True,
)
