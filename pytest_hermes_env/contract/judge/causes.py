"""One cause, one finding: what breaks many laws at once is reported by one rule, and keeps the others from being judged.

An error of the environment's code belongs to the first rule that reports it, in the order of their ids. A finding may also say which rule's
violation it follows from (`Finding.because_of`). Neither holds where the author waived that violation: then the others fail by themselves.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from pytest_hermes_env.contract.judge.rule import Rule
from pytest_hermes_env.contract.judge.statements import lines_of_definition
from pytest_hermes_env.contract.judge.verdict import Outcome, Verdict
from pytest_hermes_env.play.journal import Reward
from pytest_hermes_env.play.scenario import CASES, Collection
from pytest_hermes_env.source.finding import Finding, Severity

AWAITS, ON_HOST = "HE102", "HE413"
"""The rules that report a missing await, and work on the host: what is raised at their line follows from it."""
GATES = (AWAITS, "HE108", "HE204")
"""Rules whose violation may keep each rollout from its reward."""
OF_ROLLOUTS = re.compile(r"HE[1-7]")


def with_causes(verdict: Verdict, collection: Collection) -> Verdict:
    """Return the verdict, each finding that tells an error of the environment's code at the line that raised it, with its fix."""
    return dataclasses.replace(verdict, findings=tuple(_with_cause(found, collection) for found in verdict.findings))


def _with_cause(finding: Finding, collection: Collection) -> Finding:
    told = f"{finding.message}\n{finding.seen}"
    found = [raised for raised in collection.raised if re.search(rf"{re.escape(raised.text)}(?!\w)", told)]
    found = [one for one in found if one.place.path] or found[:1]
    lines = lines_of_definition(finding.path, finding.line)
    near = [one for one in found if one.place.path == finding.path and one.place.line in {finding.line, *lines}]
    chosen = near or found
    if len(chosen) != 1:  # none, or the same text at several lines
        return finding
    (raised,) = chosen
    path, line, fix = raised.place.path, raised.place.line, raised.advice or finding.fix
    finding = dataclasses.replace(finding, cause=(raised.text, path, line), fix=fix)
    return dataclasses.replace(finding, path=path, line=line, column=1) if path else finding


def holds(outer: Finding, inner: Finding) -> bool:
    """Tell whether ``outer`` is at the place of ``inner``, or at the line that begins the function or class around it."""
    if _file(outer) != _file(inner):
        return False
    return outer.line == inner.line or inner.line in lines_of_definition(outer.path, outer.line)


def _file(finding: Finding) -> str:
    return str(Path(finding.path).absolute()) if finding.path else ""


def reported_once(
    verdicts: Mapping[Rule, Verdict], collection: Collection, is_waived: Callable[[Rule, Finding], bool]
) -> dict[Rule, Verdict]:
    """Return the verdicts of the rules of a run, in which what follows from another rule's error is not exercised.

    What a rule found beside that still fails it. Where no rollout has a reward, and one of `GATES` says why, all that rollouts show, and that no line
    of the environment raised, follows from that.
    """
    rules = sorted(verdicts, key=lambda rule: rule.id)
    owners: dict[object, str] = {}
    errors: set[str] = set()
    wrong_lines: dict[str, list[Finding]] = {AWAITS: [], ON_HOST: []}
    for rule in rules:
        for finding in verdicts[rule].findings:
            if rule.severity_of(finding) is Severity.ERROR and not is_waived(rule, finding):
                errors.add(rule.id)
                wrong_lines.get(rule.id, []).append(finding)
                if finding.cause is not None:
                    owners.setdefault(_key(finding.cause), rule.id)
    gate = next((name for name in GATES if name in errors), "") if not _was_rewarded(collection) else ""

    def owner_of(rule: Rule, finding: Finding) -> str:
        if is_waived(rule, finding):
            return rule.id
        if finding.because_of in errors:
            return finding.because_of
        for owner, lines in wrong_lines.items():
            is_method = owner == AWAITS and finding.scenario
            if rule.id != owner and (finding.cause or is_method) and any(holds(finding, one) for one in lines):
                return owner
        is_raised_here = finding.cause is not None and finding.cause[1]
        if gate and gate < rule.id and not is_raised_here and finding.is_confirmed and OF_ROLLOUTS.match(rule.id):
            return gate
        return min(owners.get(_key(finding.cause), rule.id), rule.id) if finding.cause is not None else rule.id

    also: dict[str, dict[str, None]] = {}
    made: dict[Rule, Verdict] = {}
    for rule in rules:
        verdict = verdicts[rule]
        kept = tuple(finding for finding in verdict.findings if owner_of(rule, finding) == rule.id)
        for owner in dict.fromkeys(owner_of(rule, finding) for finding in verdict.findings if finding not in kept):
            also.setdefault(owner, {})[rule.id] = None
            made[rule] = Verdict.not_exercised(f"because of what {owner} reports", owner)
        if kept or rule not in made:
            made[rule] = dataclasses.replace(verdict, findings=kept)
    for rule in rules:
        if rule.id in also and made[rule].outcome is Outcome.FAILED:
            first, *rest = made[rule].findings
            made[rule] = dataclasses.replace(
                made[rule], findings=(dataclasses.replace(first, also=tuple(also[rule.id])), *rest)
            )
    return made


def _key(cause: tuple[str, str, int]) -> object:
    """Return what causes have in common that are one: the kind of error at a line, else the whole text."""
    text, path, line = cause
    return (text.partition(":")[0], path, line) if path else cause


def _was_rewarded(collection: Collection) -> bool:
    """Tell whether any rollout that nothing disturbed has a reward."""
    rewards = [
        reward
        for name in ("happy", "silent", "evaluate")
        if name in collection.scenarios
        for reward in collection.scenarios[name].of(Reward)
    ]
    rungs = collection.scenarios[CASES].rungs if CASES in collection.scenarios else ()
    return any(not reward.error for reward in rewards) or any(rung.reward is not None for rung in rungs)
