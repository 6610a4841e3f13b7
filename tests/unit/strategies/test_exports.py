"""The public names of the room."""

from __future__ import annotations

from pytest_hermes_env import strategies


def test_the_public_names_are_these() -> None:
    """The list is sorted, and each name exists."""
    names = ["agent_results", "check_reward"]

    assert (strategies.__all__, [name for name in names if hasattr(strategies, name)]) == (names, names)
