"""HE501 masks-match-tokens
`masks` has the length of `tokens`, and each mask is -100 or the token at its place.

What: In every scored item, for `tokens` [T], `masks` is [T], and `masks[i]` is -100 (not trained) or `tokens[i]`
(trained). In token mode the trained positions are those that the model sampled: none of a prompt or a tool result, and
every sampled one.

Why: The trainer shifts masks into labels and uses them as they are. A mask that is one token off teaches the model to
say every word one place late; masks of 0 and 1 teach it to say token 0 and token 1. The loss falls meanwhile, and days
of GPU time go into a model that writes noise.

Fix: Build masks together with tokens: `[-100] * len(prompt_tokens) + answer_tokens`. After truncating tokens, truncate
masks to the same length.

Source: atroposlib 0.4.0, `utils/tokenize_for_trainer.py` and `envs/server_handling/managed_server.py`
(`masked_tokens`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict
from pytest_hermes_env.contract.judge.scored_data import (
    IGNORED,
    OF_GROUPS,
    OF_ITEMS,
    is_rejected,
    items_of,
    rows_of,
    sampled_in,
    sequence_fault,
)
from pytest_hermes_env.play.journal import ItemScored
from pytest_hermes_env.play.scenario import Scenario

SCENARIOS = ("happy", "silent", "unequal_rewards", "with_tokens")


def dynamic(evidence: Evidence) -> Verdict:
    """Look at every sequence of every group that was collected."""
    ran = evidence.scenarios(*SCENARIOS)
    if not ran:
        return Verdict.not_exercised(evidence.why_missing(*SCENARIOS))
    findings = [*_of_items(evidence, ran), *_of_groups(evidence, ran)]
    sequences = sum(len(rows_of(scenario)) for scenario in ran)
    if not sequences and not findings:
        return evidence.no_group(ran)
    findings = findings or list(_beside_the_sampled(evidence, ran))
    return Verdict.of(findings[:1], f"{sequences} sequences: each mask is -100 or its token")


def _beside_the_sampled(evidence: Evidence, ran: list[Scenario]) -> Iterator[Finding]:
    """Find what is trained and was not sampled, or was sampled and is not trained, where the sequences are as sampled (HE505)."""
    for scenario in ran:
        if not scenario.sampled or is_rejected(scenario) or sequence_fault(scenario):
            continue
        for row in rows_of(scenario) or items_of(scenario):
            sampled = sampled_in(row, scenario.sampled)
            wrong = sorted(set(row.trained) ^ sampled.keys())
            # A row without any label is HE502's
            if wrong and row.trained:
                position = wrong[0]
                how = (
                    "is masked although the model sampled it"
                    if position in sampled
                    else "is trained although the model never sampled it"
                )
                yield evidence.finding(
                    f"{row.name}: token {row.tokens[position]} at position {position} {how} ({len(wrong)} such positions)",
                    *OF_ITEMS,
                    scenario=scenario.name,
                )


def _of_items(evidence: Evidence, ran: list[Scenario]) -> Iterator[Finding]:
    """Find what was wrong already when collect_trajectory gave it."""
    for scenario in ran:
        for item in scenario.of(ItemScored):
            if fault := _fault(item.tokens, item.masks):
                yield evidence.finding(
                    f"collect_trajectory returned an item with {fault}", "collect_trajectory", scenario=scenario.name
                )


def _of_groups(evidence: Evidence, ran: list[Scenario]) -> Iterator[Finding]:
    """Find what was wrong in the group that went on to the trainer."""
    for scenario in ran:
        for row in rows_of(scenario):
            if fault := _fault(row.tokens, row.masks):
                yield evidence.finding(f"{row.name} has {fault}", *OF_GROUPS, scenario=scenario.name)


def _fault(tokens: Sequence[int], masks: Sequence[int]) -> str:
    if len(tokens) != len(masks):
        return f"{len(tokens)} tokens and {len(masks)} masks"
    for position, (token, mask) in enumerate(zip(tokens, masks, strict=True)):
        if mask not in (IGNORED, token):
            return f"token {token} and mask {mask} at position {position}"
    return ""


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=SCENARIOS)
