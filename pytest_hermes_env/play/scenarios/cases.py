"""The author's cases and the automatic ones: one rollout each, whose reward is a rung of the ladder; and gold on many items.

A case for several items is played as a whole on a few of them, spread over all. Its gold is played on many more, also spread: a template
may be right on the first items and wrong on most.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_hermes_env.play.buffers import fields_of, picture
from pytest_hermes_env.play.cases.choice import scattered, with_new_traits
from pytest_hermes_env.play.cases.item_cases import play_item, play_less, play_other_first
from pytest_hermes_env.play.cases.neighbours import Tried
from pytest_hermes_env.play.cases.one_value import spread
from pytest_hermes_env.play.cases.playing import PlayedCase
from pytest_hermes_env.play.cases.values import GOLD, Cases, ItemCases
from pytest_hermes_env.play.held_out import collections_of
from pytest_hermes_env.play.probing.reward_constants import fields_unread
from pytest_hermes_env.play.scenario import CASES, ELSEWHERE, Cause, Rung, Scenario, Sweep, Unavailable, item_key
from pytest_hermes_env.play.scenarios.family import family
from pytest_hermes_env.play.scenarios.items import MOST_AGAIN, seen_item
from pytest_hermes_env.play.scenarios.reward_probes import probe
from pytest_hermes_env.play.stage import Stage

MOST_FIELDS = 6
FEW = 3
"""Items of those that an entry selects on which all its cases are played."""
SOME = 5
"""Further ones on which the automatic cases are played beside gold."""
MANY, MANY_PROGRAMS = 50, 12
"""Items on which gold is played, in all: in memory, and where real programs run."""
OTHERS = 12
"""Other items whose gold is at hand for what is made from gold."""
MOST = 1_000
"""The most calls of get_next_item."""
LEAST = 20
"""Calls without a new item, or as many as there are different ones, after which all are taken to be known."""


@dataclass(frozen=True, kw_only=True)
class _Chosen:
    """What is played on one item: everything that the entry has, or gold with the automatic cases, or gold alone."""

    entry: ItemCases | None
    item: Any
    label: str
    others: tuple[Any, ...] = ()
    depth: int = 0
    turn: int = 0
    """Its place among those of its entry and depth: entries take turns."""


@dataclass(kw_only=True)
class _Drawn:
    """The different items that get_next_item gave, in their order, in so many calls."""

    items: list[Any] = field(default_factory=list)
    calls: int = 0
    is_whole: bool = False


@family(
    {CASES: "one rollout for each transcript that the author declares, and for those that need no author"},
    needs="nothing",
)
async def played_cases(stage: Stage) -> None:
    """Play each case of each item, with the automatic cases, then gold on further items."""
    if not await stage.prepare("setup of the cases"):
        return
    declared, drawn, trouble = await _drawn(stage, "items of the cases")
    chosen, missing = _chosen(declared, drawn.items, trouble, _named_by_reward(stage))
    if not chosen and not missing:
        if not drawn.items:
            stage.skip(stage.without_item or Unavailable(Cause.NOT_REACHED, "an item"))
            return
        few = spread(list(enumerate(drawn.items)), FEW)
        chosen = [_Chosen(entry=None, item=item, label=f"training item {number}") for number, item in few]
    played: list[PlayedCase] = [PlayedCase(rung=rung) for rung in missing]
    sandbox, golds, tried = stage.sandbox, 0, Tried()
    if stage.attack.alone:
        whole = [one for one in chosen if one.entry is None or any(case.name == GOLD for case in one.entry.cases)]
        chosen = [one for one in (*whole, *chosen) if not (one.depth or one.turn)][:1]
    for one in sorted(chosen, key=lambda each: (each.depth, each.turn)):
        is_slow = any(case.runs_programs for case in played if case.rung.name == GOLD)
        if one.depth and golds >= (MANY_PROGRAMS if is_slow else MANY):
            break
        played += await play_item(
            stage, one.entry, one.item, one.label, one.others, depth=one.depth, turn=one.turn, tried=tried
        )
        golds += any(case.name == GOLD for case in one.entry.cases) if one.entry is not None else 0
    stage.sandbox = sandbox
    stage.scenarios[CASES] = Scenario(
        name=CASES,
        rungs=tuple(case.rung for case in played),
        played=tuple(record for case in played for record in case.records),
        sweep=Sweep(
            drawn=drawn.calls,
            different=len(drawn.items),
            is_whole=drawn.is_whole,
            left=_left(stage.env, drawn.items),
        ),
    )


@family(
    {ELSEWHERE: "the cases, the last first, and the probes, in a process with another hash seed, directory and day"},
    needs="nothing",
    is_alone=True,
)
async def played_elsewhere(stage: Stage) -> None:
    """Play the cases that are played as a whole, and the probes where no good work earned, as in a process that began elsewhere."""
    if not await stage.prepare("setup elsewhere"):
        return
    declared, drawn, _ = await _drawn(stage, "items elsewhere")
    chosen = [one for one in _chosen(declared, drawn.items, "", _named_by_reward(stage))[0] if not one.depth]
    played: list[PlayedCase] = []
    sandbox = stage.sandbox
    first: list[PlayedCase] = []
    has_less = False
    for one in reversed(chosen):
        first += await play_other_first(stage, one.entry, one.item, one.label, one.others, one.turn)
        less = [] if has_less else await play_less(stage, one.entry, one.item, one.label)
        has_less = has_less or bool(less)
        played += await play_item(stage, one.entry, one.item, one.label, one.others, turn=one.turn)
        after = await play_less(stage, one.entry, one.item, one.label) if less else []
        for before, again in zip(less, after, strict=True):
            if not (before.was_stopped or again.was_stopped):  # its commands took too long once, which says nothing
                rung = replace(before.rung, again=again.rung.reward, again_error=again.rung.error)
                first.append(replace(before, rung=rung))
    played += first  # of two with one name, the last one is compared
    stage.sandbox = sandbox
    needs_probes = stage.item is not None and not any(case.rung.name == GOLD and case.rung.reward for case in played)
    found = await probe(stage, "probes elsewhere") if needs_probes and not stage.nothing_to_train else None
    items = tuple(seen_item(stage.env, item) for item in drawn.items[:MOST_AGAIN])
    stage.scenarios[ELSEWHERE] = Scenario(name=ELSEWHERE, rungs=tuple(case.rung for case in played), probes=found, items=items)


async def _drawn(stage: Stage, name: str) -> tuple[tuple[ItemCases, ...], _Drawn, str]:
    """Return what is declared, the items that came, and what get_next_item raised before all of them had."""
    assert isinstance(stage.cases, Cases | None)
    declared = stage.cases.items if stage.cases is not None else ()
    drawn = _Drawn()

    async def take() -> None:
        await _take(stage, declared, drawn)

    if stage.item is None:  # other rules report why
        return declared, drawn, str(stage.without_item or "")
    return declared, drawn, (await stage.play(name, take)).error


async def _take(stage: Stage, declared: tuple[ItemCases, ...], drawn: _Drawn) -> None:
    """Take training items until none is new, or as many as the declaration may refer to; items before a failure are kept."""
    wanted = max([1, *(entry.which + 1 for entry in declared if entry.kind == "index")])
    needs_all = any(entry.kind in {"where", "item"} for entry in declared) or not declared
    seen: set[str] = set()
    item, since = stage.item, 0
    while item is not None:
        drawn.calls += 1
        since += 1
        stage.step()
        key = repr(picture(item))
        if key not in seen:
            seen.add(key)
            drawn.items.append(item)
            since = 0
        drawn.is_whole = since >= max(LEAST, len(seen))
        if drawn.is_whole or drawn.calls >= MOST or (len(seen) >= wanted and not needs_all):
            return
        item = await stage.next_item()
    drawn.is_whole = True


def _left(env: Any, drawn: list[Any]) -> tuple[str, ...]:
    """Return the keys of items that never came, of the collections that hold items that did."""
    known = {item_key(item) for item in drawn}
    parts = [
        part for value in collections_of(env).values() for part in (value.values() if isinstance(value, dict) else [value])
    ]
    rows = [{item_key(row) for row in part} for part in parts if isinstance(part, list | tuple) and len(part) <= MOST]
    return tuple(sorted({key for keys in rows if keys & known for key in keys - known}))


def _named_by_reward(stage: Stage) -> Callable[[Mapping[str, Any]], Collection[str]]:
    """Return what tells which fields of an item the code of the reward names."""
    cls = type(stage.env)
    return lambda fields: fields.keys() - fields_unread(cls, cls.compute_reward, fields)


def _chosen(
    declared: tuple[ItemCases, ...], given: list[Any], trouble: str, named: Callable[[Mapping[str, Any]], Collection[str]]
) -> tuple[list[_Chosen], list[Rung]]:
    """Return which cases are played on which items, and a rung with the problem for each entry that matches none.

    ``trouble`` is what get_next_item raised before all items came, in which case an entry may refer to a missing item.
    """
    chosen: list[_Chosen] = []
    missing: list[Rung] = []
    for entry in declared:
        problem, cause = "", trouble
        if entry.kind == "item" and (whole := _is_part(entry.which, given, named)):
            problem = (
                f"`item` is a whole item, and this is a part of training item {whole - 1}: to choose items by it, write `where`"
            )
        elif entry.kind == "item":
            chosen.append(_Chosen(entry=entry, item=entry.which, label=entry.label))
        elif entry.kind == "index" and entry.which < len(given):
            chosen.append(_Chosen(entry=entry, item=given[entry.which], label=entry.label))
        elif entry.kind == "index":
            problem = f"there is no training item {entry.which}: get_next_item returns {len(given)} different ones"
        else:
            indexed = {other.which for other in declared if other.kind == "index"}
            try:
                fits = [number for number, item in enumerate(given) if number not in indexed and entry.which(item)]
            except Exception as error:  # noqa: BLE001 - the author's function; the finding names it
                fits, problem, cause = [], f"the predicate of {entry.label} raised {type(error).__name__}: {error}", ""
            if not fits and not problem:
                fields = ", ".join(list(fields_of(given[0]))[:MOST_FIELDS]) if given else ""
                problem = f"{entry.label} matches none of the {len(given)} training items that came"
                problem += f", which have {fields}" if fields else ""
            chosen += _of_many(entry, fits, given)
        if problem:
            blank = Rung(name=GOLD, item=entry.label, is_automatic=False, path=entry.path, line=entry.line)
            reason = f"{problem}; then it failed: {cause}"
            missing.append(replace(blank, unavailable=reason) if cause else replace(blank, problem=problem))
    return chosen, missing


def _is_part(item: Any, given: list[Any], named: Callable[[Mapping[str, Any]], Collection[str]]) -> int:
    """Return the number, from 1, of the first training item that has all fields of an item, and more of which the reward's code names one; 0 without one."""
    mine = fields_of(item)
    if not any(isinstance(value, str | int | float) for value in mine.values()) or any(
        picture(item) == picture(other) for other in given
    ):
        return 0
    for at, other in enumerate(map(fields_of, given), 1):
        is_part = all(name in other and picture(other[name]) == picture(value) for name, value in mine.items())
        if is_part and not mine.keys() >= {*named(other)}:
            return at
    return 0


def _of_many(entry: ItemCases, fits: list[int], given: list[Any]) -> list[_Chosen]:
    """Return what is played on items that one entry selects, each at its depth."""
    whole = spread(fits, FEW)
    has_gold = any(case.name == GOLD and case.of is not None for case in entry.cases)
    rest = [number for number in fits if number not in whole] if has_gold else []
    some = with_new_traits(entry.cases, given, rest, whole, SOME) or spread(rest, SOME)
    rest = [number for number in rest if number not in some]
    rare = with_new_traits(entry.cases, given, rest, [*whole, *some], MANY)
    alone = list(dict.fromkeys([*rare, *scattered(spread(rest, MANY))]))
    depths = [(0, whole), (1, some), (2, alone)]
    return [
        _Chosen(
            entry=entry,
            item=given[number],
            label=f"training item {number}",
            others=tuple(given[other] for other in spread([other for other in fits if other != number], OTHERS)),
            depth=depth,
            turn=turn,
        )
        for depth, numbers in depths
        for turn, number in enumerate(numbers)
    ]
