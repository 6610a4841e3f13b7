"""HE705 eval-is-logged
`evaluate` awaits `evaluate_log` with metrics and samples, and the names of its metrics begin with `eval/`.

What: An `evaluate` that ran its rollouts awaits `evaluate_items`, which logs by itself, or `self.evaluate_log` at least
once, with at least one metric and one sample, and not every sample is that of a failed item: one with an `error`, or
with the score None. Each metric's name begins with "eval/".

Why: `evaluate_log` writes `metrics.json` and `samples.jsonl`, the only record of an evaluation. Without samples it
cannot be seen why a score fell; without the `eval/` prefix the numbers land among the training curves; without await
nothing is written, and Python only mentions a coroutine that was never awaited.

Fix: Set `self.eval_items` in `setup()` and `await self.evaluate_items()`, or
`await self.evaluate_log({"eval/mean_reward": mean}, samples=samples, start_time=start, end_time=end)`.

Source: `environments.hermes_base_env`, `evaluate_items`; atroposlib 0.4.0, `envs/base.py`, `BaseEnv.evaluate_log`.
"""

from __future__ import annotations

import dataclasses

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict
from pytest_hermes_env.play.journal import EvaluationLogged, EvaluationReturned, LoopStarted, Reward
from pytest_hermes_env.play.probing.record import as_number
from pytest_hermes_env.play.scenario import ErrorKind, Scenario

_PREFIX = "eval/"
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
    scenario = evidence.scenario("evaluate")
    is_idle = not scenario.of(LoopStarted) and not scenario.requests
    has_no_number = any(as_number(reward.value) is None for reward in scenario.of(Reward))
    found = evidence.finding(message, "evaluate", scenario="evaluate")
    return dataclasses.replace(found, because_of="HE701" if is_idle else "HE401" if has_no_number else "")


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=SCENARIOS)
