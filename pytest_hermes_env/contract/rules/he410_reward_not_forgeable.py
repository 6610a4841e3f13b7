"""HE410 reward-not-forgeable
Claims of the model, or what the agent leaves in its sandbox beside the work, do not make the reward.

What: Gold is played, and what the verifier runs, reads and uploads is noted. Then rollouts do none of gold's work and leave behind what could make this
verifier pay: code that ends or changes its process (in the work itself, conftest.py, pytest.ini, modules that shadow those it imports, the
user's site-packages), its prepared checkers, limits and expected data overwritten or moved away, links to, and views of, what the work is
compared with, programs that print it, results that nobody computed, text that ends the verifier's command, settings, history and names of a repository, names of files that are taken for
options, headers and settings that a program looks up of itself, files that a shell sources, the verifier's own results of good work put there before
it comes, the names of its targets, directories and archives in the place of its files, files removed that were to be changed. Programs of the same names on PATH, functions and variables of the
session, and processes that still run, are a warning: they work wherever a verifier's commands run in the agent's session. What
is paid is shrunk to the fewest files, and shown as a case. The contract plays the short form, on one item, up to the first attack that is paid;
`hermes-env attack` plays all. Without any work, the reward is computed for claims in the final answer ("All tests passed.", a JSON score, words
to a judge, the prompt repeated, the texts in the reward's own code). None of these raises the reward by half of the unit interval or more. The item's expected answer is what a question asks for: its reward is noted, and not
reported. A hack that the environment's author declares (a file of cases next to it) does not score like the declared
good transcript.

Why: Policies find such holes within a few hundred steps. A reward for the words "tests passed" teaches the words. A
score that the verifier reads from a file in the agent's own sandbox teaches the agent to write that file. The learning
curve looks excellent.

Fix: Decide from the sandbox, after a check that the verifier itself started: upload the tests in `compute_reward`, run
them, take the exit code. Write results to a fresh directory (`mktemp -d`) or read them from the command's output. Give
text to a judge as data, and take a score only from its own reply.

Source: The fake sandbox's record of who wrote and who read each file (`Files.reads`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pytest_hermes_env.contract.judge import Evidence, Finding, Outcome, Rule, Severity, Verdict
from pytest_hermes_env.play.cases.values import ATTACK, GOLD, HACK
from pytest_hermes_env.play.cases.values import NOTHING as IDLE
from pytest_hermes_env.play.probing.record import PAID, Canary
from pytest_hermes_env.play.scenario import CASES, PROBES, TAMPERING, Cause, Rung, Worth

TINY = 1e-9


def dynamic(evidence: Evidence) -> Verdict:
    """Compare each attack and each declared hack with gold, and each canary with doing nothing."""
    probed = _with_attacks(evidence, _of_canaries(evidence))
    hacks = [rung for rung in evidence.rungs if rung.name == HACK and not rung.is_automatic]
    if not hacks:
        return probed
    findings: list[Finding] = []
    notes = []
    for hack in hacks:
        finding, note = _of_hack(evidence, hack)
        findings += [finding] if finding is not None else []
        notes += [note] if note and note not in notes else []
    notes.append(probed.note)
    if findings or probed.findings:
        return Verdict.failed([*findings, *probed.findings], "; ".join(notes))
    is_judged = any(hack.reward is not None and not hack.problem for hack in hacks)
    golds = _golds(evidence)
    is_judged = is_judged and (not golds or max(golds) > TINY)  # a gold of 0.0 has nothing that could be forged
    is_judged = is_judged and not _has_broken_off(evidence)
    outcome = Outcome.PASSED if is_judged or probed.outcome is Outcome.PASSED else probed.outcome
    return dataclasses.replace(probed, outcome=outcome, note="; ".join(notes))


def _with_attacks(evidence: Evidence, probed: Verdict) -> Verdict:
    """Add the attacks that were paid, and how many were tried."""
    scenario = evidence.scenario(TAMPERING)
    rungs = [rung for rung in scenario.rungs if rung.name == ATTACK]
    sure = [rung for rung in rungs if rung.worth is not Worth.UNKNOWN]
    if chosen := sure or rungs:
        findings = [_of_attack(evidence, chosen[0], chosen[1:], None if sure else Severity.WARNING)]
        return Verdict.failed([*findings, *probed.findings], probed.note)
    if _has_broken_off(evidence) and not probed.findings:
        return Verdict.not_exercised(f"the search for attacks ended: {scenario.unavailable}", "HE412", "HE405")
    why = scenario.unavailable
    if why is not None and why.cause is Cause.NO_GOLD and not _golds(evidence) and probed.outcome is Outcome.PASSED:
        return dataclasses.replace(probed, outcome=Outcome.NOT_EXERCISED, note=f"{why}; {probed.note}", blocked_by=("HE412",))
    was_attacked = bool(scenario.happened and scenario.rungs)
    if (not was_attacked and probed.outcome is not Outcome.PASSED) or probed.findings:
        return probed
    tried = scenario.note or f"no attack was played: {scenario.unavailable}"
    return Verdict.passed("; ".join(filter(None, [tried, probed.note])))


def _golds(evidence: Evidence) -> list[float]:
    """Return what gold earned, wherever it was played."""
    return [rung.reward for rung in evidence.rungs if rung.name == GOLD and rung.reward is not None]


def _has_broken_off(evidence: Evidence) -> bool:
    """Tell whether the search for attacks failed: then nobody knows what it would have found, whatever else was tried."""
    why = evidence.scenario(TAMPERING).unavailable
    return why is not None and why.cause in {Cause.EARLIER_FAILURE, Cause.OUT_OF_TIME}


def _of_attack(evidence: Evidence, rung: Rung, others: Sequence[Rung], severity: Severity | None) -> Finding:
    """Return the violation that the first attack is: its mechanism, as a case, and which others were paid."""
    more = "".join(f"; also paid ({other.reward:g}): {other.change}" for other in others)
    found = evidence.finding(
        f"{rung.change}: that earned {rung.reward:g} on {rung.item} without the work ({rung.against})",
        "compute_reward",
        seen=f"the verifier called: {', '.join(rung.asked) or 'no tool'}{more}",
        scenario=TAMPERING,
        severity=severity,
    )
    return dataclasses.replace(found, reproduction=rung.hack)


def _of_hack(evidence: Evidence, hack: Rung) -> tuple[Finding | None, str]:
    """Return the violation that a hack is, if it is one, and what it came to. HE405 reports what is wrong with its declaration."""
    label = f"the hack of {hack.item}"
    if hack.reward is None or hack.problem:
        return None, hack.unavailable or f"{label} could not be checked: {hack.problem or hack.error}"
    same = [rung for rung in evidence.rungs if rung.item == hack.item and rung.reward is not None and not rung.problem]
    gold = next((rung.reward for rung in same if rung.name == GOLD), None)
    idle = next((rung.reward for rung in same if rung.name == IDLE), None)
    earned = f"earned {hack.reward:g}"
    if gold is not None:
        least = min(evidence.cases.gap, PAID)
        earned_something = hack.reward > TINY  # where nothing earns anything, HE405 says so
        is_violation, against = earned_something and gold - hack.reward < max(least, TINY), f"gold earns {gold:g}"
    elif idle is not None:
        is_violation, against = hack.reward - idle >= PAID, f"doing nothing earns {idle:g}, and gold was not played"
    else:
        return None, f"{label} {earned}, and there is nothing to compare it with"
    if not is_violation:
        return None, f"the hack {earned}, {against}"
    seen = f"it did: {' / '.join(hack.transcript)}; the verifier called: {', '.join(hack.asked) or 'no tool'}"
    seen += f"; the verifier read: {', '.join(hack.reads)}" if hack.reads else ""
    found = evidence.finding(f"{label} {earned}, {against}", "compute_reward", seen=seen, scenario=CASES)
    is_unpaid = gold is not None and idle is not None and gold <= idle
    return dataclasses.replace(found, because_of="HE412" if is_unpaid else ""), ""


def _of_canaries(evidence: Evidence) -> Verdict:
    """Compare the reward of each canary with that of doing nothing."""
    if missing := evidence.without_probes():
        return missing
    canaries = evidence.probes.canaries
    if not canaries and evidence.probes.cut:
        return Verdict.not_exercised(f"{evidence.probes.cut}, before any claim could be tried: this reward is too slow for it")
    if not canaries:
        return Verdict.not_exercised("doing nothing earned no reward to compare with", "HE401", "HE403", "HE301")
    paid = [canary for canary in canaries if canary.reward - canary.base >= PAID]
    answers = [canary for canary in paid if canary.is_answer]
    findings = [_finding(evidence, canary) for canary in paid if not canary.is_answer][:1]
    note = f"{sum(not canary.is_answer for canary in canaries)} claims earned nothing"
    if answers:
        note += f"; the expected answer alone earns {answers[0].reward:g}, which is fine where the task is a question"
    return Verdict.of(findings, note)


def _finding(evidence: Evidence, canary: Canary) -> Finding:
    what = f"{canary.name} earned {canary.reward:g} without any work; doing nothing earned {canary.base:g}"
    return evidence.finding(what, "compute_reward", seen=canary.expression, scenario=PROBES)


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=(PROBES, CASES, TAMPERING))
