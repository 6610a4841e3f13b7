"""HE703 eval-is-greedy
`evaluate` samples at temperature 0.0.

What: Each agent loop that `evaluate` runs has temperature 0. Without an argument `agent_rollout` samples at
`agent_temperature`, the temperature of training, and a `HermesAgentLoop` at its default, 1.0. `evaluate_items` is greedy
unless it is given another temperature.

Why: At temperature 1.0 the same checkpoint scores differently at every evaluation: with 50 items the mean moves by
several points from noise alone. The best checkpoint of a run is then the luckiest one, and two runs cannot be compared.

Fix: `self.agent_rollout(item, temperature=0.0)`, `self.evaluate_items()`, or a setting for evaluation with the default
0.0.

Source: `environments.hermes_base_env`, `agent_rollout` and `evaluate_items`; `environments.agent_loop.HermesAgentLoop`
(`temperature=1.0` by default).
"""

from __future__ import annotations

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict, one_per_place
from pytest_hermes_env.play.journal import LoopStarted

SCENARIOS = ("evaluate",)


def dynamic(evidence: Evidence) -> Verdict:
    """Look at the temperature of each loop that evaluate() ran."""
    evaluation = evidence.scenario("evaluate")
    if not evaluation.happened:
        return Verdict.not_exercised(evaluation.unavailable)
    loops = evaluation.of(LoopStarted)
    if not loops:
        return Verdict.not_exercised("evaluate() ran no agent loop (HE701)", "HE701", "HE705")
    asked = next(
        (value for request in evaluation.requests if request.get("tools") and (value := request.get("temperature"))), 0
    )
    sampled = [(loop, asked if loop.temperature is None else loop.temperature) for loop in loops]  # a fork's may not keep it
    findings = one_per_place(
        evidence.recorded_finding(
            f"an agent loop of evaluate() sampled at temperature {temperature}", loop.place, "evaluate", scenario="evaluate"
        )
        for loop, temperature in sampled
        if temperature != 0
    )
    return Verdict.of(findings, f"evaluate() sampled at temperature 0 in {len(loops)} rollouts")


RULE = Rule(doc=__doc__, severity=Severity.WARNING, dynamic=dynamic, scenarios=SCENARIOS)
