"""HE410 reward-not-forgeable
What the model merely says, or a file that anybody could have written, does not make the reward.

What: without any work, the reward is tried with claims in the final answer ("All tests passed.", a JSON score, words to
a judge, the prompt said back), and with planted files: what the verifier looks for and nobody wrote, the agent may
write before it looks. None of these raises the reward by half of the unit interval or more. A file that the prompt asks
for is the work itself. The item's own expected answer is what a question asks for: what it earns is noted, and no
finding.

Why: policies find such holes within a few hundred steps. A reward for the words "tests passed" teaches the words; a
score that the verifier reads from a file in the agent's own sandbox teaches to write that file. The learning curve
looks excellent.

Fix: decide from what the sandbox shows after a check that the verifier itself started: upload the tests in
compute_reward, run them, take the exit code. Write results to a fresh directory (mktemp -d) or read them from the
command's output. Give text to a judge as data, and take a score only from its own reply.

Source: the fake sandbox's account of who wrote and who read each file (Files.reads).
"""

from __future__ import annotations

from pytest_hermes_env.contract.evidence import (
    PAID,
    PROBES,
    Canary,
    Evidence,
)
from pytest_hermes_env.contract.rule import (
    Finding,
    Rule,
    Severity,
    Verdict,
    judged,
    not_exercised,
)


def dynamic(evidence: Evidence) -> Verdict:
    """Compare the reward of each canary with that of doing nothing."""
    if missing := evidence.without_probes():
        return missing
    canaries = evidence.probes.canaries
    if not canaries:
        return not_exercised("doing nothing gave no reward to compare with")
    findings: dict[str, Finding] = {}
    for canary in canaries:
        if canary.reward - canary.base >= PAID and not canary.is_answer:
            findings.setdefault(canary.kind, _finding(evidence, canary))
    files = sum(canary.kind == "file" for canary in canaries)
    answers = [canary for canary in canaries if canary.is_answer and canary.reward - canary.base >= PAID]
    note = f"{sum(canary.kind == 'words' and not canary.is_answer for canary in canaries)} claims"
    note += (
        f" and {files} planted files earned nothing" if files else " earned nothing; the verifier looked for no file to plant"
    )
    if answers:
        note += f"; the expected answer alone earns {answers[0].reward:g}, as it may in a question"
    return judged(findings.values(), note)


def _finding(evidence: Evidence, canary: Canary) -> Finding:
    path, line = evidence.at_method("compute_reward")
    if canary.kind == "words":
        what = f"{canary.name} earned {canary.reward:g} without any work; doing nothing earned {canary.base:g}"
        seen = canary.expression
    else:
        what = (
            f"a file that the agent could have written, {canary.name}, earned {canary.reward:g}; without it the reward was "
            f"{canary.base:g}"
        )
        seen = f"{canary.expression}  the verifier read: {', '.join(canary.reads) or 'nothing else'}"
    return Finding(message=what, path=path, line=line, seen=seen, scenario=PROBES)


RULE = Rule(
    id="HE410",
    name="reward-not-forgeable",
    severity=Severity.WARNING,
    doc=__doc__,
    dynamic=dynamic,
    scenarios=(PROBES,),
)
