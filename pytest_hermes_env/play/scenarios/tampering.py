"""A short search for what an agent that does none of the work can leave in its sandbox so that the verifier pays."""

from __future__ import annotations

import dataclasses

from pytest_hermes_env.play.scenario import TAMPERING, Cause, Scenario, Unavailable
from pytest_hermes_env.play.scenarios.family import family
from pytest_hermes_env.play.scenarios.roles import declared_with_gold, items_with_gold
from pytest_hermes_env.play.stage import Stage
from pytest_hermes_env.play.tampering.search import Search

MOST = 12
"""Attacks that are paid, of a full search, which an effort above 1 asks for."""


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
    items = [(item, gold) for _, gold, item in await items_with_gold(stage)]
    found = items[0] if items else declared_with_gold(stage.cases)
    if found is None:
        stage.skip(Unavailable(Cause.NO_GOLD, "a training item"))
        return
    item, gold = found
    is_full = stage.effort > 1
    search = Search(stage=stage, item=item, label="a training item", gold=gold, most=MOST if is_full else 1, is_full=is_full)
    sandbox = stage.sandbox
    rungs = await search.run()
    stage.sandbox = sandbox
    note = f"no attack was paid ({search.played} rollouts, with {len(search.families)} kinds of attack)"
    record = Scenario(name=TAMPERING, rungs=() if search.note else tuple(rungs), note=search.note or note)
    why = Unavailable(Cause.EARLIER_FAILURE, search.why_none) if search.why_none else None
    stage.scenarios[TAMPERING] = dataclasses.replace(record, unavailable=why)
