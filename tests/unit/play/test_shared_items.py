"""A place that holds one item of several is found; data, and places with an entry for each, are not."""

from __future__ import annotations

from typing import Any

from pytest_hermes_env.play.scenario import Sighting
from pytest_hermes_env.play.scenarios.concurrent import SharedItems

from .bare import HermesAgentBaseEnv

ITEMS: list[dict[str, Any]] = [{"file": "first.txt", "rows": [1]}, {"file": "second.txt", "rows": [2]}]


def test_a_place_with_one_item_is_found() -> None:
    """Whole or in part, also inside of an object; what held items before rollouts is data."""
    env = HermesAgentBaseEnv(items=ITEMS, first=ITEMS[0])
    shared = SharedItems(env, ITEMS)
    env.current, env.by_task, env.desk = ITEMS[1], {"a": "first.txt", "b": "second.txt"}, {"path": ["first.txt"]}

    shared.look()

    assert sorted((seen.name, seen.words) for seen in shared.sightings) == [
        ("current", (shared._keys[1],)),
        ("desk", (shared._keys[0],)),
    ]
    assert all(
        seen == Sighting(where="attribute", name=seen.name, words=seen.words, is_of_an_item=True) for seen in shared.sightings
    )


def test_only_the_first_look_counts() -> None:
    """Rewards that run later may use the place and leave it."""
    env = HermesAgentBaseEnv()
    shared = SharedItems(env, ITEMS)
    shared.look()
    env.current = ITEMS[0]
    shared.look()

    assert shared.sightings == ()


def test_equal_items_show_nothing() -> None:
    """Whose item it is cannot be told."""
    env = HermesAgentBaseEnv()
    shared = SharedItems(env, [ITEMS[0], dict(ITEMS[0])])
    env.current = ITEMS[0]

    shared.look()

    assert shared.sightings == ()
