"""HE401 reward-is-a-finite-number
compute_reward returns a finite int or float.

What: the value that comes back from compute_reward is an int or a float that is neither NaN nor infinite. True, False
and None are no numbers here.

Why: one NaN in a group makes the group's mean NaN, and with it every advantage of the group; after one optimiser step
the weights are NaN, and the run is lost from there on. None breaks the arithmetic of the group, whose model calls
were already paid for. A bool is a comparison that was returned in place of a score.

Fix: return a float on every path, also where nothing was found. Guard divisions whose divisor can be 0, and a parsed
score with math.isfinite.

Source: atroposlib 0.4.0, envs/base.py, ScoredDataGroup (scores: list of float); api/server.py, ScoredData.
"""

from __future__ import annotations

import math
from typing import SupportsFloat

from pytest_hermes_env.contract.evidence import (
    Evidence,
    Reward,
    Scenario,
    UnknownRead,
)
from pytest_hermes_env.contract.rule import (
    Finding,
    Rule,
    Severity,
    Verdict,
    judged,
    not_exercised,
)

SCENARIOS = ("happy", "silent", "evaluate")


def dynamic(evidence: Evidence) -> Verdict:
    """Look at every value that compute_reward returned, before the base replaced what it cannot use by 0.0."""
    ran = evidence.scenarios(*SCENARIOS)
    rewards = [
        (scenario.name, reward)
        for scenario in ran
        for reward in scenario.of(Reward)
        if not reward.injected and not _stopped_by_unknown_read(reward, scenario)
    ]
    if not rewards:
        stopped = any(scenario.of(Reward) for scenario in ran)
        reason = (
            "every call of compute_reward stopped at a read that HE301 reports" if stopped else "nobody called compute_reward"
        )
        return not_exercised(evidence.why_missing(*SCENARIOS) or reason)
    findings: dict[int, Finding] = {}
    for name, reward in rewards:
        fault = f"raised {reward.error}" if reward.error else _fault(reward.value)
        if fault:
            raised_at = reward.place.path, reward.place.line
            path, line = raised_at if reward.error else evidence.at_return("compute_reward", reward.value)
            found = Finding(
                message=f"compute_reward {fault}", path=path, line=line, seen=repr(reward.value)[:200], scenario=name
            )
            findings.setdefault(line, found)
    return judged(findings.values(), f"{len(rewards)} rewards were finite numbers")


def _stopped_by_unknown_read(reward: Reward, scenario: Scenario) -> bool:
    """Tell whether the reward raised where it read what AgentResult does not have: that is HE301's finding."""
    return bool(reward.error) and any(read.place == reward.place for read in scenario.of(UnknownRead))


def _fault(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, SupportsFloat):
        return f"returned {type(value).__name__} {str(value)[:80]}, not a number"
    return "" if math.isfinite(float(value)) else f"returned {float(value)}, which is not finite"


RULE = Rule(
    id="HE401",
    name="reward-is-a-finite-number",
    severity=Severity.ERROR,
    doc=__doc__,
    dynamic=dynamic,
    scenarios=SCENARIOS,
)
