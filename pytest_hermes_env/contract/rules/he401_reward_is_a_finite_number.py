"""HE401 reward-is-a-finite-number
`compute_reward` returns a finite `int` or `float`.

What: The value that `compute_reward` returns is an `int` or a `float` that is neither NaN nor infinite. True, False and
None do not count as numbers.

Why: One NaN in a group makes the group's mean NaN, and with it every advantage of the group. After one optimiser step
the weights are NaN, and the run is lost. None breaks the arithmetic of the group after its model calls were paid for. A
bool is usually a comparison that was returned instead of a score.

Fix: Return a float on every path, also where nothing was found. Guard divisions whose divisor can be 0, and check a
parsed score with `math.isfinite`.

Source: atroposlib 0.4.0, `envs/base.py`, `ScoredDataGroup` (`scores`: list of float); `api/server.py`, `ScoredData`.
"""

from __future__ import annotations

import dataclasses
import math
from typing import SupportsFloat

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict, one_per_place
from pytest_hermes_env.contract.rules.he101_required_methods import defined_twice
from pytest_hermes_env.play.codec import type_name
from pytest_hermes_env.play.journal import Reward, UnknownRead
from pytest_hermes_env.play.scenario import CASES, PROBES, Scenario

SCENARIOS = ("happy", "silent", "tool_error", "evaluate")
LONGEST = 1000
"""Characters of what is shown of a result."""


def dynamic(evidence: Evidence) -> Verdict:
    """Look at every value that compute_reward returned, before the base replaced what it cannot use by 0.0."""
    ran = [*evidence.scenarios(*SCENARIOS), *evidence.played_cases]
    rewards: list[tuple[str, object, str]] = [
        (scenario.name, reward.value, repr(reward.value))
        for scenario in ran
        for reward in scenario.of(Reward)
        if not reward.injected and not reward.error
    ]
    rewards += [(PROBES, probe.trial.value, probe.expression) for probe in evidence.probes.probes if not probe.trial.error]
    if not rewards:
        return evidence.without_rewards(*SCENARIOS) or _why_none(ran)
    findings = one_per_place(
        evidence.finding_of_reward(value, f"compute_reward {fault}", scenario=name, seen=seen[:LONGEST])
        for name, value, seen in rewards
        if (fault := _fault(value))
    )
    twice = defined_twice(evidence.source) if evidence.source is not None else ()
    owner = "HE101" if any(name == "compute_reward" for name, _ in twice) else ""
    findings = tuple(dataclasses.replace(found, because_of=owner) for found in findings)
    return Verdict.of(findings, f"{len(rewards)} rewards were finite numbers")


def _why_none(ran: list[Scenario]) -> Verdict:
    """Return the verdict where compute_reward was called and never returned."""
    rewards = [(scenario, reward) for scenario in ran for reward in scenario.of(Reward)]
    if all(_stopped_by_unknown_read(reward, scenario) for scenario, reward in rewards):
        return Verdict.not_exercised("every call of compute_reward stopped at a read that HE301 reports", "HE301")
    return Verdict.not_exercised("every call of compute_reward raised, which HE403 reports", "HE403")


def _stopped_by_unknown_read(reward: Reward, scenario: Scenario) -> bool:
    """Tell whether the reward raised where it read what AgentResult does not have: that is HE301's finding."""
    return bool(reward.error) and any(read.place == reward.place for read in scenario.of(UnknownRead))


def _fault(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, SupportsFloat):
        lone = " (a comma behind the value makes a tuple of it)" if isinstance(value, tuple) and len(value) == 1 else ""
        return f"returned {type_name(value)} {str(value)[:80]}, not a number{lone}"
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        return f"returned {type_name(value)} {str(value)[:80]}, which is not one number: {error}"
    return "" if math.isfinite(number) else f"returned {number}, which is not finite"


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=(*SCENARIOS, CASES, PROBES))
