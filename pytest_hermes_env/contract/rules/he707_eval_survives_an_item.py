"""HE707 eval-survives-an-item
A failing item does not lose the others.

What: While the reward, or the agent loop, of one rollout of `evaluate` raises, `evaluate` does not raise, and logs the
samples of all other items.

Why: An evaluation of 200 items runs for an hour. One timeout of a judge or one broken file in a sandbox, without a
`try` around the item, throws away 199 results and the money they cost, and the curve has a gap where it mattered.

Fix: Use `evaluate_items`, which counts failed items in `eval/errors`. By hand: put `try: ... except Exception:` around
each item, log the exception, keep a sample with the error, and report the number of failed items as a metric; or use
`asyncio.gather(..., return_exceptions=True)`.

Source: `environments.hermes_base_env`, `evaluate_items`; atroposlib 0.4.0, `envs/base.py`, where an exception of
`evaluate` is lost with its task.
"""

from __future__ import annotations

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.play.journal import EvaluationLogged, LoopStarted, Reward
from pytest_hermes_env.play.scenario import Scenario

_FAILING = {
    "evaluate_one_reward_raises": "the reward of one item raised",
    "evaluate_one_loop_raises": "the agent loop of one item raised",
    "evaluate_item_fails": "the model's server failed for one item",
}
SCENARIOS = ("evaluate", "evaluate_few", *_FAILING)


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what evaluate() logged while one of its items failed."""
    whole = evidence.scenario("evaluate")
    ran = [scenario for scenario in evidence.scenarios(*_FAILING) if scenario.of(LoopStarted) or scenario.of(Reward)]
    if not whole.happened or not ran:
        return Verdict.not_exercised(evidence.why_missing(*SCENARIOS) or "evaluate() ran no rollout (HE701)", "HE701", "HE705")
    if whole.error:
        return Verdict.not_exercised(f"evaluate() also raises without a failing item: {whole.error}", "HE705")
    expected = _samples(evidence.scenario("evaluate_few"))
    if not whole.of(EvaluationLogged):
        return Verdict.not_exercised("evaluate() logs nothing (HE705)", "HE705")
    findings = [
        evidence.finding(f"{_FAILING[scenario.name]}, and {text}", "evaluate", scenario=scenario.name)
        for scenario in ran
        if (text := _lost(scenario, expected))
    ]
    return Verdict.of(findings[:1], f"evaluate() survived {len(ran)} failures of single items")


def _lost(scenario: Scenario, expected: int) -> str:
    if scenario.error:
        return f"evaluate() raised {scenario.error}: the results of the other items are lost"
    logged = _samples(scenario)
    if not scenario.of(EvaluationLogged):
        return "evaluate() logged nothing: the results of the other items are lost"
    return f"evaluate() logged {logged} samples of the expected {expected}" if logged < expected - 1 else ""


def _samples(scenario: Scenario) -> int:
    return sum(event.samples for event in scenario.of(EvaluationLogged))


RULE = Rule(doc=__doc__, severity=Severity.WARNING, dynamic=dynamic, scenarios=SCENARIOS)
