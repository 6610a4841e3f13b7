"""HE508 failures-train-nothing
A rollout whose model server or reward failed is not scored as if it had finished, and trains nothing.

What: When the model's server fails after the first turn, or `compute_reward` raises, every mask of the rollout is -100,
or there is no item; and the rollout keeps the mark of the base that it has no score of its own. Where every method of
`ctx` raises, since the sandbox is gone, `compute_reward` raises, or gives no more than for an answer without any work.

Why: The model's replies before the failure are trained on with a reward of 0.0 for a failure that was not the model's,
and the other rollouts of the group get an advantage for a server that stayed up.

Fix: Copy `overrides` and `scores` of an item as they are: a score of the type `UnearnedScore` marks a failed rollout.
Where you build masks: `[-100] * len(tokens)` when `result.end.is_failure`. Let errors of the sandbox be raised: the
base never scores such a rollout.

Source: `environments.trainer.scoring.left_out`; atroposlib 0.4.0, `envs/base.py` (`ScoredDataGroup`) and
`example_trainer/data.py` (advantages within a group).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict
from pytest_hermes_env.contract.judge.scored_data import OF_GROUPS, groups_of, items_of, rows_of, unmarked_rows
from pytest_hermes_env.play.journal import LoopEnded, Reward
from pytest_hermes_env.play.scenario import Scenario

_LET_IT_RAISE = (
    "Let errors of the sandbox be raised: the base computes the reward again, and never scores a rollout without one."
)
UNREWARDED = "reward_raises"
FAILURES = ("server_error_later", UNREWARDED)
WORKLESS, LOST = "silent", "sandbox_lost"
SCENARIOS = ("happy", WORKLESS, *FAILURES, LOST)
"""The first shows that there are groups at all: where every rollout failed, none is as good as one that trains nothing."""
FAILED = ("model_failed", "aborted_by_server")
"""Ends of loops whose rollouts earned no score."""


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what is trained or scored where every rollout failed: the model's server, or the reward."""
    if missing := evidence.without_groups(*SCENARIOS):
        return missing
    paid = list(_paid_for_nothing(evidence))
    failed = [(scenario, what) for scenario in evidence.scenarios(*FAILURES) if (what := _what_failed(scenario))]
    if not failed and not paid:
        return Verdict.not_applicable("the agent loop of this layer does not say how a rollout ended")
    findings = [*paid, *(finding for scenario, what in failed for finding in _findings(evidence, scenario, what))]
    return Verdict.of(findings[:1], f"nothing was trained where {' or '.join(what for _, what in failed)} failed")


def _paid_for_nothing(evidence: Evidence) -> Iterator[Finding]:
    """Find a reward that pays more where its sandbox is gone than where nothing was done."""
    known = [value for value in _values(evidence, WORKLESS) if math.isfinite(value)]
    for value in _values(evidence, LOST)[:1] if known else ():
        if value > max(0.0, *known):
            message = f"compute_reward gave {value:g} where its sandbox was gone and every method of ctx raised, and {max(known):g} where nothing was done"
            yield replace(evidence.finding_of_reward(value, message, scenario=LOST), fix=_LET_IT_RAISE)


def _values(evidence: Evidence, name: str) -> list[float]:
    rewards = [reward for scenario in evidence.scenarios(name) for reward in scenario.of(Reward)]
    return [float(reward.value) for reward in rewards if isinstance(reward.value, int | float) and not reward.error]


def _findings(evidence: Evidence, scenario: Scenario, failed: str) -> Iterator[Finding]:
    faults = [
        f"{row.name} trains on {len(row.trained)} of {len(row.tokens)} tokens, and {failed} failed in its rollout"
        for row in rows_of(scenario) or items_of(scenario)
        if row.trained and row.has_matching_masks
    ]
    faults += [
        f"sequence {number} of the group has a score, and {failed} failed in its rollout"
        for group in groups_of(scenario)
        for number in unmarked_rows(group)
    ]
    for fault in faults:
        yield evidence.finding(fault, *OF_GROUPS, scenario=scenario.name)


def _what_failed(scenario: Scenario) -> str:
    """Return what failed in every rollout, or nothing; loops of other layers do not tell how they ended."""
    ends = [ended.end for ended in scenario.of(LoopEnded)]
    rewards = list(scenario.of(Reward))
    if not ends or not all(ends):
        return ""
    if scenario.name == UNREWARDED:
        return "the reward" if rewards and all(reward.injected for reward in rewards) else ""
    return "the model's server" if all(end in FAILED for end in ends) else ""


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=SCENARIOS)
