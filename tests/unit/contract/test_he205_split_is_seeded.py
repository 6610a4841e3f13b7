"""HE205: two setups give the same items in the same order."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_hermes_env.contract.rules.he205_split_is_seeded import dynamic
from pytest_hermes_env.contract.verdict import Outcome, Verdict
from pytest_hermes_env.play.scenario import ItemSeen, Scenario
from pytest_hermes_env.source.finding import Finding


def again(first: dict[str, str], second: dict[str, str], error: str = ""):
    """Return what was seen where two setups gave items with these keys and prompts."""

    def items(rows: dict[str, str]) -> tuple[ItemSeen, ...]:
        return tuple(ItemSeen(value=None, key=key, prompt=prompt) for key, prompt in rows.items())

    scenarios = {
        "items": Scenario(name="items", items=items(first)),
        "setup_again": Scenario(name="setup_again", items=items(second), error=error),
    }
    return SimpleNamespace(
        scenario=scenarios.__getitem__,
        without_items=lambda: None if first else Verdict.not_applicable("none"),
        finding=lambda message, method, **rest: Finding(message=message, path="env.py", line=3, **rest),
    )


@pytest.mark.parametrize(
    ("seen", "outcome"),
    [
        (again({"a": "A", "b": "B"}, {"a": "A", "b": "B"}), Outcome.PASSED),
        (again({"a": "A", "b": "B"}, {"b": "B", "a": "A"}), Outcome.FAILED),
        (again({"id 1": "A", "id 2": "B"}, {"id 3": "A", "id 4": "B"}), Outcome.PASSED),
        (again({"a": "Guess", "b": "Guess"}, {"b": "Guess", "a": "Guess"}), Outcome.FAILED),
        (again({"a": "A", "b": "B"}, {"b": "B"}, error="IndexError"), Outcome.FAILED),
        (again({"a": "A"}, {}, error="IndexError"), Outcome.NOT_EXERCISED),
        (again({}, {}), Outcome.NOT_APPLICABLE),
    ],
    ids=["same", "shuffled", "fresh ids", "one prompt for all", "ended early", "broken", "none"],
)
def test_two_setups_give_the_same_items(seen, outcome):
    """By their prompts where these tell items apart, else by the items themselves; where there are none, nothing has passed."""
    assert dynamic(seen).outcome is outcome
