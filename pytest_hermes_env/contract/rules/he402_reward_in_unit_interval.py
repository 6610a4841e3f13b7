"""HE402 reward-in-unit-interval
`compute_reward` returns values between 0.0 and 1.0.

What: Every finite reward, of the scenarios' rollouts and of the probes, is at least 0.0 and at most 1.0.

Why: Atropos normalises the scores within a group, and a reward of 7.0 trains like any other. But mean rewards of
several environments are compared, thresholds such as `score > 0.8` decide what counts as solved, and an unclamped bonus
hides that another signal stopped working: the mean still rises.

Fix: Clamp the sum of the signals, `min(1.0, max(0.0, total))`, or weight them to add up to 1.0. An environment that
needs another scale on purpose waives this rule with its reason.

Source: The environment guide's reward patterns (correctness 0.6, tool use 0.2, efficiency 0.2, clamped).
"""

from __future__ import annotations

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.play.journal import Reward
from pytest_hermes_env.play.probing.record import as_number
from pytest_hermes_env.play.scenario import CASES, PROBES

SCENARIOS = ("happy", "silent", "evaluate")


def dynamic(evidence: Evidence) -> Verdict:
    """Look at every finite reward of the scenarios, the probes and the declared cases; one finding shows the first that leaves the interval."""
    rewards: list[tuple[float, str, str]] = [
        (number, scenario.name, "")
        for scenario in evidence.scenarios(*SCENARIOS)
        for reward in scenario.of(Reward)
        if not reward.injected and (number := as_number(reward.value)) is not None
    ]
    rewards += [
        (number, PROBES, probe.expression) for probe in evidence.probes.probes if (number := probe.trial.number) is not None
    ]
    rewards += [(rung.reward, CASES, "; ".join(rung.transcript)) for rung in evidence.rungs if rung.reward is not None]
    if not rewards:
        missing = evidence.without_rewards(*SCENARIOS)
        return missing or Verdict.not_exercised("compute_reward returned no finite number", "HE401", "HE403", "HE301")
    beyond = [
        evidence.finding_of_reward(
            number, f"compute_reward returned {number:g}, which is not between 0.0 and 1.0", scenario=scenario, seen=expression
        )
        for number, scenario, expression in rewards
        if not 0.0 <= number <= 1.0
    ]
    return Verdict.of(beyond[:1], f"{len(rewards)} rewards were between 0.0 and 1.0")


RULE = Rule(doc=__doc__, severity=Severity.WARNING, dynamic=dynamic, scenarios=(*SCENARIOS, PROBES, CASES))
