"""HE705 eval-is-logged
`evaluate` awaits `evaluate_log` with metrics and samples, and the names of its metrics begin with `eval/`.

What: `evaluate`, through helpers and inherited methods, awaits `evaluate_items`, which logs by itself, or
`self.evaluate_log` with metrics and samples. Each metric's name begins with "eval/". In a scenario, an `evaluate` that
ran its rollouts logged at least once, with at least one metric and one sample, and not every sample is that of a failed
item: one with an `error`, or with the score None.

Why: `evaluate_log` writes `metrics.json` and `samples.jsonl`, the only record of an evaluation. Without samples it
cannot be seen why a score fell; without the `eval/` prefix the numbers land among the training curves; without await
nothing is written, and Python only mentions a coroutine that was never awaited.

Fix: Set `self.eval_items` in `setup()` and `await self.evaluate_items()`, or
`await self.evaluate_log({"eval/mean_reward": mean}, samples=samples, start_time=start, end_time=end)`.

Source: `environments.hermes_base_env`, `evaluate_items`; atroposlib 0.4.0, `envs/base.py`, `BaseEnv.evaluate_log`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.awaited_calls import is_awaited
from pytest_hermes_env.contract.evidence import Evidence
from pytest_hermes_env.contract.rollout_blocks import without_evaluate
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.play.journal import EvaluationLogged, EvaluationReturned, LoopStarted, Reward
from pytest_hermes_env.play.scenario import Scenario
from pytest_hermes_env.play.unavailable import ErrorKind
from pytest_hermes_env.source import (
    LAYER_EVALUATION,
    UNKNOWN,
    Call,
    ClassSource,
    Frame,
    Function,
    Kind,
    Value,
    argument,
    calls_layer,
    constant_value,
    data_flow,
    finding_at,
    may_be_unpacked,
    must_be,
    origins,
    unresolved_calls,
)
from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX = "eval/"
_SAMPLES = 6


def static(source: ClassSource) -> Verdict:
    """Look for evaluate_log in what evaluate reaches, and at what it is given."""
    start = data_flow(source).method("evaluate")
    if start is None:
        return without_evaluate(source)
    frames = data_flow(source).reached_without(start, "compute_reward")
    logs = [(call, frame) for frame in frames for call in frame.calls if call.name == "evaluate_log"]
    evaluations = [(call, frame) for frame in frames for call in frame.calls if calls_layer(call, {LAYER_EVALUATION})]
    if not logs and not evaluations:
        doubt = next(unresolved_calls(frames), None)
        if doubt is not None:
            return Verdict.undecided(f"line {doubt.node.lineno}: {doubt.name}(...) calls code that cannot be read")
        handed = next((node for frame in frames for node in _handed_on(frame.function.node)), None)
        if handed is not None:
            return Verdict.undecided(f"line {handed.lineno} passes evaluate_log on")
        return Verdict.failed(
            [finding_at(start.function, start.function.node, "evaluate logs nothing: it never awaits evaluate_log")]
        )
    findings = [finding for call, frame in logs for finding in _check(call, frame, frames)]
    findings += [finding for call, frame in evaluations for finding in _check_evaluation(source, call, frame, frames)]
    return Verdict.of_source(findings, "evaluate awaits evaluate_log with metrics and samples")


def _handed_on(function: ast.AST) -> Iterator[ast.expr]:
    """Yield where evaluate_log is named, but not called."""
    called = {node.func for node in ast.walk(function) if isinstance(node, ast.Call)}
    for node in ast.walk(function):
        if (isinstance(node, ast.Attribute) and node.attr == "evaluate_log" and node not in called) or (
            isinstance(node, ast.Constant) and node.value == "evaluate_log"
        ):
            yield node


def _check(call: Call, frame: Frame, frames: tuple[Frame, ...]) -> Iterator[Finding]:
    function, node = call.function, call.node
    if (
        function.is_async
        and not is_awaited(function, node)
        and not isinstance(function.parents.get(node), ast.Return | ast.Lambda)
    ):
        yield finding_at(function, node, f"{function.name} calls evaluate_log without awaiting it: nothing is logged")
    metrics, samples = argument(node, 0, "metrics"), argument(node, _SAMPLES, "samples")
    if metrics is None and not may_be_unpacked(call, "metrics"):
        yield finding_at(function, node, f"{function.name} calls evaluate_log without metrics")
    if samples is None:
        if not may_be_unpacked(call, "samples"):
            yield finding_at(
                function, node, f"{function.name} calls evaluate_log without samples: nobody can see what was answered"
            )
    elif _is_nothing(samples, call):
        yield finding_at(
            function, node, f"{function.name} gives evaluate_log samples={ast.unparse(samples)}: no sample is kept"
        )
    for name, place in _wrong_names(metrics, frame, frames) if metrics is not None else ():
        message = f"the metric {name!r} of evaluate does not begin with {_PREFIX!r}"
        yield finding_at(place.function, node if place is frame else place.function.node, message)


def _check_evaluation(source: ClassSource, call: Call, frame: Frame, frames: tuple[Frame, ...]) -> Iterator[Finding]:
    """Yield the violations of a call of evaluate_items, which logs by itself: not awaited, or with metrics of other names."""
    function, node = call.function, call.node
    if isinstance(function.parents.get(node), ast.Expr):
        yield finding_at(
            function, node, f"{function.name} calls {call.name} without awaiting it: nothing is evaluated or logged"
        )
    for value in call.keywords.get("metrics", ()):
        for given, holder in _returned(source, value, frame):
            for name, place in _wrong_names(given, holder, frames):
                yield finding_at(place.function, given, f"the metric {name!r} of evaluate does not begin with {_PREFIX!r}")


def _returned(source: ClassSource, value: Value, frame: Frame) -> Iterator[tuple[ast.expr, Frame]]:
    """Yield the expressions that a function returns, with the frame that they are written in."""
    if isinstance(value.node, ast.Lambda):
        yield value.node.body, frame
        return
    holder = data_flow(source).entry(value.target) if isinstance(value.target, Function) else frame
    node = value.target.node if isinstance(value.target, Function) else value.node
    for part in ast.walk(node) if node is not None and value.kind is not Kind.ANYTHING else ():
        if isinstance(part, ast.Return) and part.value is not None:
            yield part.value, holder


def _is_nothing(samples: ast.expr, call: Call) -> bool:
    if isinstance(samples, ast.Constant) and samples.value is None:
        return True
    return isinstance(samples, (ast.List, ast.Tuple, ast.Dict)) and must_be(
        call.keywords.get("samples", frozenset()), Kind.EMPTY
    )


def _wrong_names(metrics: ast.expr, frame: Frame, frames: tuple[Frame, ...]) -> Iterator[tuple[str, Frame]]:
    """Yield the names of metrics that are known to begin otherwise, and the frame that they are written in."""
    for node, holder in origins(metrics, frame, frames):
        for key in _keys(node, holder):
            if (begin := _beginning(key, holder)) and not begin.startswith(_PREFIX) and not _PREFIX.startswith(begin):
                yield begin, holder
    if isinstance(metrics, ast.Name):
        for part in ast.walk(frame.function.node):
            if (
                isinstance(part, ast.Subscript)
                and isinstance(part.ctx, ast.Store)
                and isinstance(part.value, ast.Name)
                and part.value.id == metrics.id
                and (begin := _beginning(part.slice, frame))
                and not begin.startswith(_PREFIX)
            ):
                yield begin, frame


def _keys(node: ast.expr, frame: Frame) -> Iterator[ast.expr]:
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None:
                yield key
            else:
                yield from _keys(value, frame)
    elif isinstance(node, ast.DictComp):
        yield node.key
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        for word in node.keywords:
            if word.arg is not None:
                yield ast.copy_location(ast.Constant(value=word.arg), node)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        yield from _keys(node.left, frame)
        yield from _keys(node.right, frame)


def _beginning(key: ast.expr, frame: Frame) -> str:
    """Return how a name begins, as far as it is written down: whole where it is a constant."""
    if isinstance(key, ast.JoinedStr):
        return _beginning(key.values[0], frame) if key.values else ""
    if isinstance(key, ast.BinOp) and isinstance(key.op, ast.Add):
        return _beginning(key.left, frame)
    value = constant_value(key, frame.function.module, frame.function)
    return value if value is not UNKNOWN and isinstance(value, str) else ""


SCENARIOS = ("evaluate",)


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what evaluate() logged."""
    evaluation = evidence.scenario("evaluate")
    if not evaluation.happened:
        return Verdict.not_exercised(evaluation.unavailable)
    logged = evaluation.of(EvaluationLogged)
    if evaluation.error_kind is ErrorKind.EVALUATE_NEEDS_ARGUMENTS:
        return Verdict.not_exercised("evaluate cannot be called without arguments, which HE102 reports", "HE102")
    if evaluation.error_kind is ErrorKind.NOT_AWAITABLE and not evaluation.error_place.line:
        return Verdict.not_exercised(f"evaluate() raised {evaluation.error}", "HE102")
    if evaluation.error and (elsewhere := evidence.reported_elsewhere(evaluation)):
        return elsewhere
    if evaluation.error:
        message = f"evaluate() {evaluation.failure}" + (", after it had logged" if logged else "")
        place = evaluation.error_place
        return Verdict.failed([evidence.finding(message, "evaluate", place=place, scenario="evaluate")])
    if not logged:
        if not evaluation.of(LoopStarted) and not evaluation.requests:
            return Verdict.not_exercised("evaluate() never called the model (HE701)", "HE701")
        return Verdict.failed([_finding(evidence, "evaluate() never called evaluate_log")])
    messages = []
    if any(isinstance(event, EvaluationReturned) for event in evaluation.events[: evaluation.events.index(logged[0])]):
        messages.append("evaluate() returned before its evaluate_log had run: nobody awaits it")
    if not any(event.metrics for event in logged):
        messages.append("evaluate() logged no metric")
    if not any(event.samples for event in logged):
        messages.append("evaluate() logged no sample: nobody can see what was answered")
    if (failed := _nothing_scored(evaluation)) is not None:
        messages.append(failed)
    wrong = sorted({str(name) for event in logged for name in event.metrics if not str(name).startswith(_PREFIX)})
    if wrong:
        messages.append(f"metrics of evaluate() do not begin with {_PREFIX!r}: {', '.join(wrong[:5])}")
    count = sum(len(event.metrics) for event in logged), sum(event.samples for event in logged)
    findings = [_finding(evidence, "; ".join(messages))] if messages else []
    return Verdict.of(findings, f"evaluate() logged {count[0]} metrics and {count[1]} samples")


def _nothing_scored(evaluation: Scenario) -> str | None:
    """Return a message when every logged sample is that of a failed item. A compute_reward that raised is HE403's."""
    logged = evaluation.of(EvaluationLogged)
    samples = sum(event.samples for event in logged)
    if not samples or any(event.failed < event.samples for event in logged):
        return None
    if any(reward.error and not reward.injected for reward in evaluation.of(Reward)):
        return None
    error = next((event.error for event in logged if event.error), "the score is None")
    return f"evaluate() scored none of its {samples} items: {error}"


def _finding(evidence: Evidence, message: str) -> Finding:
    return evidence.finding(message, "evaluate", scenario="evaluate")


RULE = Rule(doc=__doc__, severity=Severity.ERROR, static=static, dynamic=dynamic, scenarios=SCENARIOS)
