"""Every sandbox answers like hermes: the same calls have the same shapes and the same visible outcomes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .cases import CASES, WEB, Case
from .worlds import WORLDS, differences, fake, outcomes, shape

NOT_COMPARED = {("fake_below_the_layer", "reading a directory")} | {("local", case.name) for case in WEB}
"""Below a double, the layer lets its read_file tool name a directory; LocalSandbox refuses calls that leave the machine."""
PAIRS = [(case, world) for case in CASES for world in WORLDS if (world, case.name) not in NOT_COMPARED]


@pytest.mark.parametrize(("case", "world"), PAIRS, ids=lambda one: one if isinstance(one, str) else one.name)
def test_answers_equal_those_of_hermes(case: Case, world: str, real: Callable[[Case], list[Any]], tmp_path: Path) -> None:
    """The double's answers equal hermes' own, key by key and value by value."""
    expected = real(case)

    seen = outcomes(case, WORLDS[world], tmp_path)
    if case.has_own_words:
        expected, seen = shape(expected), shape(seen)

    assert differences(expected, seen) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_missing_key_is_noticed(case: Case, tmp_path: Path) -> None:
    """Removing any key from any answer of the fake is reported as a difference."""
    answers = outcomes(case, fake, tmp_path)

    unnoticed = [key for key, poorer in _each_without_one_key(answers) if not differences(answers, poorer)]

    assert unnoticed == []


def _each_without_one_key(answers: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    for place, answer in enumerate(answers):
        for key in answer if isinstance(answer, dict) else ():
            poorer = copy.deepcopy(answers)
            del poorer[place][key]
            yield f"{place}.{key}", poorer
