"""HE505 one-node-per-rollout
The conversation of a rollout is one token sequence, exactly as the model saw and sampled it, or every part of it is
kept.

What: In token mode, for every sampled reply there is a sequence in the group that begins with the reply's prompt and
the reply, token by token, and contains the token that ended the reply once. This also holds for ids that encoding the
reply's text again would not produce. The rows of a rollout that became several sequences have its `rollout_id` in their
`overrides`.

Why: A conversation that is rendered and encoded again in each turn has other ids: think blocks are gone, the end of a
turn is there twice, a word is split elsewhere. Keeping only the last sequence loses all earlier replies; keeping the
text instead of the ids trains tokens that the model never chose. Without the id, a rollout of three sequences weighs
three times as much as one of one.

Fix: Take the nodes of the managed server as they are, and keep all of them, as the base does; with
`history_rendering="sampled"` there is one. `split_rollouts` decides which of several are sent. Never encode a reply's
text again, change no earlier message during a rollout, and copy `overrides` as they are.

Source: atroposlib 0.4.0, `envs/server_handling/managed_server.py` (a prompt extends a node only when it begins with its
text).
"""

from __future__ import annotations

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict
from pytest_hermes_env.contract.judge.scored_data import OF_ITEMS, is_rejected, sequence_fault, weight_fault

SCENARIOS = ("happy", "silent", "unequal_rewards", "drifting", "with_tokens")
_OF_GROUPS = ("collect_trajectories", "postprocess_histories", "collect_trajectory")
"""Where the cause of a fault may be, the likeliest method first."""


def dynamic(evidence: Evidence) -> Verdict:
    """Look for every sampled reply in the sequences, behind its own prompt."""
    if missing := evidence.without_tokens(*SCENARIOS):
        return missing
    ran = [scenario for scenario in evidence.with_tokens(*SCENARIOS) if scenario.sampled and not is_rejected(scenario)]
    if not ran:
        return Verdict.not_applicable("every rollout became several sequences and was rejected, as split_rollouts requires")
    findings = [
        evidence.finding(fault, *methods, scenario=scenario.name)
        for scenario in ran
        for fault, methods in ((sequence_fault(scenario), OF_ITEMS), (weight_fault(scenario), _OF_GROUPS))
        if fault and not scenario.error
    ]
    replies = sum(len(scenario.sampled) for scenario in ran)
    return Verdict.of(findings[:1], f"{replies} replies are in their sequences, token by token, even where token ids drift")


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=SCENARIOS)
