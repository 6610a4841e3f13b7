"""Which items are played: spread over all, and those first that have what no item before them had.

Place in the flow: the scenario `cases` chooses items; a rare kind, value or length is where a reward is wrong on few of them.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from typing import Any, TypeVar

from pytest_hermes_env.play.cases.content import kinds
from pytest_hermes_env.play.cases.slots import Work
from pytest_hermes_env.play.cases.values import GOLD, Case
from pytest_hermes_env.play.item_texts import pairs_of

Item = TypeVar("Item")
FEW_VALUES = 12
"""A field with at most so many different values over all items names kinds of items."""


def scattered(items: list[Item]) -> list[Item]:
    """Return the items in an order of which any beginning is spread over all."""
    bits = max(1, (len(items) - 1).bit_length())
    return [items[at] for at in sorted(range(len(items)), key=lambda number: int(f"{number:0{bits}b}"[::-1], 2))]


def with_new_traits(cases: tuple[Case, ...], given: list[Any], items: list[int], known: list[int], count: int) -> list[int]:
    """Return up to ``count`` of the numbers of items, each the one with most traits that neither ``known`` ones nor those before it have."""
    traits = _traits(cases, given, [*items, *known])
    seen = {trait for number in known for trait in traits[number]}
    chosen: list[int] = []
    while len(chosen) < count:
        best = max(items, key=lambda number: len(traits[number] - seen), default=-1)
        if best < 0 or traits[best] <= seen:
            break
        chosen.append(best)
        seen |= traits[best]
    return chosen


def _traits(cases: tuple[Case, ...], given: list[Any], numbers: list[int]) -> dict[int, set[object]]:
    """Return of each item the kinds of its gold's content, its values that few items have, and the sizes and signs of its other values."""
    pairs = {number: pairs_of(given[number]) for number in numbers}
    values: dict[str, set[str]] = defaultdict(set)
    for each in pairs.values():
        for key, text in each:
            values[key].add(text)
    return {
        number: {
            *_kinds_of_gold(cases, given[number]),
            *(
                (key, text if len(values[key]) <= FEW_VALUES else (text[:1] == "-", len(text).bit_length()))
                for key, text in each
            ),
        }
        for number, each in pairs.items()
    }


def _kinds_of_gold(cases: tuple[Case, ...], item: Any) -> frozenset[tuple[str, str, bool]]:
    for case in cases:
        if case.name == GOLD and case.of is not None:
            with contextlib.suppress(Exception):  # the gold case itself reports it
                return frozenset(kind for slot in Work(turns=case.of(item).turns).slots() for kind in kinds(slot.text))
    return frozenset()
