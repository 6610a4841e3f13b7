"""The texts and patterns of a reward's own code, and an answer made of them."""

from __future__ import annotations

import asyncio
import functools
import re
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_hermes_env.play.probing.free_rewards import canaries_of
from pytest_hermes_env.play.probing.reward_constants import fields_unread, reward_constants
from pytest_hermes_env.play.probing.trial import RewardRunner
from pytest_hermes_env.results import agent_result

FLAG = re.compile(r"FLAG=(\w+-\d{4})")
WORDS = ("verified", "checked")
DATA = [f"word {number}" for number in range(50)]


def kept(function: Any) -> Any:
    """Wrap a function as decorators do."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def flag_of(text: str) -> str | None:
    """Return the flag."""
    found = FLAG.search(text)
    return found[1] if found else None


class Reader:
    """A helper that the reward reaches through an object."""

    SCORE = re.compile(r"SCORE \[\d+\]")

    def items(self) -> list[str]:
        """Return items."""
        return ["an item's answer"]


class Believing:
    """A reward that believes a word, where the answer has the right form."""

    @kept
    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        """Grade."""
        answer = result.messages[-1]["content"] or ""
        return self.grade(answer, item) if re.search(r"\bDONE:\s+\d+", answer) else 0.0

    def grade(self, answer: str, item: Any) -> float:
        """Look for a word, and for an answer among the data."""
        return 1.0 if flag_of(answer) and any(word in answer for word in WORDS) else float(answer in DATA)


class Strict(Believing):
    """As the other, and compares the flag with the item's."""

    def grade(self, answer: str, item: Any) -> float:
        """Compare."""
        return float(flag_of(answer) == item["flag"])


def test_texts_and_shortest_matches_come_from_all_that_the_reward_calls():
    """Docstrings and long lists of data are left out."""
    words = reward_constants(Believing, Believing.compute_reward)

    assert {"verified", "checked", "content"} <= set(words.texts)
    assert not {"Grade.", "Look for a word, and for an answer among the data.", "word 1"} & set(words.texts)
    assert "an item's answer" not in words.texts
    forms = [re.compile(r"DONE:\s+\d"), FLAG, Reader.SCORE]
    assert [bool(form.search(words.claim)) for form in forms] == [True, True, True]
    assert reward_constants(Believing, len).claim == ""


@pytest.mark.parametrize(("env", "earned"), [(Believing(), 1.0), (Strict(), 0.0)])
def test_an_answer_of_the_rewards_own_texts(env: Any, earned: float):
    """It earns what the reward gives to words alone."""
    runner = RewardRunner(env, {"flag": "secret-1234"}, asked=lambda: 0)
    start = agent_result.user("Find the flag.")
    worked = start.call("terminal", command="true").returns({"output": "", "exit_code": 0})
    canaries = asyncio.run(canaries_of(runner, start, worked, SimpleNamespace(), "Find the flag."))

    found = {canary.name: canary.reward for canary in canaries}
    assert found["an answer of the texts in the reward's own code"] == earned


class Reads:
    """A reward that reads a field by its key, one by an attribute, and one in a helper."""

    def compute_reward(self, item: Any) -> bool:
        """Read them."""
        return bool(item["wanted"] or item.limit or self.helper(item))

    def helper(self, item: Any) -> Any:
        """Read one more."""
        return item.get("more")


class TakesAll:
    """Hands the item on."""

    def compute_reward(self, item: Any) -> bool:
        """Give it to somebody; a variable has the name of a field."""
        wanted = str(item)
        return bool(wanted)


@pytest.mark.parametrize(("cls", "expected"), [(Reads, {"solution"}), (TakesAll, set())])
def test_fields_that_no_code_of_a_reward_names_are_not_read(cls: type, expected: set[str]) -> None:
    """Of one that names none, nobody knows."""
    assert fields_unread(cls, cls.compute_reward, ["wanted", "limit", "more", "solution"]) == expected  # type: ignore[attr-defined]
