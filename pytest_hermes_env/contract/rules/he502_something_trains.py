"""HE502 something-trains
A rollout in which the model worked has labels to train on, and one in which it said nothing has none.

What: Every sequence of a rollout with a reply of the model has at least one mask that is not -100. When the model's
server failed in the first turn, every mask is -100, or there is no item.

Why: A rollout without labels costs its model calls and tools, and trains nothing. A rollout of a dead server is worse:
its prompt is trained on, with a reward of 0.0.

Fix: Take masks from the base. Where you build them: -100 for prompts and tool results, the token itself for the model's
words, and `[-100] * len(tokens)` when `result.end.is_failure`.

Source: atroposlib 0.4.0, `envs/base.py` (`ScoredDataGroup`) and `utils/tokenize_for_trainer.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict
from pytest_hermes_env.contract.judge.scored_data import OF_ITEMS, is_rejected, items_of, rows_of

WORKED = ("happy", "silent", "unequal_rewards", "drifting", "with_tokens")
DEAD = "speechless"
SCENARIOS = (*WORKED, DEAD)


def dynamic(evidence: Evidence) -> Verdict:
    """Look for labels in every sequence, also in those of a model that never answered."""
    if missing := evidence.without_groups(*SCENARIOS):
        return missing
    findings = [*_without_labels(evidence), *_with_labels_of_nothing(evidence)]
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
                    *OF_ITEMS,
                    scenario=scenario.name,
                )


def _with_labels_of_nothing(evidence: Evidence) -> Iterator[Finding]:
    for scenario in evidence.scenarios(DEAD):
        for row in rows_of(scenario) or items_of(scenario):
            if row.trained and row.has_matching_masks:
                yield evidence.finding(
                    f"{row.name} trains on {len(row.trained)} of {len(row.tokens)} tokens, none of which the model generated",
                    *OF_ITEMS,
                    scenario=scenario.name,
                )


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=SCENARIOS)
