"""What the neighbours of gold earned: worse work no less, or the same work no more, is a finding; what nobody but the author knows, a question.

Place in the flow: HE405 asks `of_neighbours` for findings, and the ladder shows `questions`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from pytest_hermes_env.contract.judge.evidence import Evidence
from pytest_hermes_env.play.cases.values import NEIGHBOUR
from pytest_hermes_env.play.scenario import CASES, CaseRules, Rung, Worth
from pytest_hermes_env.source.finding import Finding

TINY = 1e-9
_EXCHANGED = re.compile(r"two values exchanged in (.+), row \d+ and .+, row \d+, (.+)")
"""A column, and where the table stands."""
MOST = 5
"""Findings, and questions, that are shown."""
MOST_LOST = 0.5
"""The share of gold's reward from which on the same work by another way has lost most of it."""


def of_neighbours(evidence: Evidence, golds: Mapping[str, Rung], played: Callable[[Rung], str]) -> list[Finding]:
    """Return a finding for each neighbour that earned what it should not: on how many items, and the first one in full."""
    found: dict[str, list[tuple[Rung, str]]] = {}
    compared = [*_compared(evidence.rungs, golds)]
    for rung, gold in compared:
        if what := _fault(rung, gold, evidence.cases):
            found.setdefault(_kind(rung), []).append((rung, what))
    if free := _free_exchanges(compared, evidence.cases):
        what = f"worse work is paid like it, as is each of {len(free)} exchanges of values between rows, in any column that was tried"
        found[_kind(free[0])] = [(free[0], what)]
    return [_finding(evidence, golds, each, played) for each in list(found.values())[:MOST]]


def questions(rungs: Iterable[Rung], rules: CaseRules) -> list[str]:
    """Return what only the author knows of neighbours that earned like gold, each with the line that declares it."""
    read = list(rungs)
    golds = {rung.item: rung for rung in read if rung.name == "gold" and rung.reward}
    compared = [*_compared(read, golds)]
    known = {*rules.equivalent, *rules.worse, *map(_kind, _free_exchanges(compared, rules))}
    less = {_kind(rung): f" ({rung.reward:g} on {rung.item})" for rung, gold in compared if not _is_as_much(rung, gold)}
    asked = [
        f"gold ({rung.change}) earned {rung.reward:g}{less.get(_kind(rung), '')}, gold itself {gold.reward:g}: is it as good? "
        f"`equivalent: [{_kind(rung)!r}]` or `worse: [{_kind(rung)!r}]` in the file of cases"
        for rung, gold in compared
        if _kind(rung) not in known and _is_open(rung, gold)
    ]
    return list(dict.fromkeys(asked))[:MOST]


def _compared(rungs: Iterable[Rung], golds: Mapping[str, Rung]) -> Iterator[tuple[Rung, Rung]]:
    for rung in rungs:
        is_sure = rung.reward is not None and not (rung.is_judge_guessed or rung.is_foreign or rung.problem)
        if rung.name == NEIGHBOUR and is_sure and (gold := golds.get(rung.item)) is not None and (gold.reward or 0.0) > TINY:
            yield rung, gold


def _free_exchanges(compared: Iterable[tuple[Rung, Rung]], rules: CaseRules) -> list[Rung]:
    """Return the exchanges of values between rows where several were tried, in several columns, and each is paid like gold.

    Of one, nobody but the author knows whether it is as good; where no row's values have to belong together, each answer is wrong in some of them.
    """
    of_tables: dict[str, list[tuple[Rung, Rung, str]]] = {}
    for rung, gold in compared:
        if found := _EXCHANGED.match(rung.change):
            of_tables.setdefault(found[2], []).append((rung, gold, found[1]))
    for tried in of_tables.values():
        is_free = all(rung.worth is Worth.UNKNOWN and _is_as_much(rung, gold) for rung, gold, _ in tried)
        is_declared = any(_kind(rung) in rules.equivalent for rung, _, _ in tried)
        if is_free and not is_declared and len({column for _, _, column in tried}) > 1:
            return [rung for rung, _, _ in tried]
    return []


def _kind(rung: Rung) -> str:
    """Return the name of a change, by which authors declare it."""
    return rung.change


def _is_open(rung: Rung, gold: Rung) -> bool:
    """Tell whether only the author knows if a neighbour earned what it should."""
    if rung.worth is Worth.AS_GOOD:
        return (rung.reward or 0.0) < (gold.reward or 0.0) * MOST_LOST
    return rung.worth is Worth.UNKNOWN and _is_as_much(rung, gold)


def _is_as_much(rung: Rung, gold: Rung) -> bool:
    return (rung.reward or 0.0) >= (gold.reward or 0.0) - TINY


def _fault(rung: Rung, gold: Rung, rules: CaseRules) -> str:
    """Return what is wrong with the reward of a neighbour; empty where nothing is."""
    reward, of_gold = rung.reward or 0.0, gold.reward or 0.0
    is_worse = rung.worth is Worth.WORSE or _kind(rung) in rules.worse
    if _kind(rung) in rules.equivalent and rung.worth is not Worth.AS_GOOD:
        return ""
    if is_worse and _is_as_much(rung, gold):
        return "worse work is paid like it" if reward <= of_gold + TINY else "worse work is paid more"
    is_same = rung.worth is Worth.SAME or (rung.worth is Worth.AS_GOOD and _kind(rung) in rules.equivalent)
    if is_same and of_gold - reward >= max(rules.gap, of_gold * MOST_LOST) - TINY:
        return "the same work by another way loses most of it"
    if rung.worth in {Worth.SAME, Worth.WITH_LIES} and reward - of_gold >= rules.gap - TINY:
        return "the same work is paid more for it"
    return ""


def _finding(
    evidence: Evidence, golds: Mapping[str, Rung], found: list[tuple[Rung, str]], played: Callable[[Rung], str]
) -> Finding:
    rung, what = found[0]
    gold = golds[rung.item]
    items = f" (and on {len(found) - 1} more items)" if len(found) > 1 else ""
    message = f"gold ({rung.change}) scored {rung.reward:g} on {rung.item}{items}, gold itself {gold.reward:g}: {what}"
    return evidence.finding(message, "compute_reward", seen=played(rung), scenario=CASES)
