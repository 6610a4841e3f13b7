"""One cause, one finding: an error of the environment's code is reported by one rule, at the line that raised.

Many laws break where a line raises. The first rule that reports the error, in the order of their ids, which is that of a run, stands for
the others: they could not be judged because of it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from pytest_hermes_env.contract.judge.rule import Rule
from pytest_hermes_env.contract.judge.statements import lines_of_definition
from pytest_hermes_env.contract.judge.verdict import Outcome, Verdict
from pytest_hermes_env.play.journal import EvaluationLogged, Reward
from pytest_hermes_env.play.scenario import CASES, Collection, Scenario
from pytest_hermes_env.source.finding import Finding, Severity

_Cause = tuple[str, str, int]
GATES = ("HE102", "HE108", "HE204")
"""Rules whose violation may keep each rollout from its reward."""
NOTHING_PLAYED: _Cause = ("what keeps all rollouts from a reward", "", 0)
HEALTHY = frozenset({"items", "setup", "happy", "silent", "evaluate", "evaluate_twice"})
"""Scenarios in which nothing but the environment fails."""


def with_causes(verdict: Verdict, collection: Collection) -> Verdict:
    """Return the verdict, each finding of it with the error that it comes from, if one is known: at its line, with its fix."""
    return dataclasses.replace(verdict, findings=tuple(_with_cause(found, collection) for found in verdict.findings))


def _with_cause(finding: Finding, collection: Collection) -> Finding:
    told = f"{finding.message}\n{finding.seen}"
    texts = {raised.text for raised in collection.raised if re.search(rf"{re.escape(raised.text)}(?!\w)", told)}
    if not texts and finding.scenario in HEALTHY and (scenario := collection.scenarios.get(finding.scenario)) is not None:
        texts = _errors_in(scenario)
    found = [raised for raised in collection.raised if raised.text in texts]
    if not found:
        return finding
    lines = lines_of_definition(finding.path, finding.line)
    found = [one for one in found if one.place.path] or found
    near = [one for one in found if one.place.path == finding.path and one.place.line in {finding.line, *lines}]
    raised = (near or found)[0]
    path, line = raised.place.path, raised.place.line
    finding = dataclasses.replace(finding, cause=(raised.text, path, line), fix=raised.advice or finding.fix)
    return dataclasses.replace(finding, path=path, line=line, column=1, fix=raised.advice) if path else finding


def _errors_in(scenario: Scenario) -> set[str]:
    """Return what ended a scenario, or every reward or sample of it."""
    rewards = [reward.error for reward in scenario.of(Reward)]
    errors = {scenario.error, *(rewards if all(rewards) else ())}
    return errors | {log.error for log in scenario.of(EvaluationLogged) if log.failed == log.samples}


def reported_once(verdicts: Mapping[Rule, Verdict], collection: Collection) -> dict[Rule, Verdict]:
    """Return the verdicts of the rules of a run: an error of the environment's code fails the first rule that reports it.

    The others are not exercised, because of it; what they found beside it still fails them. Where no rollout has a reward, and one of `GATES`
    says why, nothing that rollouts show is judged.
    """
    failing = sorted(rule.id for rule, verdict in verdicts.items() if verdict.outcome is Outcome.FAILED)
    gate = next((name for name in failing if name in GATES), "") if not _was_rewarded(collection) else ""

    def cause_of(rule: Rule, finding: Finding) -> _Cause | None:
        return NOTHING_PLAYED if gate and rule.id >= gate and rule.id < "HE8" and finding.is_confirmed else finding.cause

    owners: dict[_Cause, str] = {}
    also: dict[_Cause, list[str]] = {}
    made: dict[Rule, Verdict] = {}
    for rule in sorted(verdicts, key=lambda rule: rule.id):
        verdict, why, kept = verdicts[rule], None, []
        for finding in verdict.findings:
            cause = cause_of(rule, finding)
            if cause is None or owners.get(cause, rule.id) == rule.id:
                kept.append(finding)
                for known in (cause, finding.cause):
                    if known is not None and rule.severity_of(finding) is Severity.ERROR:
                        owners.setdefault(known, rule.id)
            else:
                also.setdefault(cause, []).append(rule.id)
                why = Verdict.not_exercised(f"because of {cause[0]}, which {owners[cause]} reports", owners[cause])
        made[rule] = dataclasses.replace(verdict, findings=tuple(kept)) if kept or why is None else why
    for rule, verdict in made.items():
        named = [(found, cause_of(rule, found)) for found in verdict.findings]
        found = [
            dataclasses.replace(one, also=tuple(dict.fromkeys(also[cause]))) if cause in also else one for one, cause in named
        ]
        made[rule] = dataclasses.replace(verdict, findings=tuple(found))
    return made


def _was_rewarded(collection: Collection) -> bool:
    rewards = [reward for name in HEALTHY if name in collection.scenarios for reward in collection.scenarios[name].of(Reward)]
    rungs = collection.scenarios[CASES].rungs if CASES in collection.scenarios else ()
    return any(not reward.error for reward in rewards) or any(rung.reward is not None for rung in rungs)
