"""The walks through the code name existing modules, and enter each room once."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WALKS = re.split(r"^## ", (ROOT / "docs" / "walks.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
STEP = re.compile(r"^\| (?P<step>\d+)\w? \| (?P<room>\w+) \| `(?P<path>[^`]+)` \|", re.MULTILINE)

CALLS_AND_RETURNS = {"environments", "contract"}
"""Rooms that call the rooms below them and continue with their results."""


def test_there_are_three_walks():
    assert [walk.partition("\n")[0] for walk in WALKS] == [
        "An item through a rollout",
        "A class from `--hermes-env` to a verdict",
        "A request through a cassette",
    ]


@pytest.mark.parametrize("walk", WALKS, ids=["rollout", "verdict", "cassette"])
def test_each_step_names_a_module_of_its_room(walk: str):
    steps = STEP.findall(walk)

    assert len(steps) >= 7
    for _, room, path in steps:
        assert (ROOT / path).exists(), path
        assert path.startswith("environments/" if room == "environments" else f"pytest_hermes_env/{room}"), path


@pytest.mark.parametrize("walk", WALKS, ids=["rollout", "verdict", "cassette"])
def test_no_room_is_entered_twice(walk: str):
    """Only a calling room appears again, after the rooms that it called."""
    rooms = [room for room, _ in itertools.groupby(room for _, room, _ in STEP.findall(walk))]
    visited_again = {room for room in rooms if rooms.count(room) > 1}

    assert visited_again <= CALLS_AND_RETURNS
