"""Problems that a double collects while a test runs, and the one error that reports them all.

The mock model, the fake sandbox and the replay raise a problem where it happens, and keep it for the end of the test: agent
loops and retries swallow exceptions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_hermes_env.errors import HermesEnvError, Leftovers

MAX_PLACES = 5
"""How many places of one problem a message lists."""
MAX_PARTS = 3
"""How many problems an error shows."""
_ID = re.compile(r"\b[0-9a-f]{8}[\w-]*")
"""What differs between equal requests of the rollouts of a group: ids, also in the names of their directories."""
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One problem: the class of its error, its text, and where it occurred. ``where`` is empty if the text needs no place."""

    error: type[HermesEnvError]
    text: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.error.__name__}: {self.text}"

    def exception(self) -> HermesEnvError:
        """Return the problem as an exception of its class."""
        return self.error(_described(self, [self.where]))


def combined_error(problems: Iterable[Problem], *, who: str) -> HermesEnvError | None:
    """Return one error for all problems, of the class of the first one; None if there are none.

    Problems that differ only in their place, or in ids, are listed once: clients retry, and a group sends the same request many times.
    What was left over is listed where there is nothing else: it follows from the other problems. ``who``: the double that reports
    them, such as "the mock model".
    """
    found = list(problems)
    found = [one for one in found if not issubclass(one.error, Leftovers)] or found
    same: dict[tuple[type[HermesEnvError], str], list[Problem]] = {}
    for problem in found:
        same.setdefault((problem.error, _ID.sub("#", problem.text)), []).append(problem)
    if not same:
        return None
    parts = tuple((alike[0].error, _described(alike[0], [one.where for one in alike])) for alike in same.values())
    kind, text = parts[0]
    if len(parts) > 1:
        entries = [f"\n\n{number}. {each.__name__}: {said}" for number, (each, said) in enumerate(parts, start=1)]
        more = f"\n\nand {len(entries) - MAX_PARTS} more" if len(entries) > MAX_PARTS else ""
        text = f"{who} reports {len(parts)} problems." + "".join(entries[:MAX_PARTS]).replace("\n  ", "\n     ") + more
    error = kind(text)
    error.parts = parts
    return error


def ordinal(number: int) -> str:
    """Return ``first``, ``second``, ``third`` … for a number from 1."""
    return ORDINALS[number - 1] if number <= len(ORDINALS) else f"{number}th"


def plural(word: str, count: int) -> str:
    """Return the word, with an ``s`` unless the count is 1."""
    return word if count == 1 else f"{word}s"


def _described(problem: Problem, places: Sequence[str]) -> str:
    """Return the text of a problem with its places after the first line, or, if it has none, with its count at the end."""
    counted = Counter(place for place in places if place)
    if not counted:
        return problem.text + (f"\n  repeated  {len(places)} times" if len(places) > 1 else "")
    ordered = sorted(counted.items(), key=lambda item: _by_numbers(item[0]))  # rollouts run at once, in any order
    listed = [place if count == 1 else f"{place} ({count} times)" for place, count in ordered]
    more = f"; and {len(listed) - MAX_PLACES} more" if len(listed) > MAX_PLACES else ""
    headline, *rest = problem.text.split("\n")
    return "\n".join([headline, f"  where     {'; '.join(listed[:MAX_PLACES])}{more}", *rest])


def _by_numbers(place: str) -> list[tuple[int, str]]:
    """Return a sort key with which ``rollout 2`` comes before ``rollout 10``."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", place)]
