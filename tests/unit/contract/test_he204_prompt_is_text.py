"""HE204: prompts show all of an item, or say that they do not."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_hermes_env.contract.rules import find_rule
from pytest_hermes_env.contract.rules.he204_prompt_is_text import _cut
from pytest_hermes_env.contract.run.single_rule import contract_of
from pytest_hermes_env.play.scenario import ItemSeen

from ..play.small_env import SmallEnv, line_of  # noqa: TID252 - another room has the small environment

WORDS = ["oak", "elm", "fir", "ash", "yew", "bay"]


class PoppingEnv(SmallEnv):
    """Takes a part out of the item."""

    def format_prompt(self, item: Any) -> str:
        """Ask."""
        return f"Print {item.pop('word')}"


class AddingEnv(SmallEnv):
    """Adds a part to the item."""

    def format_prompt(self, item: Any) -> str:
        """Ask."""
        item["asked"] = f"Print {item['word']}"
        return str(item["asked"])


@pytest.mark.parametrize(
    ("env_class", "told", "fix"),
    [
        (PoppingEnv, "format_prompt changed the item: `item.pop('word')`", "Write `item['word']`: "),
        (
            AddingEnv,
            "format_prompt changed the item: `item['asked'] = f\"Print {item['word']}\"`",
            "Work on a copy of the item",
        ),
    ],
)
def test_what_changes_the_item_is_named(env_class: type[SmallEnv], told: str, fix: str) -> None:
    """At its line, with what to write instead."""
    (finding,) = contract_of(env_class, [find_rule("HE204")]).result(find_rule("HE204")).findings

    assert (finding.message, finding.fix.startswith(fix)) == (told, True)
    assert finding.line == line_of(env_class.format_prompt, 'f"Print')


def seen(cut: int, *, of_text: bool) -> list[ItemSeen]:
    """Return items of growing length, with prompts that show so many of their entries or characters."""
    items = []
    for size in range(3, 12):
        rows = [f"{WORDS[(size * 5 + at) % 6]} {size * at}" for at in range(size)]
        text = f"Story {size}: " + "; ".join(rows * 3)
        shown = text[:cut] if of_text else "\n".join(rows[:cut])
        items.append(
            ItemSeen(
                value={"rows": rows, "text": text, "answer": str(size)},
                key=str(size),
                prompt=f"Add up:\n{shown}\nWrite it down.",
            )
        )
    return items


@pytest.mark.parametrize(
    ("cut", "of_text", "message"),
    [
        (6, False, "format_prompt shows 6 entries of rows, and no more of 11: it says nothing of the rest"),
        (99, False, ""),
        (60, True, "format_prompt shows the first 60 characters of text, and says nothing of the rest"),
        (10_000, True, ""),
        (0, False, ""),
    ],
)
def test_what_a_limit_cuts_off_is_told(cut: int, of_text: bool, message: str) -> None:
    """Short items are whole, so that nobody sees it in the first ones."""
    assert _cut(seen(cut, of_text=of_text)) == message


def test_prompts_that_grow_otherwise_are_whole() -> None:
    """Several entries may stand in a line."""
    rows = [["x"] * size for size in range(1, 12)]
    items = [ItemSeen(value={"rows": one}, key="k", prompt="\n".join(map(str, one[::3]))) for one in rows]

    assert _cut(items) == ""


def test_what_is_hidden_on_purpose_may_be_shown_in_part() -> None:
    """The first tests are examples, and the others decide."""
    items = [ItemSeen(value={"tests": one.value["rows"]}, key=one.key, prompt=one.prompt) for one in seen(6, of_text=False)]

    assert _cut(items) == ""


def test_a_length_with_several_prompts_shows_no_limit() -> None:
    """Something else decides how many lines there are."""
    items = [*seen(6, of_text=False), ItemSeen(value={"rows": ["x"] * 4}, key="k", prompt="Add up:")]

    assert _cut(items) == ""
