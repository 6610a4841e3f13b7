"""What a method remembers for itself is not taken for a buffer that training fills; what another one reads is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_hermes_env.play.buffers import snapshot
from pytest_hermes_env.play.memos import memos_of


class Remembering:
    """Keeps what it found by what it looked at."""

    def __init__(self) -> None:
        self.known: dict[str, float] = {}

    def reward(self, text: str) -> float:
        """Look it up."""
        if text not in self.known:
            self.known[text] = float(len(text))
        return self.known[text]


class Forgetting(Remembering):
    """Keeps a few."""

    def reward(self, text: str) -> float:
        """Begin anew when it is full."""
        if len(self.known) > 2:
            self.known.clear()
        return super().reward(text)


class Latest:
    """Keeps the last reward under a fixed key."""

    def __init__(self) -> None:
        self.known: dict[str, float] = {}

    def reward(self, text: str) -> float:
        """Note the largest."""
        self.known["reward"] = max(self.known.get("reward", 0.0), len(text))
        return self.known["reward"]


class ByItem:
    """Keeps each reward by its text, and another method looks one up."""

    def __init__(self) -> None:
        self.known: dict[str, float] = {}

    def reward(self, text: str) -> float:
        """Note it."""
        self.known[text] = self.known.get(text) or float(len(text))
        return self.known[text]

    def log(self, text: str = "") -> float | None:
        """Report one."""
        return self.known.get(text)


class Logging(Remembering):
    """Reports their mean."""

    def log(self) -> float:
        """Look at all."""
        return sum(self.known.values()) / len(self.known)


class Counting(Remembering):
    """Adds up."""

    def reward(self, text: str) -> float:
        """Count each."""
        self.known[text] = self.known.get(text, 0.0)
        self.known[text] += 1
        return self.known[text]


class Collecting(Remembering):
    """Has lists under its keys."""

    def reward(self, text: Any) -> float:
        """Add to one."""
        self.known[text].append(1)
        return 0.0


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Remembering, {"known"}),
        (Forgetting, {"known"}),
        (Latest, set()),
        (ByItem, set()),
        (Logging, set()),
        (Counting, set()),
        (Collecting, set()),
    ],
)
def test_what_is_only_looked_up_is_no_buffer(kind: type, expected: set[str]) -> None:
    """What is read as a whole, or grows by what is added to it, is one."""
    one = kind()

    assert memos_of(kind) == expected
    assert {"known"} - {*snapshot(one)} == expected


def test_a_class_without_a_source_has_none() -> None:
    """It may have been made by a program."""
    assert memos_of(type("Made", (SimpleNamespace,), {})) == frozenset()
