"""HE502 something-trains
A rollout in which the model worked has labels to train on, and one in which it said nothing has none.

What: Every sequence of a rollout with a reply of the model has at least one mask that is not -100. When the model's
server failed, in the first turn or in a later one, or the reward raised, every mask is -100, or there is no item; and
the rollout keeps the mark of the base that it has no score of its own. With `truncated_turns` at its default, no token
of a reply that was cut by length is trained.

Why: A rollout without labels costs its model calls and tools, and trains nothing. A rollout of a dead server is worse:
its prompt, or the model's earlier replies, are trained on with a reward of 0.0 for a failure that was not the model's,
and its siblings get an advantage for a server that stayed up.

Fix: Take masks from the base. Where you build them: -100 for prompts and tool results, the token itself for the model's
words, and `[-100] * len(tokens)` when `result.end.is_failure`. Copy `overrides` and `scores` of an item as they are.

Source: atroposlib 0.4.0, `envs/base.py` (`ScoredDataGroup`) and `utils/tokenize_for_trainer.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from pytest_hermes_env.contract.evidence import Evidence
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.scored_data import groups_of, is_rejected, items_of, rows_of, sampled_in, unmarked_rows
from pytest_hermes_env.contract.verdict import Verdict
from pytest_hermes_env.rollout.journal import LoopEnded, Reward
from pytest_hermes_env.rollout.scenario import Scenario
from pytest_hermes_env.source.finding import Finding, Severity

WORKED = ("happy", "silent", "unequal_rewards", "drifting")
DEAD = "speechless"
LATER = "server_error_later"
UNREWARDED = "reward_raises"
CUT = "cut_short"
SCENARIOS = (*WORKED, DEAD, LATER, UNREWARDED, CUT)
FAILED = ("model_failed", "aborted_by_server")
"""Ends of loops whose rollouts earned no score."""


def dynamic(evidence: Evidence) -> Verdict:
    """Look for labels in every sequence, also in those of a model that never answered."""
    missing = evidence.without_groups(*SCENARIOS)
    if missing is not None:
        return missing
    findings = [
        *_without_labels(evidence),
        *_with_labels_of_nothing(evidence),
        *_of_failed_rollouts(evidence),
        *_of_cut_replies(evidence),
    ]
    worked = sum(
        not row.is_left_out for scenario in evidence.scenarios(*WORKED) for row in rows_of(scenario) or items_of(scenario)
    )
    dead = sum(len(rows_of(scenario) or items_of(scenario)) for scenario in evidence.scenarios(DEAD))
    if not worked and not findings:
        return Verdict.not_exercised("no rollout in which the model worked gave a sequence with a score", "HE511")
    return Verdict.of(findings[:1], f"{worked} sequences have labels; {dead} of a model that generated nothing have none")


def _without_labels(evidence: Evidence) -> Iterator[Finding]:
    for scenario in evidence.scenarios(*WORKED):
        for row in rows_of(scenario) or items_of(scenario):
            is_out = row.is_left_out or is_rejected(scenario)
            if not row.trained and len(row.masks) == len(row.tokens) and not is_out:
                yield evidence.finding(
                    f"{row.name} has no label, although the model answered: all {len(row.masks)} masks are -100",
                    "collect_trajectory",
                    "collect_trajectories",
                    "postprocess_histories",
                    scenario=scenario.name,
                )


def _with_labels_of_nothing(evidence: Evidence) -> Iterator[Finding]:
    for scenario in evidence.scenarios(DEAD):
        for row in rows_of(scenario) or items_of(scenario):
            if row.trained and row.has_matching_masks:
                yield evidence.finding(
                    f"{row.name} trains on {len(row.trained)} of {len(row.tokens)} tokens, none of which the model generated",
                    "collect_trajectory",
                    "collect_trajectories",
                    "postprocess_histories",
                    scenario=scenario.name,
                )


def _of_failed_rollouts(evidence: Evidence) -> Iterator[Finding]:
    """Find what is trained or scored where every rollout failed: the model's server, or the reward."""
    for scenario in evidence.scenarios(LATER, UNREWARDED):
        if not (failed := _what_failed(scenario)):
            continue
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
            yield evidence.finding(
                fault, "collect_trajectories", "collect_trajectory", "postprocess_histories", scenario=scenario.name
            )


def _what_failed(scenario: Scenario) -> str:
    """Return what failed in every rollout, or nothing; loops of other layers do not tell how they ended."""
    ends = [ended.end for ended in scenario.of(LoopEnded)]
    rewards = list(scenario.of(Reward))
    if not ends or not all(ends):
        return ""
    if scenario.name == UNREWARDED:
        return "the reward" if rewards and all(reward.injected for reward in rewards) else ""
    return "the model's server" if all(end in FAILED for end in ends) else ""


def _of_cut_replies(evidence: Evidence) -> Iterator[Finding]:
    for scenario in evidence.scenarios(CUT):
        cut = [reply for reply in scenario.sampled if reply.is_cut]
        for row in rows_of(scenario) or items_of(scenario):
            if trained := sampled_in(row, cut).keys() & set(row.trained):
                yield evidence.finding(
                    f"{row.name} trains on {len(trained)} tokens of a reply that was cut by length",
                    "collect_trajectory",
                    "collect_trajectories",
                    "postprocess_histories",
                    scenario=scenario.name,
                )


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=SCENARIOS)
