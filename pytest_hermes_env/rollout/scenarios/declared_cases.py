"""The author's own cases, and the automatic ones beside them: one rollout each, the reward of each is a rung of the ladder."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.rollout.buffers import picture
from pytest_hermes_env.rollout.scenario import Scenario
from pytest_hermes_env.rollout.scenario_names import CASES
from pytest_hermes_env.rollout.scenarios.family import Family
from pytest_hermes_env.rollout.unavailable import Cause, Unavailable

if TYPE_CHECKING:
    from pytest_hermes_env.rollout.cases import ItemCases, Rung
    from pytest_hermes_env.rollout.stage import Stage

__all__ = ["FAMILY"]

FEW = 3
"""How many items a predicate may choose, at most."""
MOST = 20
"""How many training items are looked at for a predicate."""


async def play(stage: Stage) -> None:
    """Play each case of each item, then what is automatic."""
    from pytest_hermes_env.rollout.case_player import play_item  # noqa: PLC0415 - loads the mock model

    if not await stage.prepare("setup of the cases"):
        return
    declared = stage.cases.items if stage.cases is not None else ()
    given: list[Any] = []

    async def take() -> None:
        await _take(stage, declared, given)

    trouble = (await stage.play("items of the cases", take)).error if stage.item is not None else ""
    chosen, missing = _chosen(declared, given, trouble)
    if not chosen and not missing:
        if not given:
            stage.skip(Unavailable(Cause.NOTHING_TO_TRAIN))
            return
        chosen = [(None, given[0], "training item 0")]
    rungs: list[Rung] = list(missing)
    world = stage.world
    for entry, item, label in chosen:
        rungs += await play_item(stage, entry, item, label)
    stage.world = world
    stage.scenarios[CASES] = Scenario(name=CASES, rungs=tuple(rungs))


async def _take(stage: Stage, declared: tuple[ItemCases, ...], items: list[Any]) -> None:
    """Add the first training items, as many as the declaration may speak of; those before one that is not given are kept."""
    indices = [entry.which for entry in declared if entry.kind == "index"]
    wanted = MOST if any(entry.kind == "where" for entry in declared) else 1
    wanted = max([wanted, *(index + 1 for index in indices)])
    items.append(stage.item)
    first = repr(picture(stage.item))
    while len(items) < wanted:
        item = await stage.next_item()
        if item is None or repr(picture(item)) == first:
            break
        items.append(item)


def _chosen(
    declared: tuple[ItemCases, ...], given: list[Any], trouble: str
) -> tuple[list[tuple[ItemCases | None, Any, str]], list[Rung]]:
    """Return which cases are played on which items, and a rung that says so for each entry that fits none.

    ``trouble`` is what get_next_item raised before all items were there: then an entry may speak of one that never came.
    """
    from pytest_hermes_env.rollout.cases import GOLD, Rung  # noqa: PLC0415 - beside its use

    chosen: list[tuple[ItemCases | None, Any, str]] = []
    missing: list[Rung] = []
    for entry in declared:
        problem, cause = "", trouble
        if entry.kind == "item":
            chosen.append((entry, entry.which, entry.label))
        elif entry.kind == "index" and entry.which < len(given):
            chosen.append((entry, given[entry.which], entry.label))
        elif entry.kind == "index":
            problem = f"there is no training item {entry.which}: get_next_item gives {len(given)} different ones"
        else:
            spoken_for = {other.which for other in declared if other.kind == "index"}
            try:
                fits = [
                    (entry, item, f"training item {number}")
                    for number, item in enumerate(given)
                    if number not in spoken_for and entry.which(item)
                ]
            except Exception as error:  # noqa: BLE001 - the author's function; the finding names it
                fits, problem, cause = [], f"the predicate of {entry.label} raised {type(error).__name__}: {error}", ""
            if not fits and not problem:
                problem = f"{entry.label} fits none of the first {len(given)} training items"
            chosen += fits[:FEW]
        if problem:
            blank = Rung(name=GOLD, item=entry.label, is_automatic=False, path=entry.path, line=entry.line)
            reason = f"{problem}; then it failed: {cause}"
            missing.append(replace(blank, unavailable=reason) if cause else replace(blank, problem=problem))
    return chosen, missing


FAMILY = Family(
    name="cases",
    scenarios={CASES: "one rollout for each transcript that the author declares, and for four that need no author"},
    play=play,
)
