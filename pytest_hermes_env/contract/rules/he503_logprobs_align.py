"""HE503 logprobs-align
In token mode an item has `inference_logprobs` of the length of its tokens, with the server's own values where it
trains.

What: For `tokens` [T], `inference_logprobs` is [T]. At every trained position it is a number of at most 0: the one that
the model's server returned for this token at this place.

Why: The trainer weights each token by how likely it was when it was sampled (importance ratio). Logprobs that are one
place off, or filled with 1.0, make ratios of any size; clipping hides that, and the model learns noise.

Fix: Keep `inference_logprobs` as the base returns them. Code that truncates, joins or shifts tokens does the same to
`masks` and `inference_logprobs`. The filler of positions that were not sampled is 1.0.

Source: atroposlib 0.4.0, `envs/server_handling/managed_server.py` (`SequenceNode.logprobs`); `api/server.py`,
`ScoredData`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict
from pytest_hermes_env.contract.judge.scored_data import OF_ITEMS, Row, items_of, rows_of, sampled_in, sequence_fault
from pytest_hermes_env.play.scenario import Scenario

SCENARIOS = ("happy", "silent", "unequal_rewards", "drifting", "with_tokens")
NEAR = 1e-6
"""How far a logprob may be from the server's, in nats: what a float may lose on its way."""


def dynamic(evidence: Evidence) -> Verdict:
    """Compare each trained token's logprob with the one that the server gave."""
    if missing := evidence.without_tokens(*SCENARIOS):
        return missing
    ran = evidence.with_tokens(*SCENARIOS)
    looked = [(scenario, row) for scenario in ran for row in _rows(scenario) if row.has_matching_masks]
    if not looked:
        return Verdict.not_exercised("no sequence has masks that match its tokens, which HE501 reports", "HE501")
    trained = sum(len(row.trained) for _, row in looked)
    return Verdict.of(
        list(_findings(evidence, looked))[:1], f"{trained} trained tokens have the logprob that the server returned"
    )


def _rows(scenario: Scenario) -> list[Row]:
    """Return the items, and those sequences of the group that are not the first of an item: a rollout may become several."""
    items = items_of(scenario)
    known = {row.tokens for row in items}
    return [*items, *(row for row in rows_of(scenario) if row.tokens not in known)]


def _findings(evidence: Evidence, looked: list[tuple[Scenario, Row]]) -> Iterator[Finding]:
    for scenario, row in looked:
        if fault := _fault(scenario, row):
            yield evidence.finding(f"{row.name} {fault}", *OF_ITEMS, scenario=scenario.name)


def _fault(scenario: Scenario, row: Row) -> str:
    if row.logprobs is None:
        return "has no inference_logprobs"
    if len(row.logprobs) != len(row.tokens):
        return f"has {len(row.tokens)} tokens and {len(row.logprobs)} inference_logprobs"
    if sequence_fault(scenario):
        return ""  # HE505 reports it; values cannot be compared where tokens are not the sampled ones
    given = sampled_in(row, scenario.sampled)
    for position in (place for place in row.trained if place in given):  # HE501 reports the others
        value = row.logprobs[position]
        at = f"at position {position} (token {row.tokens[position]})"
        if not isinstance(value, int | float) or not math.isfinite(value) or value > 0:
            return f"has the logprob {value} {at}, but it must be at most 0"
        own = given[position]
        if own is not None and abs(own - value) > NEAR:
            return f"has the logprob {value} {at}, but the server returned {own}"
    return ""


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=SCENARIOS)
