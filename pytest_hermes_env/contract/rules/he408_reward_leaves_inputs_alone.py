"""HE408 reward-leaves-inputs-alone
`compute_reward` changes neither the item nor the result that it receives.

What: Item and result (its messages, turns, errors) are equal before and after `compute_reward`, also inside.

Why: Items are in a list that every epoch and every rollout of a group shares: an item whose answer was popped, or whose
list was sorted, is another task for the next rollout. The messages become the tokens that are trained on: a reward that
strips or annotates them trains on text that the model never wrote.

Fix: Work on copies: `dict(item)`, `item.get(...)` instead of `pop`, `sorted(...)` instead of `.sort()`,
`copy.deepcopy(result.messages)` before editing.

Source: atroposlib 0.4.0, `envs/base.py` (one item for all rollouts of a group); `environments.trainer.scoring` (messages to
tokens, after the reward).
"""

from __future__ import annotations

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict
from pytest_hermes_env.play.journal import Reward
from pytest_hermes_env.play.scenario import CASES, PROBES

ROLLOUTS = ("happy", "concurrent_groups", "evaluate")
_INPUTS = {"item": "the item", "messages": "result.messages"}


def dynamic(evidence: Evidence) -> Verdict:
    """Compare the inputs of each probe before and after, one finding per changed part, on the smallest result."""
    findings: dict[str, Finding] = {}
    for record in (*evidence.scenarios(*ROLLOUTS), *evidence.played_cases):
        for name in dict.fromkeys(name for reward in record.of(Reward) for name in reward.changed):
            found = evidence.finding(f"compute_reward changed {_INPUTS[name]}", "compute_reward", scenario=record.name)
            findings.setdefault(_INPUTS[name], found)
    if not findings and (missing := evidence.without_probes()):
        return missing
    for probe in sorted(evidence.probes.probes, key=lambda probe: len(probe.expression)):
        again = probe.again.changed if probe.again is not None else ()
        for name in dict.fromkeys((*probe.trial.changed, *again)):
            message = f"compute_reward changed {name}"
            found = evidence.finding(message, "compute_reward", seen=probe.expression, scenario=PROBES)
            findings.setdefault(name, found)
    return Verdict.of(findings.values(), f"item and result were unchanged after {len(evidence.probes.probes)} rewards")


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=(PROBES, CASES, *ROLLOUTS))
