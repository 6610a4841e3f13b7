"""HE406 judge-falls-back
`compute_reward` returns a number when its judge fails, times out or answers garbage.

What: While the judge of `compute_reward` (`self.server.chat_completion` and similar) answers text without a score, JSON whose values are null, or no
text at all, or every call to it fails, `compute_reward` returns a finite number.

Why: Judges are remote. They time out, hit rate limits, and answer "As an AI, I cannot" one time in a hundred. Without a
fallback each of these becomes an exception in `compute_reward`, which the trainer sees as 0.0: good work is punished at
random, and an hour of outage teaches the model that nothing is worth doing.

Fix: Put the call and the parsing of its answer into one `try`, and return a heuristic score in the handler, such as the
overlap of the answer's words with the expected ones. Log it: an outage must be visible.

Source: The environment guide's judge pattern (always a heuristic fallback); atroposlib 0.4.0, `ServerManager`.
"""

from __future__ import annotations

from pytest_hermes_env.contract.judge import Evidence, Rule, Severity, Verdict, finding_in, one_per_place
from pytest_hermes_env.play.journal import Reward
from pytest_hermes_env.play.probing.record import as_number

_HOW = {
    "garbage_judge": "returned text without a score",
    "null_judge": "returned JSON whose values are null",
    "wordless_judge": "returned no text",
    "failing_judge": "failed every request",
}
SCENARIOS = tuple(_HOW)


def dynamic(evidence: Evidence) -> Verdict:
    """Look at what compute_reward returned while its judge answered garbage, and while it failed."""
    ran = evidence.scenarios(*SCENARIOS)
    if not ran:
        return Verdict.not_exercised(evidence.why_missing(*SCENARIOS))
    rewards = [(scenario.name, reward) for scenario in ran for reward in scenario.of(Reward)]
    if not rewards:
        return Verdict.not_exercised("compute_reward was not called while the judge failed")
    findings = [
        finding_in(name, reward.place, f"the judge {_HOW[name]}, and compute_reward raised {reward.error}")
        if reward.error
        else evidence.finding_of_reward(
            reward.value, f"the judge {_HOW[name]}, and compute_reward returned {reward.value!r}", scenario=name
        )
        for name, reward in rewards
        if reward.error or as_number(reward.value) is None
    ]
    return Verdict.of(one_per_place(findings), f"{len(rewards)} rewards were numbers while the judge failed")


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=SCENARIOS)
