"""HE706 eval-reports-what-it-ran
The metrics of an evaluation come from this evaluation.

What: The same model is evaluated three times. Before the third evaluation, the training buffers on self (rewards,
counters) are changed. A metric that was equal in the first two is equal in the third, and none grows each time by what
the first evaluation reported.

Why: A mean over `self.rewards`, which training fills, is a training curve under an `eval/` name. It follows training by
construction, never shows overfitting, and hides that the held-out items were not measured at all.

Fix: Collect the scores of the evaluation in a local list, and compute every metric of `evaluate_log` from it.
`evaluate_items` passes the samples to its `metrics` function.

Source: atroposlib 0.4.0, `envs/base.py`: `evaluate` runs during training, on the same object.
"""

from __future__ import annotations

from typing import Any

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.play.journal import EvaluationLogged
from pytest_hermes_env.play.scenario import Scenario

SCENARIOS = ("evaluate_once", "evaluate_again", "evaluate_with_other_buffers")


def dynamic(evidence: Evidence) -> Verdict:
    """Compare what evaluations of the same model reported with different training buffers."""
    once, again, other = (evidence.scenario(name) for name in SCENARIOS)
    if not other.happened:
        return Verdict.not_exercised(other.unavailable)
    if not other.note:
        return Verdict.not_applicable("training rollouts left nothing on self that an evaluation could report")
    first, second, third = (_metrics(scenario) for scenario in (once, again, other))
    if not first or not third:
        reason = once.error or other.error or "evaluate() logged no metrics (HE705)"
        return Verdict.not_exercised(reason, "HE705", "HE701")
    steady = [name for name in first if name in second and _is_same(first[name], second[name])]
    moved = sorted(name for name in steady if not _is_same(first[name], third.get(name)))
    findings = [
        evidence.finding(
            f"{name} of the same model changed from {first[name]!r} to {third.get(name)!r} when training buffers differed",
            "evaluate",
            seen=other.note,
            scenario="evaluate_with_other_buffers",
        )
        for name in moved[:1]
    ]
    if not findings and (message := _summed_up(first, second, third)):
        findings = [evidence.finding(message, "evaluate", scenario="evaluate_again")]
    if not steady and not findings:
        return Verdict.not_exercised("every metric of evaluate() differs each time")
    return Verdict.of(findings, f"{len(steady)} metrics of evaluate() do not depend on {other.note}")


def _summed_up(*evaluations: dict[str, Any]) -> str:
    """Return a message where a metric grows with each evaluation by what the first one reported; empty where none does."""
    for name, value in evaluations[0].items():
        numbers = [metrics.get(name) for metrics in evaluations]
        is_positive = all(isinstance(number, int | float) for number in numbers) and value > 0
        if is_positive and all(_is_same(number, value * count) for count, number in enumerate(numbers, 1)):
            return f"{name} sums up all evaluations: it was {', '.join(map(repr, numbers))} for the same model"
    return ""


def _metrics(scenario: Scenario) -> dict[str, Any]:
    return {name: value for event in scenario.of(EvaluationLogged) for name, value in event.metrics.items()}


def _is_same(left: Any, right: Any) -> bool:
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right or (left != left and right != right) or abs(left - right) < 1e-9  # noqa: PLR0124, PLR2004 - NaN
    return bool(left == right)


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=SCENARIOS)
