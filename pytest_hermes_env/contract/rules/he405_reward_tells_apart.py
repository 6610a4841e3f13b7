"""HE405 reward-tells-apart
Rewards differ where the work differs: good work earns more than bad work, and bad work never the most.

What: Where the environment's author declares transcripts of known quality (a file of cases next to it), their rewards are
in the declared order, with the declared gap: the good one above the near miss, the near miss above doing nothing, and
no hack earns as much as gold; two of which neither is gold, and which earn the same, are a warning. On every item, gold is above doing nothing, the prompt repeated, the right form with wrong
content, and gold in the wrong place, by the gap. Over many items, gold of another item is not paid like the item's own. With or without gold, doing nothing, the
prompt repeated or wrong content never earns the highest reward that was seen, and rewards are not one positive number
for work that differs. Around gold its neighbours are played: with worse content in its own form, with less of its work, with lies, they earn less than gold; by
another way, with the same work, about as much. `hermes-env attack` also asks the verifier about programs like gold's that are wrong in one place, and give something else than gold for inputs like those that
are tested, or do nothing for a kind of input that the prompt speaks of: how many it pays like gold is a warning, with the smallest difference. What only the author knows is a question, which `equivalent:` or `worse:` in the file of cases answers. A reward that is 0.0 for everything is reported when the source can
return nothing else, or when every call caught the same mistake of its own code: a name or an attribute that does not
exist, wrong arguments, a key that the item does not have; or when nothing that the agent did is read, as where a reward
looks for messages of a role that no message has. Otherwise an honest verifier returns 0.0 for all rollouts that never
did the work: HE412 asks for work that earns. The rule is not exercised where a declared transcript got no reward,
because the rollout or the reward raised, or where equal inputs have different rewards: other rules report these.

Why: In a group with equal scores every advantage is zero, and nothing is learnt; atroposlib drops such groups. Where bad
work earns like good work, the policy learns the bad work, which is easier.

Fix: Look at what the verifier did: each file that it looked for, and each command with its outcome, stand in the finding.
Look for a check that is true for an empty answer, for text that is paid wherever it stands, for a file that is only asked to exist, for a broad `except: return`,
and for a key that the item does not have.

Source: atroposlib 0.4.0, `envs/base.py`, `handle_send_to_api` (`ensure_scores_are_not_same`).
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import re
import statistics
from collections.abc import Iterator, Sequence

from pytest_hermes_env.contract.judge import Evidence, Finding, Outcome, Rule, Severity, Verdict
from pytest_hermes_env.contract.judge.around_gold import of_neighbours, questions
from pytest_hermes_env.contract.judge.statements import is_caught_broadly
from pytest_hermes_env.play.cases.values import (
    ECHO,
    GOLD,
    HACK,
    JUDGED,
    MADE_FROM_GOLD,
    NOTHING,
    OTHER_GOLD,
    TOOLS,
    WRONG_CONTENT,
    WRONG_PROGRAM,
)
from pytest_hermes_env.play.journal import Caught, Reward
from pytest_hermes_env.play.probing.record import PAID, as_number
from pytest_hermes_env.play.scenario import CASES, PROBES, WRONG_PROGRAMS, Cause, Rung, Worth

SCENARIOS = ("happy", "silent")
TINY = 1e-9
WORTHLESS = (NOTHING, ECHO, WRONG_CONTENT)
"""Cases that never earn the highest reward, whatever the task is."""
MOST_FINDINGS = 5
FEWEST_PAIRS = 4
"""From this many pairs of items on, gold of another item that is paid on each is no coincidence of labels."""
REPORTED = ("HE401", "HE403", "HE301", "HE511", "HE204")
"""The rules that report why a rollout has no reward."""
_FIX_OF_TESTS = "Add a test with that input to the verifier. `pytest -v` shows all of these programs, and the first as a `near_miss:` to paste."
NEEDS_A_CASE = "no transcript earned anything: HE412 asks for one that does"


NEEDS_WORSE = (
    "gold could be compared with nothing: each other reward rests on a guessed answer of the judge. Declare near_miss or nothing, and what the "
    "judge says of it, with `judge:`"
)


def dynamic(evidence: Evidence) -> Verdict:
    """Compare the declared cases in their order, the automatic ones with gold, and all rewards with each other."""
    verdict = _verdict(evidence)
    search = evidence.scenario(WRONG_PROGRAMS)
    if (
        verdict.outcome is Outcome.PASSED
        and search.unavailable
        and search.unavailable.cause in {Cause.EARLIER_FAILURE, Cause.OUT_OF_TIME}
    ):
        verdict = Verdict.not_exercised(f"the search for wrong programs ended: {search.unavailable}")
    elif search.happened:
        verdict = dataclasses.replace(verdict, note="; ".join(filter(None, [verdict.note, search.note])))
    return dataclasses.replace(verdict, questions=tuple(questions(evidence.rungs, evidence.cases)))


def _verdict(evidence: Evidence) -> Verdict:
    worked, idle = (_rewards(evidence, name) for name in SCENARIOS)
    rungs = evidence.rungs
    every = [*worked, *idle, *evidence.probes.numbers, *(rung.reward for rung in rungs if rung.reward is not None)]
    unsteady = evidence.probes.unsteady is not None
    findings = [*_of_declarations(evidence, rungs)]
    if not unsteady:
        found = [*_of_order(evidence, rungs), *_of_automatic(evidence, rungs), *_of_other_gold(evidence, rungs)]
        paid = _rewards_of(rungs, GOLD)
        is_uneven = bool(paid) and max(paid) - min(paid) >= max(evidence.cases.gap, TINY) - TINY
        is_unpaid = bool(paid) and max(paid) <= max(_rewards_of(rungs, NOTHING), default=0.0) + TINY
        owner = (
            "HE412" if is_uneven or is_unpaid or not any(every) else ""
        )  # which says that gold is paid less here, or everywhere
        findings += [dataclasses.replace(one, because_of=owner) for one in _few(found)] or _of_worthless(evidence, rungs, every)
        findings += of_neighbours(evidence, _golds(rungs), _played)
    findings += _of_wrong_programs(evidence)
    if findings:
        return Verdict.failed(findings, _summary(rungs))
    if unsteady:
        return Verdict.not_exercised("equal inputs get different rewards, which HE404 reports", "HE404")
    errors: dict[str, list[Rung]] = {}
    for rung in filter(_is_without_reward, rungs):
        errors.setdefault(rung.error, []).append(rung)
    if errors:
        more = {error: f" and {len(ones) - 1} more" if len(ones) > 1 else "" for error, ones in errors.items()}
        told = [f"{ones[0].name} of {ones[0].item}{more[error]} got no reward: {error}" for error, ones in errors.items()]
        return Verdict.not_exercised("; ".join(told[:MOST_FINDINGS]), *REPORTED, "HE412")
    if not every:
        reason = evidence.why_missing(*SCENARIOS, CASES) or evidence.probes.unavailable
        return Verdict.not_exercised(reason or "compute_reward returned no finite number", *REPORTED)
    if len(set(every)) == 1:
        return _constant(evidence, every)
    if worked and idle and statistics.fmean(worked) < statistics.fmean(idle):
        means = f"{statistics.fmean(worked):g} and {statistics.fmean(idle):g}"
        message = f"a rollout that used every tool scored below one that did nothing ({means})"
        return Verdict.failed([evidence.finding(message, "compute_reward", severity=Severity.WARNING)])
    if has_gold(rungs) and not _has_worse(rungs):
        return Verdict.not_exercised(NEEDS_WORSE)
    if has_gold(rungs):
        return Verdict.passed(f"{_summary(rungs)}; rewards from {min(every):g} to {max(every):g} over {len(every)} transcripts")
    return Verdict.not_exercised("no good work was played, with which the rewards could be compared", "HE412")


def _rewards_of(rungs: tuple[Rung, ...], name: str) -> list[float]:
    return [rung.reward for rung in rungs if rung.name == name and rung.reward is not None and not rung.is_judge_guessed]


def has_gold(rungs: tuple[Rung, ...]) -> bool:
    """Tell whether a good transcript was played."""
    return any(rung.name == GOLD and rung.reward is not None for rung in rungs)


def _has_worse(rungs: tuple[Rung, ...]) -> bool:
    """Tell whether any other case on an item of gold has a reward that rests on no guess: with a judge, wrong work to which it gives its worst."""
    golds = _golds(rungs)
    others = [rung for rung in rungs if rung.name not in {GOLD, JUDGED} and rung.worth not in {Worth.SAME, Worth.AS_GOOD}]
    others += [rung for rung in rungs if rung.worth is Worth.JUDGED_BAD]
    return any(rung.item in golds and _is_sure(rung) for rung in others)


def _few(findings: Sequence[Finding]) -> list[Finding]:
    """Return one finding for each of several kinds: the same mistake shows on many items."""
    kinds: dict[str, Finding] = {}
    for finding in findings:
        kinds.setdefault(finding.message.partition(" scored ")[2].partition(", which scored ")[0].partition(" ")[2], finding)
    return list(kinds.values())[:MOST_FINDINGS]


def _summary(rungs: tuple[Rung, ...]) -> str:
    means: dict[str, list[float]] = {}
    for rung in rungs:
        if not rung.is_automatic and rung.reward is not None:
            means.setdefault(rung.name, []).append(rung.reward)
    return ", ".join(f"{name} {statistics.fmean(rewards):g}" for name, rewards in means.items())


def _of_declarations(evidence: Evidence, rungs: tuple[Rung, ...]) -> Iterator[Finding]:
    """Yield what is wrong with the declarations themselves; a judge whose answer was guessed only leaves one undecided."""
    for rung in rungs:
        if rung.problem:
            message = f"a declared case cannot be judged: {rung.problem}"
            path, line = (rung.path, rung.line) if rung.path else evidence.at_method("compute_reward")
            weight = Severity.WARNING if rung.is_judge_guessed else Severity.ERROR
            found = Finding(message=message, path=path, line=line, seen=_played(rung), scenario=CASES, severity=weight)
            yield dataclasses.replace(
                found, because_of="HE204", fix="Correct the declaration at this line of the file of cases."
            )


def _is_without_reward(rung: Rung) -> bool:
    """Tell whether a declared case was played and has no reward: other rules report why."""
    return not rung.is_automatic and not rung.unavailable and not rung.problem and rung.reward is None


def _of_order(evidence: Evidence, rungs: tuple[Rung, ...]) -> Iterator[Finding]:
    """Yield the pairs of cases whose rewards are not in the author's order, or too close. A hack is below gold in any order."""
    cases = evidence.cases
    placed = {name for part in cases.order for name in part}
    order = cases.order if HACK in placed else (*cases.order, (HACK,))
    for item in dict.fromkeys(rung.item for rung in rungs):
        scored = {rung.name: rung for rung in rungs if rung.item == item and rung.reward is not None and not rung.problem}
        for place, upper in enumerate(order):
            for high, low in itertools.product(upper, itertools.chain.from_iterable(order[place + 1 :])):
                is_placed = low in placed or high == GOLD
                if is_placed and high in scored and low in scored and _are_comparable(scored[high], scored[low]):
                    gap = cases.gap if cases.is_strict or high == GOLD else 0.0
                    is_inverted = (scored[high].reward or 0.0) < (scored[low].reward or 0.0)
                    weight = (
                        Severity.ERROR if high == GOLD or is_inverted else Severity.WARNING
                    )  # two bad ones may earn the same
                    yield from _of_pair(evidence, scored[high], scored[low], gap, weight)


