"""HE801 awaits-super-wandb-log
An override of `wandb_log` awaits `super().wandb_log` with its metrics, on every path, after the last metric was added.

What: Every call of `wandb_log` that does not raise reaches `await super().wandb_log(metrics)`, with the metrics that it
was given and its own, also with empty buffers. Clearing buffers later is fine.

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
import dataclasses
from collections.abc import Iterator
from typing import Any

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict
from pytest_hermes_env.play.scenario import Scenario
from pytest_hermes_env.source import Call, ClassSource, Function, finding_at, last_name, reach_of

_STARTS = frozenset({"create_task", "ensure_future"})


def static(source: ClassSource) -> Verdict:
    """Look for the call of super().wandb_log in each override, for its await and its metrics.

    It complements the rollouts: a forgotten call or await shows in one line.
    """
    overrides = [owner.own_methods["wandb_log"] for owner in source.readable if "wandb_log" in owner.own_methods]
    if not overrides:
        if source.unreadable or source.has("wandb_log"):
            return Verdict.undecided("wandb_log may be overridden in code that cannot be read")
        return Verdict.not_applicable("wandb_log is not overridden")
    findings = [finding for item in overrides for finding in _check(source, item)]
    return Verdict.of_source(findings, "wandb_log awaits super().wandb_log(metrics)")


def _check(source: ClassSource, function: Function) -> Iterator[Finding]:
    reach = reach_of(source)
    calls = [call for item in reach.functions_from(function) for call in reach.calls_in(item)]
    supers = [call for call in calls if call.name == "wandb_log" and not _is_of_self(call)]
    if not supers:
        is_sent = any(call.dotted == "wandb.log" for call in calls)
        lost = "the base's own metrics are lost" if is_sent else "nothing reaches wandb"
        yield finding_at(function, function.node, f"wandb_log never calls super().wandb_log: {lost}")
    for call in supers:
        if call.function is function and function.is_async and not _is_awaited(call):
            yield finding_at(function, call.node, "super().wandb_log(...) is not awaited: it never runs")
        elif (none := _nothing_given(call)) is not None:
            message = f"super().wandb_log is given what `{ast.unparse(none)}` returns, which is None: the metrics are lost"
            own, more = ast.unparse(none.func.value), ", ".join(ast.unparse(one) for one in none.args)
            is_plain = len(none.args) == 1 and not none.keywords
            both = f"`{{**({own}), **({more})}}`" if is_plain else "the dict"
            fix = f"Give {both}: update changes its dict in place, and returns nothing."
            yield dataclasses.replace(finding_at(call.function, call.node, message), fix=fix)
        elif all(isinstance(item, ast.Constant) or call.function.is_self(item) for item in _given(call)):
            yield finding_at(call.function, call.node, "super().wandb_log() is called without the metrics: they are lost")


def _nothing_given(call: Call) -> Any:
    """Return the call of a dict's `update` whose result, None, is passed on for the metrics."""
    for given in _given(call):
        values = call.function.values_of(given.id) if isinstance(given, ast.Name) else [given]
        match values[-1:]:
            case [ast.Call(func=ast.Attribute(attr="update", value=held)) as found] if _is_dict(call.function, held):
                return found
    return None


def _is_dict(function: Function, node: ast.expr) -> bool:
    """Tell whether a value is a dict for sure: the metrics that it is given, a display, a call of dict, or one of them."""
    match node:
        case ast.Dict() | ast.DictComp() | ast.Call(func=ast.Name(id="dict")):
            return True
        case ast.BoolOp(values=values):
            return all(_is_dict(function, value) for value in values)
        case ast.Name(id=name):
            bound = function.values_of(name)
            return all(one is not None and _is_dict(function, one) for one in bound) and (
                bool(bound) or name in function.positional
            )
    return False


def _given(call: Call) -> list[ast.expr]:
    return [*call.node.args, *(word.value for word in call.node.keywords)]


def _is_of_self(call: Call) -> bool:
    return isinstance(call.node.func, ast.Attribute) and call.function.is_self(call.node.func.value)


def _is_awaited(call: Call) -> bool:
    """Tell whether a coroutine is awaited or handed on, and not only started or dropped."""
    parent = call.function.parents[call.node]
    return not isinstance(parent, ast.Expr | ast.Return) and not (
        isinstance(parent, ast.Call) and last_name(parent.func) in _STARTS
    )


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
    """Yield the metrics that do not arrive: those that wandb_log is given, and its own next to those."""
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
    holds_for_base_env=True,
)
