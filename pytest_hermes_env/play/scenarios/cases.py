"""The author's cases and the automatic ones: one rollout each, whose reward is a rung of the ladder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pytest_hermes_env.play.buffers import picture
from pytest_hermes_env.play.cases.playing import PlayedCase, play_item
from pytest_hermes_env.play.cases.values import GOLD, Cases, ItemCases
from pytest_hermes_env.play.scenario import CASES, Cause, Rung, Scenario, Unavailable
from pytest_hermes_env.play.scenarios.family import family
from pytest_hermes_env.play.stage import Stage

FEW = 3
"""The most items that a predicate selects."""
MOST = 20
"""The most training items that a predicate is tried on."""


@family(
    {CASES: "one rollout for each transcript that the author declares, and for four that need no author"},
    needs="nothing",
)
async def played_cases(stage: Stage) -> None:
    """Play each case of each item, then the automatic cases."""
    if not await stage.prepare("setup of the cases"):
        return
    assert isinstance(stage.cases, Cases | None)
    declared = stage.cases.items if stage.cases is not None else ()
    given: list[Any] = []

    async def take() -> None:
        await _take(stage, declared, given)

    has_items = stage.item is not None  # where it has none, other rules report why
    trouble = (await stage.play("items of the cases", take)).error if has_items else str(stage.without_item or "")
    chosen, missing = _chosen(declared, given, trouble)
    if not chosen and not missing:
        if not given:
            stage.skip(stage.without_item or Unavailable(Cause.NOT_REACHED, "an item"))
            return
        chosen = [(None, given[0], "training item 0")]
    played: list[PlayedCase] = [PlayedCase(rung=rung) for rung in missing]
    sandbox = stage.sandbox
    for entry, item, label in chosen:
        played += await play_item(stage, entry, item, label)
    stage.sandbox = sandbox
    stage.scenarios[CASES] = Scenario(
        name=CASES,
        rungs=tuple(case.rung for case in played),
        played=tuple(record for case in played for record in case.records),
    )


async def _take(stage: Stage, declared: tuple[ItemCases, ...], items: list[Any]) -> None:
    """Append the first training items, as many as the declaration may refer to; items before a failure are kept."""
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
    """Return which cases are played on which items, and a rung with the problem for each entry that matches none.

    ``trouble`` is what get_next_item raised before all items came, in which case an entry may refer to a missing item.
    """
    chosen: list[tuple[ItemCases | None, Any, str]] = []
    missing: list[Rung] = []
    for entry in declared:
        problem, cause = "", trouble
        if entry.kind == "item":
            chosen.append((entry, entry.which, entry.label))
        elif entry.kind == "index" and entry.which < len(given):
            chosen.append((entry, given[entry.which], entry.label))
        elif entry.kind == "index":
            problem = f"there is no training item {entry.which}: get_next_item returns {len(given)} different ones"
        else:
            indexed = {other.which for other in declared if other.kind == "index"}
            try:
                fits = [
                    (entry, item, f"training item {number}")
                    for number, item in enumerate(given)
                    if number not in indexed and entry.which(item)
                ]
            except Exception as error:  # noqa: BLE001 - the author's function; the finding names it
                fits, problem, cause = [], f"the predicate of {entry.label} raised {type(error).__name__}: {error}", ""
            if not fits and not problem:
                problem = f"{entry.label} matches none of the first {len(given)} training items"
            chosen += fits[:FEW]
        if problem:
            blank = Rung(name=GOLD, item=entry.label, is_automatic=False, path=entry.path, line=entry.line)
            reason = f"{problem}; then it failed: {cause}"
            missing.append(replace(blank, unavailable=reason) if cause else replace(blank, problem=problem))
    return chosen, missing