def _of_wrong_programs(evidence: Evidence) -> Iterator[Finding]:
    """Yield a warning where wrong programs are paid like gold: how many, and the one that is wrong most often."""
    rungs = evidence.scenario(WRONG_PROGRAMS).rungs
    golds = _golds(rungs)
    asked = [rung for rung in rungs if rung.item in golds and rung.name == WRONG_PROGRAM and _is_sure(rung)]
    asked = [rung for rung in asked if rung.change not in evidence.cases.equivalent]
    paid = [rung for rung in asked if (rung.reward or 0.0) >= (golds[rung.item].reward or 0.0) - TINY]
    if paid:
        first, others = paid[0], {rung.change: rung for rung in paid[::-1]}
        others.pop(first.change)
        message = f"the verifier pays {len(paid)} of {len(asked)} wrong programs like gold: {first.change}: {first.against}"
        more = (f"{rung.change}: {rung.against}" for rung in [*others.values()][: -MOST_FINDINGS - 1 : -1])
        seen = "; ".join([f"on {first.item}", *more])
        found = evidence.finding(message, "compute_reward", seen=seen, scenario=WRONG_PROGRAMS, severity=Severity.WARNING)
        yield dataclasses.replace(found, reproduction=first.hack, fix=_FIX_OF_TESTS)


