"""HE405 reward-tells-apart
Rewards differ where the work differs.

What: over the rollouts of the scenarios and the probes, compute_reward gives more than one reward; and a rollout that
used its tools does not score below one that did nothing. A reward that is the same for every transcript is reported
when it is not 0.0, or when the source can give nothing else. Always 0.0 is what an honest verifier says to rollouts
that never did the work: then the rule is not exercised until the environment declares a good transcript.

Why: in a group with equal scores every advantage is zero, and nothing is learnt from it; atroposlib drops such groups.
A reward that is always 0.0 or always 1.0 costs the whole run, and the usual reason is a swallowed exception or a
comparison that never holds.

Fix: try the reward by hand on a transcript that solves the item and on one that does not. Look for a broad
`except: return 0.0`, for a key that the item does not have, and for a check that is true for an empty answer.

Source: atroposlib 0.4.0, envs/base.py, handle_send_to_api (ensure_scores_are_not_same).
"""

from __future__ import annotations

import ast
import statistics

from pytest_hermes_env.contract.evidence import (
    PROBES,
    Evidence,
    Reward,
    as_number,
)
from pytest_hermes_env.contract.rule import (
    Finding,
    Rule,
    Severity,
    Verdict,
    failed,
    not_applicable,
    not_exercised,
    passed,
)

SCENARIOS = ("happy", "silent")
NEEDS_A_CASE = "no scripted transcript does the work, and every reward was 0.0: declare a good transcript"


def dynamic(evidence: Evidence) -> Verdict:
    """Compare happy with silent, and all rewards with each other.

    Declared transcripts, once an environment has some, are compared here before anything else.
    """
    worked, idle = (_rewards(evidence, name) for name in SCENARIOS)
    probed = list(evidence.probes.numbers)
    every = [*worked, *idle, *probed]
    if not every:
        reason = evidence.why_missing(*SCENARIOS) or evidence.probes.unavailable
        if "get_next_item gave None" in reason:
            return not_applicable(reason)
        return not_exercised(reason or "compute_reward gave no finite number")
    if len(set(every)) == 1:
        return _constant(evidence, every)
    if worked and idle and statistics.fmean(worked) < statistics.fmean(idle):
        means = f"{statistics.fmean(worked):g} and {statistics.fmean(idle):g}"
        return failed([_finding(evidence, f"a rollout that used every tool scored below one that did nothing ({means})")])
    return passed(f"rewards from {min(every):g} to {max(every):g} over {len(every)} transcripts")


def _rewards(evidence: Evidence, scenario: str) -> list[float]:
    return [
        number
        for record in evidence.scenarios(scenario)
        for reward in record.of(Reward)
        if not reward.injected and (number := as_number(reward.value)) is not None
    ]


def _constant(evidence: Evidence, every: list[float]) -> Verdict:
    """Return what a reward that was the same every time means."""
    value = every[0]
    if value or _gives_nothing_else(evidence, value):
        return failed([_finding(evidence, f"compute_reward returned {value:g} for each of {len(every)} different transcripts")])
    return not_exercised(NEEDS_A_CASE)


def _gives_nothing_else(evidence: Evidence, value: float) -> bool:
    """Tell whether every return statement of compute_reward gives this one constant."""
    function = evidence.source.methods.get("compute_reward") if evidence.source is not None else None
    if function is None:
        return False
    returns = [node for node in function.own_nodes() if isinstance(node, ast.Return)]
    given = [node.value.value if isinstance(node.value, ast.Constant) else None for node in returns]
    return bool(given) and all(isinstance(one, int | float) and one == value for one in given)


def _finding(evidence: Evidence, message: str) -> Finding:
    path, line = evidence.at_method("compute_reward")
    return Finding(message=message, path=path, line=line, severity=Severity.WARNING)


RULE = Rule(
    id="HE405",
    name="reward-tells-apart",
    severity=Severity.ERROR,
    doc=__doc__,
    dynamic=dynamic,
    scenarios=(*SCENARIOS, PROBES),
)
