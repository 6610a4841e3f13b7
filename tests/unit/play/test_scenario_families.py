"""Families that need no model, on a bare environment: what they freeze."""

from __future__ import annotations

import asyncio
import random
import socket
from typing import Any

import pytest

from pytest_hermes_env.play.scenarios import buffers
from pytest_hermes_env.play.scenarios import items as items_module
from pytest_hermes_env.play.scenarios.buffers import PROBE, wandb_logs
from pytest_hermes_env.play.scenarios.items import offline_setup, second_setup, training_items

from .bare import HermesAgentBaseEnv, bare_stage


class Counting(HermesAgentBaseEnv):
    """Gives this many items, then begins again or ends."""

    items: Any = ({"word": "a"}, {"word": "b"}, {"word": "c"})
    is_endless = True
    taken = 0

    async def get_next_item(self) -> Any:
        """Return the next one."""
        self.taken += 1
        if not self.is_endless and self.taken > len(self.items):
            return None
        return dict(self.items[(self.taken - 1) % len(self.items)])


def played(family: Any, env: Any) -> Any:
    """Play a family on an environment, and return its records."""
    stage = bare_stage(env, names=tuple(family.scenarios))
    asyncio.run(family.play(stage))
    return stage.scenarios


def test_items_are_taken_until_the_first_one_comes_again() -> None:
    """And a few more; each has its prompt."""
    record = played(training_items, Counting())["items"]

    assert [item.prompt for item in record.items] == [f"Print {word}" for word in "abcabca"]
    assert record.note == "the first item was returned again after 3"


def test_items_may_come_to_an_end() -> None:
    """The note says after how many."""
    record = played(training_items, Counting(is_endless=False))["items"]

    assert (len(record.items), record.note) == (3, "get_next_item returned only None after 3 items")


def test_items_that_never_repeat_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a number of them."""
    monkeypatch.setattr(items_module, "MOST", 5)

    record = played(training_items, Counting(items=[{"word": str(number)} for number in range(9)]))["items"]

    assert (len(record.items), record.note) == (5, "stopped after 5 items, without the first one being returned again")


class Prompting(Counting):
    """Spoils what it is given."""

    def format_prompt(self, item: Any) -> str:
        """Change the item, or fail."""
        if item["word"] == "b":
            raise KeyError("question")
        item["word"] += "!"
        return item["word"]


def test_what_formatting_does_to_an_item_is_recorded() -> None:
    """The item as it was, the prompt, whether it was changed, and what was raised."""
    record = played(training_items, Prompting(items=({"word": "a"}, {"word": "b"}), is_endless=False))["items"]

    assert [(item.value, item.prompt, item.error, item.is_changed) for item in record.items] == [
        ({"word": "a"}, "a!", "", True),
        ({"word": "b"}, None, "KeyError: 'question'", False),
    ]


class Shuffling(Counting):
    """Draws from the shared generator."""

    async def setup(self) -> None:
        """Draw."""
        self.items = [{"word": str(random.random())}]


def test_a_second_setup_finds_another_state_of_the_generators() -> None:
    """A split that is not seeded shows."""
    env = Shuffling()
    record = played(second_setup, env)["setup_again"]
    random.seed(items_module.SEED)
    expected = str(random.random())

    assert {item.prompt for item in record.items} == {f"Print {expected}"}


class Online(HermesAgentBaseEnv):
    """Asks two machines."""

    async def setup(self) -> None:
        """One by its name, caught, and one by its address."""
        try:
            socket.getaddrinfo("items.example.invalid", 443)
        except socket.gaierror:
            with socket.socket() as connection:
                connection.connect(("192.0.2.1", 443))


def test_without_a_network_the_hosts_are_named() -> None:
    """The errors are those of a machine without a network."""
    record = played(offline_setup, Online())["setup_offline"]

    assert record.error == "ConnectionError: no network in this scenario: 192.0.2.1 was requested"
    assert record.note == "requested items.example.invalid, 192.0.2.1"


class Logging(HermesAgentBaseEnv):
    """Logs and forgets."""

    async def setup(self) -> None:
        """Begin empty."""
        self.calls: list[Any] = []

    async def collect_trajectories(self, item: Any) -> Any:
        """Note the group."""
        self.calls.append("group")
        return None, []

    async def wandb_log(self, *args: Any) -> None:
        """Note the metrics."""
        self.calls.append(args)

    async def evaluate(self) -> None:
        """Note the evaluation."""
        self.calls.append("evaluate")


def test_logging_is_called_with_full_and_with_empty_buffers() -> None:
    """A group before each call that should find something."""
    env = Logging()
    played(wandb_logs, env)

    probe = (PROBE,)
    assert env.calls == ["group", probe, probe, "group", (None,), ()]


def test_other_buffers_are_of_the_same_form() -> None:
    """Numbers move, series grow, mappings and records are followed; flags and texts stay."""
    record = type("Record", (), {})()
    record.count, record.name = 1, "x"

    other = buffers._other({"n": 2, "mean": 0.5, "on": True, "series": [1, 2], "deep": {"r": record}}, 4)

    assert other == {"n": 5, "mean": 0.5 + buffers.SHIFT, "on": True, "series": [1, 2, 5, 8, 11], "deep": {"r": record}}
    assert vars(record) == {"count": 4, "name": "x"}
