"""Whether a reward changes its item."""

from __future__ import annotations

import copy
import json

import pytest

from pytest_hermes_env.play.probing.trial import watched

ITEM = {"name": "a", "tags": ["x", "y"], "deep": {"n": 1}}

CHANGES = {
    "the same value again": lambda item: item.__setitem__("name", "a"),
    "pop": lambda item: item.pop("none", None),
    "a list inside": lambda item: item["tags"].sort(),
    "a dict inside": lambda item: item["deep"].update(n=1),
    "or-assignment": lambda item: item.__ior__({"name": "a"}),
}

READS = {
    "reading": lambda item: (item["name"], item.get("x"), list(item), item["tags"][0], len(item["deep"])),
    "a sorted copy": lambda item: sorted(item["tags"]),
    "a changed copy": lambda item: dict(item).update(name="b"),
    "a changed shallow copy": lambda item: copy.copy(item).update(name="b"),
    "a changed deep copy": lambda item: copy.deepcopy(item)["tags"].append("z"),
    "JSON": json.dumps,
}


@pytest.mark.parametrize("act", CHANGES.values(), ids=CHANGES)
def test_every_change_is_noted(act):
    noted = []

    act(watched(ITEM, lambda: noted.append("changed")))

    assert noted == ["changed"]


@pytest.mark.parametrize("act", READS.values(), ids=READS)
def test_reads_and_copies_are_none(act):
    noted = []

    item = watched(ITEM, lambda: noted.append("changed"))
    act(item)

    assert (noted, item) == ([], ITEM)
