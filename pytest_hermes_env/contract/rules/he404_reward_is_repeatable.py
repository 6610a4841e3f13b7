"""HE404 reward-is-repeatable
The same item, transcript and sandbox have the same reward.

What: Each probe calls `compute_reward` twice, on equal copies of item and result and on machines with the same files,
and both rewards are equal. Declared cases are played twice, and a few changes of gold that earned less. Another process plays and calls all of it too, with another `PYTHONHASHSEED`,
in another working directory, in another order (worse work, and the gold of another item, before the item's own) and on another day. Two rewards of 0 prove nothing: where there are no others,
the rule is not exercised until a good transcript is declared, which is played twice.

Why: Within a group all rollouts share one item, and the differences of their rewards are the training signal. A random
or time-dependent part is noise that the optimiser follows.

Fix: Seed random parts from the item, read no clock, and iterate over sorted values instead of sets. Scale rewards by their
history in `postprocess_histories` or leave it to the trainer.

Source: atroposlib 0.4.0, `envs/base.py` (scores of one group are compared with each other).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from pytest_hermes_env.contract.judge import Evidence, Finding, Rule, Severity, Verdict
from pytest_hermes_env.play.scenario import CASES, ELSEWHERE, PROBES, Cause

NEEDS_A_CASE = "every reward that was computed twice was 0, which shows nothing: declare a good transcript (hermes-env init)"

FIX_HISTORY = (
    "Measure work by the item alone. Scale by what other rollouts earned in postprocess_histories, or leave it to the trainer."
)


def dynamic(evidence: Evidence) -> Verdict:
    """Compare both rewards of each probe and case, here and elsewhere."""
    cases = list(_of_cases(evidence))
    if not cases and (missing := evidence.without_probes()):
        return missing
    probed = [probe for probe in evidence.probes.probes if probe.again is not None and not probe.trial.is_foreign]
    twice = [*probed, *(rung for rung in evidence.rungs if rung.again is not None)]
    if not twice and not cases:
        asks = evidence.probes.asks_a_judge
        reason = "every reward calls a judge, whose answers are not declared" if asks else "compute_reward raised every time"
        return Verdict.not_exercised(reason, "HE403", "HE301", "HE412")
    steady = [*_unsteady(evidence), *cases]
    elsewhere, compared = _elsewhere(evidence) if not steady else ([], 0)
    if not steady and not elsewhere and not compared and _is_earned(evidence):
        unseen = evidence.why_missing(ELSEWHERE) or "no reward came there that came here"
        return Verdict.not_exercised(f"nothing was compared with another process: {unseen}")
    findings = [*steady, *elsewhere]
    if not findings and not _is_earned(evidence):
        return Verdict.not_exercised(NEEDS_A_CASE, "HE405", "HE403", "HE301", "HE412")
    note = f"{len(twice)} results got the same reward twice, {compared} of them elsewhere"
    return Verdict.of(
        findings, f"{note}; rewards that call a judge were not compared" if evidence.probes.asks_a_judge else note
    )


def _is_earned(evidence: Evidence) -> bool:
    """Tell whether a reward other than 0 was computed twice: only such a one shows what the history does to it."""
    return any(rung.reward for rung in evidence.rungs if rung.again is not None) or any(
        probe.trial.number for probe in evidence.probes.probes if probe.again is not None
    )


def _unsteady(evidence: Evidence) -> Iterator[Finding]:
    """Yield one finding for the smallest result that got two rewards."""
    probe = evidence.probes.unsteady
    if probe is not None and probe.again is not None:
        message = f"compute_reward returned {probe.trial.shown} and then {probe.again.shown} for equal inputs"
        yield evidence.finding(message, "compute_reward", seen=probe.expression, scenario=PROBES)


def _elsewhere(evidence: Evidence) -> tuple[list[Finding], int]:
    """Return a finding for a case, or the smallest result, that got another reward in another process, and how many were compared."""
    there = evidence.scenario(ELSEWHERE)
    where = "in another process, with another hash seed, working directory, order and day"
    if not there.happened:
        reason = there.unavailable
        if reason is None or reason.cause is not Cause.SETUP_FAILED or not reason.place.line:
            return [], 0
        message = f"what can be played here cannot be {where}: {reason.detail}"
        return [evidence.finding(message, "setup", place=reason.place, scenario=ELSEWHERE, severity=Severity.WARNING)], 0
    rungs = {(rung.name, rung.item, rung.transcript): rung for rung in there.rungs if not rung.change}
    compared = 0
    for rung in there.rungs:
        is_other = bool(rung.again_error) or rung.again not in (None, rung.reward)
        if rung.reward is not None and is_other and not (rung.is_foreign or rung.is_judge_guessed):
            came_then = rung.again_error or f"{rung.again:g}"
            message = (
                f"gold ({rung.change}) of {rung.item} got {rung.reward:g} before gold was played, and {came_then} after it"
            )
            seen = " / ".join(rung.transcript)
            found = evidence.finding(message, "compute_reward", seen=seen, scenario=ELSEWHERE)
            return [dataclasses.replace(found, fix=FIX_HISTORY)], 1
    for rung in evidence.rungs:
        other = rungs.get((rung.name, rung.item, rung.transcript))
        is_sure = other is not None and not (rung.is_foreign or rung.is_judge_guessed or rung.problem or other.unavailable)
        if is_sure and other is not None and rung.reward is not None:
            compared += 1
            if other.reward != rung.reward:
                came = other.error if other.reward is None else f"{other.reward:g}"
                message = f"{rung.name} of {rung.item} got {rung.reward:g}, and {came} {where}"
                seen = " / ".join(rung.transcript)
                return [evidence.finding(message, "compute_reward", seen=seen, scenario=ELSEWHERE)], compared
    probes = there.probes
    if probes is None or probes.unavailable or probes.item != evidence.probes.item:
        return [], compared
    rewards = {probe.expression: probe.trial.number for probe in probes.probes if not probe.trial.judged}
    for probe in sorted(evidence.probes.probes, key=lambda probe: len(probe.expression)):
        number, again = probe.trial.number, rewards.get(probe.expression)
        if number is not None and again is not None:
            compared += 1
            if number != again:
                message = f"compute_reward returned {number!r}, and {again!r} {where}"
                return [evidence.finding(message, "compute_reward", seen=probe.expression, scenario=ELSEWHERE)], compared
    return [], compared


def _of_cases(evidence: Evidence) -> Iterator[Finding]:
    """Yield the declared cases that were played twice and got two rewards."""
    for rung in evidence.rungs:
        is_other = bool(rung.again_error) or rung.again not in (None, rung.reward)
        is_sure = not (rung.is_foreign or (rung.change and rung.is_judge_guessed))
        if rung.reward is not None and is_other and is_sure:
            again = rung.again_error or f"{rung.again:g}"
            what = f"gold ({rung.change})" if rung.change else rung.name
            message = f"{what} of {rung.item} got {rung.reward:g}, and then {again}, for the same transcript"
            yield evidence.finding(message, "compute_reward", seen=" / ".join(rung.transcript), scenario=CASES)


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=(PROBES, CASES, ELSEWHERE))
