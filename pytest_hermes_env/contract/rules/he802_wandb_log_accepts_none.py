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
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.evidence import Evidence
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.source import ClassSource, Function, finding_at
from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

_NEEDS_A_DICT = frozenset({"dict", "enumerate", "iter", "len", "list", "set", "sorted", "sum", "tuple"})
_PATHS = (
    ast.IfExp,
    ast.Lambda,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.GeneratorExp,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
)
"""Code that need not run where it stands."""


def static(source: ClassSource) -> Verdict:
    """Look at the parameters of each wandb_log that can be read, and at the first use of its metrics."""
    overrides = [owner.own_methods["wandb_log"] for owner in source.readable if "wandb_log" in owner.own_methods]
    if not overrides:
        if source.unreadable or source.has("wandb_log"):
            return Verdict.undecided("wandb_log may be overridden in code that cannot be read")
        return Verdict.not_applicable("wandb_log is not overridden")
    findings = [finding for item in overrides for finding in _check(item)]
    doubt = (
        "" if all(map(_replaces_none, overrides)) else "whether None is replaced on every path shows when wandb_log is called"
    )
    return Verdict.of_source(findings, "wandb_log replaces None before it uses the metrics", doubt=doubt)


def _check(function: Function) -> Iterator[Finding]:
    names = _parameters(function)
    arguments = function.node.args
    if not names and arguments.vararg is None and arguments.kwarg is None and not arguments.kwonlyargs:
        yield finding_at(function, function.node, "wandb_log has no metrics parameter, but the base class passes one")
    if required := [name for name in names if name not in function.defaults]:
        yield finding_at(
            function, function.node, f"wandb_log requires {', '.join(required)}; wandb_log() without an argument fails"
        )
    first = next(_mentions(function), None)
    if first is not None and _fails_on_none(function, first):
        yield finding_at(function, first, "wandb_log uses the metrics before it replaces None with a dict")


def _parameters(function: Function) -> tuple[str, ...]:
    return tuple(function.positional[0 if function.is_static else 1 :])


def _mentions(function: Function) -> Iterator[ast.Name]:
    """Yield where the metrics parameter is named, in the order of the text."""
    names = [node for node in ast.walk(function.node) if isinstance(node, ast.Name) and node.id in _parameters(function)[:1]]
    yield from sorted(names, key=lambda node: _position(function, node))


def _position(function: Function, node: ast.Name) -> tuple[int, int]:
    """Return where a name is read, or where the statement that sets it ends."""
    place: ast.AST = function.parents[node] if isinstance(node.ctx, ast.Store) else node
    if isinstance(node.ctx, ast.Store) and isinstance(place, ast.stmt | ast.expr):
        return place.end_lineno or 0, place.end_col_offset or 0
    return node.lineno, node.col_offset


def _fails_on_none(function: Function, node: ast.Name) -> bool:
    """Whether what is done with a name raises when it is None."""
    above = function.parents.get(node)
    while above is not None and above is not function.node:
        if isinstance(above, _PATHS):
            return False
        above = function.parents.get(above)
    match function.parents.get(node):
        case ast.Subscript(value=used) | ast.Attribute(value=used) | ast.For(iter=used) | ast.AugAssign(target=used):
            return used is node
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[used]):
            return used is node
        case ast.Dict(keys=keys, values=values):
            return any(key is None and value is node for key, value in zip(keys, values, strict=True))
        case ast.keyword(arg=name):
            return name is None
        case ast.Call(func=ast.Name(id=name)):
            return name in _NEEDS_A_DICT
        case ast.BinOp():
            return True
    return False


def _replaces_none(function: Function) -> bool:
    """Whether every use of the metrics, up to the statement that replaces None, is one that None may have."""
    for node in _mentions(function):
        parent = function.parents[node]
        above = function.parents[parent] if parent is not function.node else parent
        if isinstance(node.ctx, ast.Store):
            return parent in function.node.body
        if _is_guard(parent, above):
            return above in function.node.body
        if not _may_be_none(node, parent, above):
            return False
    return True


def _is_guard(test: ast.AST, statement: ast.AST) -> bool:
    """Whether a test is that of an `if` without metrics, which gives them a value or leaves the method."""
    match test:
        case (
            ast.Compare(ops=[ast.Is()], comparators=[ast.Constant(value=None)], left=name)
            | ast.UnaryOp(op=ast.Not(), operand=name)
        ):
            match statement:
                case ast.If(body=[*_, ast.Return() | ast.Raise()]):
                    return True
                case ast.If(body=[ast.Assign(targets=[target])]):
                    return ast.unparse(target) == ast.unparse(name)
    return False


def _may_be_none(node: ast.Name, parent: ast.AST, above: ast.AST) -> bool:
    """Whether None does no harm in this place: before an `or`, where it is asked for, or handed to the base."""
    match parent:
        case ast.BoolOp(op=ast.Or(), values=[*_, last]):
            return last is not node
        case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
            return isinstance(above, ast.IfExp)
        case (
            ast.IfExp(test=ast.Compare(left=ast.Name(id=name), ops=[ast.Is()]), orelse=kept)
            | ast.IfExp(test=ast.Compare(left=ast.Name(id=name), ops=[ast.IsNot()]), body=kept)
        ):
            return kept is node and name == node.id
        case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")))):
            return True
    return False


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
