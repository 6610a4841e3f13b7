"""HE507 trainer-accepts
run-api accepts the group as it is sent, and a group that would be dropped on the way is reported.

What: The group is JSON that run-api's own model of scored data accepts. A group of equal scores is reported: Atropos
drops it while `ensure_scores_are_not_same` is on, which is right for a group of similar rollouts, and wrong if it
happens to every group.

Why: run-api answers a group that it cannot read with an error that the environment retries and gives up on. The
rollouts are lost, and a trainer that waits for a batch waits forever.

Fix: Use plain numbers as scores, lists of ints as tokens and masks, and dicts with role and content as messages.
Convert numpy and torch values with `.item()` or `.tolist()`.

Source: atroposlib 0.4.0, `api/server.py` (`ScoredData`); `envs/base.py` (`handle_send_to_api`).
"""

from __future__ import annotations

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.contract.judge.scored_data import OF_GROUPS, groups_of

UNEQUAL = "unequal_rewards"
SCENARIOS = ("happy", "silent", UNEQUAL, "drifting")


def dynamic(evidence: Evidence) -> Verdict:
    """Give every group to run-api's own model, and name those that Atropos would not even send."""
    if missing := evidence.without_groups(*SCENARIOS):
        return missing
    ran = [scenario for scenario in evidence.scenarios(*SCENARIOS) if groups_of(scenario)]
    if not ran:
        return Verdict.not_exercised("collect_trajectories returned no group", "HE511")
    findings = [
        evidence.finding(f"run-api rejects the group: {scenario.refusal}", *OF_GROUPS, scenario=scenario.name)
        for scenario in ran
        if scenario.refusal
    ]
    findings += [
        evidence.finding(
            "its rollouts earned different rewards, and the group has one score for all: Atropos drops it",
            "collect_trajectories",
            "postprocess_histories",
            "collect_trajectory",
            scenario=scenario.name,
        )
        for scenario in ran
        if scenario.name == UNEQUAL and all(_has_equal_scores(group) for group in groups_of(scenario))
    ]
    same = [scenario.name for scenario in ran if any(_has_equal_scores(group) for group in groups_of(scenario))]
    dropped = f"; dropped before that, because their scores are all the same: {', '.join(same)}" if same else ""
    return Verdict.of(findings[:1], f"run-api's model accepts the groups of {len(ran)} scenarios{dropped}")


def _has_equal_scores(group: dict[str, object]) -> bool:
    scores = group.get("scores")
    return isinstance(scores, list) and len(scores) > 1 and len(set(map(str, scores))) == 1


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=SCENARIOS)
