"""A short search for what an agent that does none of the work can leave in its sandbox so that the verifier pays."""

from __future__ import annotations

import dataclasses

from pytest_hermes_env.play.scenario import TAMPERING, Cause, Scenario, Unavailable
from pytest_hermes_env.play.scenarios.family import family
from pytest_hermes_env.play.scenarios.roles import items_with_gold
from pytest_hermes_env.play.stage import Stage
from pytest_hermes_env.play.tampering.search import Search


@family(
    {TAMPERING: "gold is played, then rollouts that do none of its work and leave behind what could make the verifier pay"},
    needs="item",
    is_alone=True,
)
async def tampering(stage: Stage) -> None:
    """Search on the first training item that has gold, until one attack is paid."""
    items = await items_with_gold(stage)
    if not items:
        stage.skip(Unavailable(Cause.NO_GOLD, "a training item"))
        return
    _, gold, item = items[0]
    search = Search(stage=stage, item=item, label="a training item", gold=gold)
    sandbox = stage.sandbox
    rungs = await search.run()
    stage.sandbox = sandbox
    note = search.note or f"{search.played} rollouts, with {len(search.families)} kinds of attack"
    found = Scenario(name=TAMPERING, rungs=tuple(rungs), note=note)
    why = Unavailable(Cause.EARLIER_FAILURE, search.why_none) if search.why_none else None
    stage.scenarios[TAMPERING] = dataclasses.replace(found, unavailable=why)