def _are_comparable(high: Rung, low: Rung) -> bool:
    """Tell whether the author has a say in two rewards, and neither rests on a guess or on what HE301 reports."""
    is_unsure = any(rung.is_judge_guessed or rung.is_foreign for rung in (high, low))
    return not (high.is_automatic and low.is_automatic) and not is_unsure


def _of_automatic(evidence: Evidence, rungs: tuple[Rung, ...]) -> Iterator[Finding]:
    """Yield the automatic cases that score like good work, unless the author gave them a place in the order."""
    placed = {name for part in evidence.cases.order for name in part}
    golds = _golds(rungs)
    for rung in rungs:
        gold = golds.get(rung.item)
        if gold is not None and _is_free(rung) and rung.name not in {*placed, OTHER_GOLD, *MADE_FROM_GOLD}:
            weight = Severity.WARNING if rung.name == TOOLS else Severity.ERROR
            yield from _of_pair(evidence, gold, rung, evidence.cases.gap, weight)


def _golds(rungs: tuple[Rung, ...]) -> dict[str, Rung]:
    return {rung.item: rung for rung in rungs if rung.name == GOLD and rung.reward is not None and not rung.problem}


def _is_free(rung: Rung) -> bool:
    """Tell whether an automatic case was played, and its reward rests on no guess."""
    return rung.is_automatic and _is_sure(rung)


