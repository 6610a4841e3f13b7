"""The public names of the room."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from pytest_hermes_env import strategies

SCHEMAS: Any = [
    {
        "type": "function",
        "function": {"name": "look", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}},
    }
]


def all_of(strategy: st.SearchStrategy[Any]) -> list[Any]:
    """Return what some draws give."""
    drawn: list[Any] = []

    def keep(value: Any) -> None:
        drawn.append(value)

    settings(max_examples=50, derandomize=True, database=None)(given(strategy)(keep))()
    return drawn


def test_the_public_names_are_these() -> None:
    """The list is sorted, and each name exists."""
    names = ["agent_results", "check_reward"]

    assert (strategies.__all__, [name for name in names if hasattr(strategies, name)]) == (names, names)


@pytest.mark.parametrize(
    ("strategy", "seen"),
    [
        (lambda: strategies.messages(max_turns=2), lambda drawn: drawn[-1]["role"]),
        (lambda: strategies.tool_calls(SCHEMAS), lambda drawn: (drawn["type"], drawn["function"])),
    ],
)
def test_a_former_name_works_with_a_warning(strategy: Any, seen: Any) -> None:
    """For one more release."""
    with pytest.warns(DeprecationWarning, match="will be removed in the next release: "):
        made = strategy()

    assert seen(find(made, lambda _: True, settings=settings(max_examples=5, database=None, phases=[Phase.generate]))) in (
        "assistant",
        ("function", {"name": "look", "arguments": "{}"}),
    )


@pytest.mark.parametrize(("valid", "is_valid"), [(True, {True}), (False, {False}), (None, {True, False})])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_former_tool_calls_are_valid_or_not(valid: bool | None, is_valid: set[bool]) -> None:
    """Whatever is drawn has arguments of the kind that was asked for."""
    calls = strategies.tool_calls(SCHEMAS, valid=valid)

    assert {call["function"]["arguments"] == "{}" for call in all_of(calls)} == is_valid


@pytest.mark.parametrize("name", ["scored_groups", "scripts", "tool_schemas"])
def test_a_name_that_went_says_what_takes_its_place(name: str) -> None:
    """In one sentence."""
    with pytest.raises(AttributeError, match=rf"^pytest_hermes_env\.strategies\.{name} was removed: \w.+\.$"):
        getattr(strategies, name)
