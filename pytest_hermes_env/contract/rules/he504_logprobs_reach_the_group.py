"""HE504 logprobs-reach-the-group
The `inference_logprobs` of the items are in the group that goes to the trainer, one row for each sequence.

What: When `collect_trajectory` returned items with `inference_logprobs`, the group of `collect_trajectories` has a row
with the same values for each of them.

Why: run-api accepts a group without `inference_logprobs`. The trainer then takes the policy's own logprobs for those of
the sampler: every ratio is 1, and off-policy data is trained on as if it were fresh. Nothing fails.

Fix: Join items with the base's `collect_trajectories`. atroposlib's own joins tokens, masks, scores and messages only;
an override that builds the group by hand must copy `inference_logprobs`, too.

Source: atroposlib 0.4.0, `envs/base.py` (`BaseEnv.collect_trajectories`, whose group has no `inference_logprobs`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict
from pytest_hermes_env.contract.judge.scored_data import OF_GROUPS, Row, items_of, rows_of, sequence_fault
from pytest_hermes_env.play.scenario import Scenario

SCENARIOS = ("happy", "silent", "unequal_rewards", "drifting", "with_tokens")


def dynamic(evidence: Evidence) -> Verdict:
    """Look for each item's logprobs in its group."""
    if missing := evidence.without_tokens(*SCENARIOS):
        return missing
    ran = [scenario for scenario in evidence.with_tokens(*SCENARIOS) if rows_of(scenario)]
    if not ran:
        return Verdict.not_exercised("collect_trajectories returned no group", "HE511")
    items = sum(row.logprobs is not None for scenario in ran for row in items_of(scenario))
    own = any(row.logprobs is not None for scenario in ran for row in rows_of(scenario))
    if own and not any(items_of(scenario) for scenario in ran):
        return Verdict.not_applicable(
            "the class makes its groups without items; HE503 compares their logprobs with the server's"
        )
    if not items:
        return Verdict.not_exercised("no item had inference_logprobs, which HE503 reports", "HE503")
    return Verdict.of(list(_findings(evidence, ran))[:1], f"the logprobs of {items} items are in their groups")


def _findings(evidence: Evidence, ran: list[Scenario]) -> Iterator[Finding]:
    for scenario in ran:
        rows = rows_of(scenario)
        kept = [row.logprobs for row in rows if row.logprobs is not None]
        sent = [item for item in items_of(scenario) if item.logprobs is not None]
        if sent and not kept:
            how = "has no inference_logprobs"
        elif any(item.logprobs not in kept for item in sent if not _is_lost(item, rows, scenario)):
            how = "has inference_logprobs that differ from the items'"
        elif any(_is_beside_another(item, rows) for item in sent):
            how = "pairs the items' inference_logprobs with other tokens"
        else:
            how = ""
        if how:
            yield evidence.finding(f"the group of {len(rows)} sequences {how}", *OF_GROUPS, scenario=scenario.name)


def _is_lost(item: Row, rows: Sequence[Row], scenario: Scenario) -> bool:
    """Whether an item's tokens did not come into the group as they were sampled: HE505 reports that."""
    return all(row.tokens != item.tokens for row in rows) and bool(sequence_fault(scenario))


def _is_beside_another(item: Row, rows: Sequence[Row]) -> bool:
    """Whether the sequence with an item's tokens is there, and has the logprobs of another one."""
    same = [row.logprobs for row in rows if row.tokens == item.tokens]
    return bool(same) and item.logprobs not in same


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=SCENARIOS)