def _is_sure(rung: Rung) -> bool:
    return rung.reward is not None and not (rung.is_judge_guessed or rung.is_foreign or rung.problem)


def _of_other_gold(evidence: Evidence, rungs: tuple[Rung, ...]) -> Iterator[Finding]:
    """Yield a finding where gold of another item is paid like the item's own on all, or most of several items: labels may coincide on one."""
    golds = _golds(rungs)
    pairs = [(golds[rung.item], rung) for rung in rungs if rung.name == OTHER_GOLD and rung.item in golds and _is_free(rung)]
    close = [pair for pair in pairs if (pair[0].reward or 0.0) - (pair[1].reward or 0.0) < evidence.cases.gap - TINY]
    others = [
        (gold, rung) for gold, rung in close if rung.against and _words(gold) - _words(rung) and _words(rung) - _words(gold)
    ]
    is_most = len(others) >= FEWEST_PAIRS and len(others) >= len(pairs) / 2
    if is_most or len(close) == len(pairs) >= FEWEST_PAIRS:
        gold, other = (others or close)[0]
        which = f"each of {len(pairs)}" if len(close) == len(pairs) else f"{len(close)} of {len(pairs)}"
        message = f"gold of another item scored like the item's own on {which} items: {other.reward:g} on {other.item}"
        seen = f"{_played(other)}; the item's own: {' / '.join(gold.transcript)}"
        yield evidence.finding(message, "compute_reward", seen=seen, scenario=CASES)


def _words(rung: Rung) -> set[str]:
    return {*re.findall(r"\w+", " ".join(rung.transcript).casefold())}


def _of_worthless(evidence: Evidence, rungs: tuple[Rung, ...], every: list[float]) -> Iterator[Finding]:
    """Yield the first worthless case that earned the highest reward that was seen, which is more than style earns, and than others did."""
    for rung in rungs:
        is_highest = rung.reward is not None and rung.reward >= max(every) - TINY and rung.reward >= PAID
        if is_highest and _is_free(rung) and rung.name in WORTHLESS and min(every) <= max(every) - evidence.cases.gap + TINY:
            message = f"{rung.name} of {rung.item} scored {rung.reward:g}, and no transcript scored more"
            yield evidence.finding(message, "compute_reward", seen=_played(rung), scenario=CASES)
            return


