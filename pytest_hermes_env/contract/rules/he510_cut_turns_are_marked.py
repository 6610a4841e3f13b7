"""HE510 cut-turns-are-marked
A rollout whose reply was cut by the limit of tokens does not count as finished, and no token of that reply is trained.

What: With `truncated_turns` at its default, no token of a reply that was cut by length is trained, and where the group
names the ends of its rollouts, the end of such a rollout is not `finished`.

Why: A reply that was cut has no end-of-text token and often half a tool call. Trained as if it were whole, it teaches
the model to stop in the middle of a sentence; counted as finished, it hides that the limit is too low.

Fix: Keep the base's masks and `overrides["end"]`. To train what was cut, set `truncated_turns="train"`.

Source: `environments.loop.end`; the finish reason "length" of vLLM and SGLang.
"""

from __future__ import annotations

from collections.abc import Iterator

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict
from pytest_hermes_env.contract.judge.evidence import NO_TOKENS
from pytest_hermes_env.contract.judge.scored_data import OF_ITEMS, groups_of, items_of, rows_of, sampled_in, told_ends
from pytest_hermes_env.play.journal import LoopEnded
from pytest_hermes_env.play.scenario import Cause, Scenario

SCENARIOS = ("cut_short",)
CUT = "cut_by_length"


def dynamic(evidence: Evidence) -> Verdict:
    """Look at the labels and the ends of rollouts whose replies were cut."""
    missing = evidence.why_missing(*SCENARIOS)
    if missing is not None and missing.cause in {Cause.CHAT_MODE, Cause.OTHER_LAYER}:
        return Verdict.not_applicable(NO_TOKENS if missing.cause is Cause.CHAT_MODE else missing)
    if (unseen := evidence.without_tokens(*SCENARIOS)) is not None:
        return unseen
    ran = [scenario for scenario in evidence.scenarios(*SCENARIOS) if any(reply.is_cut for reply in scenario.sampled)]
    if not ran:
        return Verdict.not_exercised("no reply was cut by length", "HE511")
    findings = [finding for scenario in ran for finding in _findings(evidence, scenario)]
    return Verdict.of(findings[:1], "replies that were cut by length are not trained, and not natural ends")


def _findings(evidence: Evidence, scenario: Scenario) -> Iterator[Finding]:
    cut = [reply for reply in scenario.sampled if reply.is_cut]
    faults = [
        f"{row.name} trains on {len(trained)} tokens of a reply that was cut by length"
        for row in rows_of(scenario) or items_of(scenario)
        if (trained := sampled_in(row, cut).keys() & set(row.trained))
    ]
    if all(ended.end == CUT for ended in scenario.of(LoopEnded)):
        faults += [
            f"sequence {number} of the group is named {end!r}, and a reply of it was cut by length"
            for group in groups_of(scenario)
            for number, end in enumerate(told_ends(group))
            if end not in (CUT, None)
        ]
    for fault in faults:
        yield evidence.finding(fault, *OF_ITEMS, scenario=scenario.name)


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=SCENARIOS)
