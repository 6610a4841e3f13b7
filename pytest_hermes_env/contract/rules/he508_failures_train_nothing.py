"""HE508 failures-train-nothing
A rollout whose model server or reward failed is not scored as if it had finished, and trains nothing.

What: When the model's server fails after the first turn, or `compute_reward` raises, every mask of the rollout is -100,
or there is no item; and the rollout keeps the mark of the base that it has no score of its own.

Why: The model's replies before the failure are trained on with a reward of 0.0 for a failure that was not the model's,
and the other rollouts of the group get an advantage for a server that stayed up.

Fix: Copy `overrides` and `scores` of an item as they are: a score of the type `UnearnedScore` marks a failed rollout.
Where you build masks: `[-100] * len(tokens)` when `result.end.is_failure`.

Source: `environments.trainer.scoring.left_out`; atroposlib 0.4.0, `envs/base.py` (`ScoredDataGroup`) and
`example_trainer/data.py` (advantages within a group).
"""

from __future__ import annotations

from collections.abc import Iterator

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict
from pytest_hermes_env.contract.judge.scored_data import OF_GROUPS, groups_of, items_of, rows_of, unmarked_rows
from pytest_hermes_env.play.journal import LoopEnded, Reward
from pytest_hermes_env.play.scenario import Scenario

UNREWARDED = "reward_raises"
FAILURES = ("server_error_later", UNREWARDED)
SCENARIOS = ("happy", *FAILURES)
"""The first shows that there are groups at all: where every rollout failed, none is as good as one that trains nothing."""
FAILED = ("model_failed", "aborted_by_server")
"""Ends of loops whose rollouts earned no score."""


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what is trained or scored where every rollout failed: the model's server, or the reward."""
    if missing := evidence.without_groups(*SCENARIOS):
        return missing
    failed = [(scenario, what) for scenario in evidence.scenarios(*FAILURES) if (what := _what_failed(scenario))]
    if not failed:
        return Verdict.not_applicable("the agent loop of this layer does not say how a rollout ended")
    findings = [finding for scenario, what in failed for finding in _findings(evidence, scenario, what)]
    return Verdict.of(findings[:1], f"nothing was trained where {' or '.join(what for _, what in failed)} failed")


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