def _of_pair(evidence: Evidence, high: Rung, low: Rung, gap: float, severity: Severity) -> Iterator[Finding]:
    if high.reward is None or low.reward is None or high.reward - low.reward >= gap - TINY:
        return
    relation = "below" if high.reward < low.reward else "the same as" if high.reward == low.reward else "hardly above"
    expected = f"at least {gap:g} more was expected" if gap else "it must not score lower"
    message = (
        f"{high.name} of {high.item} scored {high.reward:g}, {relation} {low.name}, which scored {low.reward:g}: {expected}"
    )
    shown = _played(high if high.reward < low.reward or high.name == GOLD else low)
    yield evidence.finding(message, "compute_reward", seen=shown, scenario=CASES, severity=severity)


def _played(rung: Rung) -> str:
    """Return how a case went, for a finding: what the agent did, and what the verifier looked for and ran."""
    parts = [f"{rung.name}: {' / '.join(rung.transcript)}"] if rung.transcript else []
    parts += [f"failed: {', '.join(rung.tool_errors)}"] if rung.tool_errors else []
    parts += [f"compute_reward called {', '.join(rung.asked)}"] if rung.asked else []
    parts += [f"it read {', '.join(rung.reads)}"] if rung.reads else []
    parts += [f"the agent wrote {', '.join(rung.work)}"] if rung.work and rung.reads else []
    parts += [f"not available: {', '.join(dict.fromkeys(rung.not_found))}"] if rung.not_found else []
    return "; ".join(parts)


def _rewards(evidence: Evidence, scenario: str) -> list[float]:
    return [
        number
        for record in evidence.scenarios(scenario)
        for reward in record.of(Reward)
        if not reward.injected and (number := as_number(reward.value)) is not None
    ]


def _constant(evidence: Evidence, every: list[float]) -> Verdict:
    """Return what a reward that was the same every time means."""
    value = every[0]
    is_only = _gives_nothing_else(evidence, value)
    if value or is_only:
        message = f"compute_reward returned {value:g} for each of {len(every)} different transcripts"
        severity = Severity.ERROR if is_only or value > 0 else Severity.WARNING
        return Verdict.failed([evidence.finding(message, "compute_reward", severity=severity)])
    if (mistake := _caught_each_time(evidence)) is not None:
        message = f"each rollout scored {value:g}, because compute_reward catches a mistake of its own: {mistake.error}"
        return Verdict.failed([evidence.finding(message, place=mistake.place, scenario=SCENARIOS[0])])
    open_ones = [rung.unavailable for rung in evidence.rungs if not rung.is_automatic and rung.unavailable]
    return Verdict.not_exercised("; ".join(dict.fromkeys(open_ones)) or NEEDS_A_CASE, "HE412")


def _caught_each_time(evidence: Evidence) -> Caught | None:
    """Return the mistake that was caught in every call, by a broad ``except`` unless it is certain, if there is one."""
    calls = [reward.caught for record in evidence.scenarios("happy") for reward in record.of(Reward) if not reward.injected]
    first = next(iter(calls), ())
    return next(
        (
            mistake
            for mistake in first
            if mistake.is_mistake
            and all(mistake.place in [other.place for other in caught] for caught in calls)
            and (mistake.is_own or is_caught_broadly(mistake.caught_at.path, mistake.caught_at.line))
        ),
        None,
    )


def _gives_nothing_else(evidence: Evidence, value: float) -> bool:
    """Tell whether every return statement of compute_reward gives this one constant."""
    function = evidence.source.methods.get("compute_reward") if evidence.source is not None else None
    if function is None:
        return False
    returns = [node for node in function.own_nodes() if isinstance(node, ast.Return)]
    given = [node.value.value if isinstance(node.value, ast.Constant) else None for node in returns]
    return bool(given) and all(isinstance(one, int | float) and one == value for one in given)


RULE = Rule(doc=__doc__, severity=Severity.ERROR, dynamic=dynamic, scenarios=(*SCENARIOS, PROBES, CASES, WRONG_PROGRAMS))
