"""Searches for what a verifier pays without good work: what an agent leaves behind, and programs that are wrong in one place."""

from __future__ import annotations

import dataclasses

from pytest_hermes_env.errors import shorten
from pytest_hermes_env.play.scenario import TAMPERING, WRONG_PROGRAMS, Cause, Scenario, Unavailable
from pytest_hermes_env.play.scenarios.family import family
from pytest_hermes_env.play.scenarios.roles import declared_with_gold, items_with_gold, worse_of
from pytest_hermes_env.play.stage import Stage
from pytest_hermes_env.play.tampering.search import Search
from pytest_hermes_env.play.wrong_programs import WrongPrograms

MOST, LONGEST = 12, 60
"""Attacks that are paid, of a full search, which an effort above 1 asks for, and characters of an item's prompt that are shown."""
PROGRAMS = (30, 10, 10)
"""Wrong programs that are played on each of the first items."""


@family(
    {TAMPERING: "gold is played, then rollouts that do none of its work and leave behind what could make the verifier pay"},
    needs="item",
    is_alone=True,
)
async def tampering(stage: Stage) -> None:
    """Search on the first training item that has gold, until one attack is paid."""
    if not hasattr(stage.sandbox, "on"):
        stage.skip(Unavailable(Cause.NOT_IN_MEMORY))
        return
    plan = stage.attack
    items = [(item, gold) for _, gold, item in await items_with_gold(stage, 1, plan.item)]
    found = items[0] if items else declared_with_gold(stage.cases) if plan.item is None else None
    label = "a training item" if plan.item is None else f"training item {plan.item}"
    if found is None:
        none = Unavailable(Cause.EARLIER_FAILURE, f"{label} has no gold, or there is no such item")
        stage.skip(Unavailable(Cause.NO_GOLD, label) if plan.item is None else none)
        return
    item, gold = found
    is_full = stage.effort > 1
    search = Search(
        stage=stage,
        item=item,
        label=label,
        gold=gold,
        most=MOST if is_full else 1,
        is_full=is_full,
        worse=worse_of(stage.cases, item),
    )
    sandbox = stage.sandbox
    rungs = await search.run()
    stage.sandbox = sandbox
    before = f", {search.remembered} of an earlier search" if search.remembered else ""
    paid = f"{len(search.paid)} kinds of attack were" if search.paid else "no attack was"
    note = f"{paid} paid ({search.played} rollouts, with {len(search.families)} kinds of attack{before})"
    record = Scenario(name=TAMPERING, rungs=() if search.note else tuple(rungs), note=search.note or note)
    why = Unavailable(Cause.EARLIER_FAILURE, search.why_none) if search.why_none else None
    if why is None and search.left:
        why = Unavailable(Cause.OUT_OF_TIME, plan.why_over(f"{search.left} attacks"))
    stage.scenarios[TAMPERING] = dataclasses.replace(record, unavailable=why)


@family(
    {WRONG_PROGRAMS: "programs like gold's that are wrong in one place: which of them the verifier pays like gold"},
    needs="item",
    is_alone=True,
)
async def wrong_programs(stage: Stage) -> None:
    """Search on the first training items that have gold."""
    if stage.effort == 1 or not hasattr(stage.sandbox, "on"):
        stage.skip(Unavailable(Cause.NO_EFFORT if stage.effort == 1 else Cause.NOT_IN_MEMORY))
        return
    sandbox, rungs, notes, left = stage.sandbox, [], [], 0
    plan = stage.attack
    taken = await items_with_gold(stage, len(PROGRAMS) if plan.item is None else 1, plan.item)
    for number, (prompt, gold, item) in enumerate(taken, 1):
        label = f"item {number} of those with gold, {shorten(prompt, LONGEST)!r}"
        search = WrongPrograms(stage=stage, item=item, label=label, gold=gold, most=PROGRAMS[number - 1], has_kinds=number == 1)
        rungs += await search.run()
        notes += search.notes
        left += search.left
    stage.sandbox = sandbox
    why = Unavailable(Cause.OUT_OF_TIME, plan.why_over(f"{left} wrong programs")) if left else None
    note = "; ".join(dict.fromkeys(notes))
    stage.scenarios[WRONG_PROGRAMS] = Scenario(name=WRONG_PROGRAMS, rungs=tuple(rungs), note=note, unavailable=why)
