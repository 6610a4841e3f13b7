"""HE506 group-is-whole
Every list of a group has `group_size` entries, and each entry belongs to its rollout.

What: `tokens`, `masks`, `scores` and every other column of a group have `config.group_size` entries, or
`group_overrides["group_size"]` for a group whose rollouts became more sequences than that. Where the group has the scores
that its rollouts earned, each stands in the place of the tokens of the rollout that earned it; so do its logprobs, which
chat mode has for this rule alone. No sequence is there more often than rollouts gave it.

Why: atroposlib drops a group of another size, with a warning that scrolls by: the rollouts were paid for, and the
trainer waits. Columns of different length pass, and from then on scores belong to the wrong sequences. A column that is
sorted alone trains bad rollouts as good ones. Copies of one rollout have equal scores: there is nothing to learn from.

Fix: When a rollout has no item, drop the group or run the rollout again. When you filter or add sequences, do it in
every column, and set `group_overrides["group_size"]`. When you sort, sort rows, and write them back into every column.

Source: atroposlib 0.4.0, `envs/base.py` (`handle_send_to_api`); `api/server.py` (`find_groups_summing_to_target`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict
from pytest_hermes_env.contract.judge.scored_data import (
    OF_GROUPS,
    groups_of,
    misplaced_logprobs,
    misplaced_score,
    repeated_rollout,
)

UNEQUAL = ("unequal_rewards", "rising_rewards")
SCENARIOS = ("happy", "silent", *UNEQUAL, "drifting")
REQUIRED = ("tokens", "masks", "scores")
"""Columns that cannot be left out; an empty list in another one stands for a column that is not used."""


def dynamic(evidence: Evidence) -> Verdict:
    """Count the entries of every column of every group, and look for each rollout's score next to its tokens."""
    if missing := evidence.without_groups(*SCENARIOS):
        return missing
    groups = [(scenario.name, group) for scenario in evidence.scenarios(*SCENARIOS) for group in groups_of(scenario)]
    if not groups:
        return Verdict.not_exercised("collect_trajectories returned no group", "HE511")
    findings = [*_findings(evidence, groups), *_misplaced(evidence)]
    return Verdict.of(findings[:1], f"{len(groups)} groups have as many entries as group_size in every column")


def _findings(evidence: Evidence, groups: list[tuple[str, dict[str, Any]]]) -> Iterator[Finding]:
    for name, group in groups:
        overrides = group.get("group_overrides")  # of whatever type: HE507 reports what run-api does not take
        size = evidence.collection.group_size
        size = overrides.get("group_size", size) if isinstance(overrides, Mapping) else size
        columns = {key: len(value) for key, value in group.items() if isinstance(value, list) and key != "group_overrides"}
        wrong = {key: count for key, count in columns.items() if count != size and (count or key in REQUIRED)}
        if wrong:
            counts = ", ".join(f"{key} {count}" for key, count in wrong.items())
            yield evidence.finding(f"a group of {size} has columns of different lengths: {counts}", *OF_GROUPS, scenario=name)


def _misplaced(evidence: Evidence) -> Iterator[Finding]:
    """Yield the groups that have a rollout several times, or the scores of their rollouts in another order than their tokens."""
    for scenario in evidence.scenarios(*UNEQUAL):
        fault = repeated_rollout(scenario) or misplaced_score(scenario) or misplaced_logprobs(scenario)
        if fault:
            yield evidence.finding(fault, *OF_GROUPS, scenario=scenario.name)


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=SCENARIOS)
