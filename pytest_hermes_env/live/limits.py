"""The cost of live calls so far, and the limits: a SQLite file that all workers of a run share.

Place in the flow: a `Meter` calls `begin` before each call and `end` after it; the summary of the run reads `by_test`, also after the
run was aborted. SQLite's locks work across processes.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_hermes_env.errors import BudgetSpent

__all__ = ["Limits", "Spending", "Spent", "Usage"]

PATIENCE_S = 30.0
"""How long a worker waits for other writers, which take a millisecond each."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of a run; None means no limit."""

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None


@dataclass(frozen=True, kw_only=True)
class Usage:
    """The usage that an answer reports. None means that it does not report it."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    usd: float | None = None


@dataclass(frozen=True, kw_only=True)
class Spent:
    """A sum. ``unfinished`` calls got no answer; ``uncounted`` answers did not report their tokens, ``unpriced`` ones their cost."""

    calls: int = 0
    failed: int = 0
    unfinished: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0
    uncounted: int = 0
    unpriced: int = 0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Tokens of prompts and of answers."""
        return self.prompt_tokens + self.completion_tokens

    def cost(self) -> str:
        """Return the cost as text, with the number of calls that it misses."""
        priced = self.calls - self.failed - self.unfinished - self.unpriced
        if not self.unpriced:
            return f"${self.usd:.4f}"
        return "cost unknown" if priced <= 0 else f"${self.usd:.4f} + {self.unpriced} calls of unknown cost"

    def describe(self) -> str:
        """Return the sum as part of a line."""
        return (
            f"{self.calls} call{'s' * (self.calls != 1)}, {self.tokens:,} tokens"
            + (f" + {self.uncounted} calls of unknown tokens" if self.uncounted else "")
            + f", {self.cost()}"
            + (f", {self.failed} failed" if self.failed else "")
        )


SCHEMA = """
CREATE TABLE IF NOT EXISTS calls (
    test TEXT NOT NULL, state TEXT NOT NULL, prompt INTEGER, completion INTEGER, usd REAL, seconds REAL NOT NULL DEFAULT 0,
    status TEXT NOT NULL DEFAULT ''
)
"""
REMARKS = "CREATE TABLE IF NOT EXISTS remarks (text TEXT NOT NULL, source TEXT NOT NULL)"
SUMS = """
COUNT(*), SUM(state = 'failed'), SUM(state = 'begun'), SUM(COALESCE(prompt, 0)), SUM(COALESCE(completion, 0)),
SUM(COALESCE(usd, 0.0)), SUM(state = 'answered' AND (prompt IS NULL OR completion IS NULL)),
SUM(state = 'answered' AND usd IS NULL), SUM(seconds)
"""


class Spending:
    """The calls of a run, in the file at ``path``, which is created if missing. Safe for threads and processes."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.path = path
        self.limits = limits
        with self._open() as connection:
            connection.execute(SCHEMA)
            connection.execute(REMARKS)

    def begin(self, test: str) -> int:
        """Record that a test makes a call, and return its number.

        Raises: a limit is reached → BudgetSpent, and nothing is recorded.
        """
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            self._check(_sum(connection.execute(f"SELECT {SUMS} FROM calls").fetchone()))  # noqa: S608 - constant
            number = connection.execute("INSERT INTO calls (test, state) VALUES (?, 'begun')", (test,)).lastrowid
        if number is None:
            raise AssertionError("an inserted row has a number")
        return number

    def check(self) -> None:
        """Return if one more call is allowed. Raises: a limit is reached → BudgetSpent."""
        self._check(self.total())

    def end(self, number: int, usage: Usage | None, *, seconds: float, status: str = "") -> None:
        """Record the usage of a call; None means that it failed with ``status``."""
        state, said = ("failed", Usage()) if usage is None else ("answered", usage)
        with self._open() as connection:
            connection.execute(
                "UPDATE calls SET state = ?, prompt = ?, completion = ?, usd = ?, seconds = ?, status = ? WHERE rowid = ?",
                (state, said.prompt_tokens, said.completion_tokens, said.usd, seconds, status, number),
            )

    def total(self) -> Spent:
        """Return the sum over all tests."""
        with self._open() as connection:
            return _sum(connection.execute(f"SELECT {SUMS} FROM calls").fetchone())  # noqa: S608 - constant

    def by_test(self) -> Mapping[str, Spent]:
        """Return the sum for each test, in the order of their first calls."""
        with self._open() as connection:
            rows = connection.execute(f"SELECT test, {SUMS} FROM calls GROUP BY test ORDER BY MIN(rowid)").fetchall()  # noqa: S608
        return {test: _sum(sums) for test, *sums in rows}

    def failures(self) -> Mapping[str, int]:
        """Return the number of failed calls by status, the most frequent first."""
        with self._open() as connection:
            rows = connection.execute(
                "SELECT status, COUNT(*) FROM calls WHERE state = 'failed' GROUP BY status ORDER BY COUNT(*) DESC, status"
            ).fetchall()
        return dict(rows)

    def remark(self, texts: list[str], source: str) -> None:
        """Store remarks for the summary."""
        with self._open() as connection:
            connection.executemany("INSERT INTO remarks VALUES (?, ?)", [(text, source) for text in texts])

    def remarks(self) -> list[tuple[str, int, str]]:
        """Return each remark, its number, and its first source."""
        with self._open() as connection:
            return connection.execute(
                "SELECT text, COUNT(*), MIN(source) FROM remarks GROUP BY text ORDER BY MIN(rowid)"
            ).fetchall()

    def _check(self, spent: Spent) -> None:
        reached = self._reached(spent)
        if reached:
            raise BudgetSpent(reached)

    def _reached(self, spent: Spent) -> str:
        limits = self.limits
        if limits.calls is not None and spent.calls >= limits.calls:
            return self._refusal("--hermes-max-calls", str(limits.calls), "is reached", spent)
        if limits.tokens is not None:
            if spent.uncounted:
                return self._refusal(
                    "--hermes-max-tokens", str(limits.tokens), "cannot be enforced: answers report no tokens", spent
                )
            if spent.tokens >= limits.tokens:
                return self._refusal("--hermes-max-tokens", str(limits.tokens), "is reached", spent)
        if limits.usd is not None:
            if spent.unpriced:
                return self._refusal(
                    "--hermes-max-usd",
                    f"{limits.usd:g}",
                    "cannot be enforced: neither answers nor --hermes-prices report the cost",
                    spent,
                )
            if spent.usd >= limits.usd:
                return self._refusal("--hermes-max-usd", f"{limits.usd:g}", "is reached", spent)
        return ""

    def _refusal(self, flag: str, limit: str, why: str, spent: Spent) -> str:
        fix = {
            "is reached": f"raise {flag}, or run fewer tests",
            "cannot be enforced: answers report no tokens": "use --hermes-max-calls instead: this server does not count tokens",
        }.get(why, "add --hermes-prices FILE, or use --hermes-max-calls or --hermes-max-tokens instead")
        return f"a call was not made because {flag} {limit} {why}.\n  spent     {spent.describe()}\n  fix       {fix}"

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.path, timeout=PATIENCE_S)
        try:
            connection.execute("PRAGMA synchronous = OFF")  # a crash of the machine may lose it
            with connection:
                yield connection
        finally:
            connection.close()


def _sum(row: list[float | None] | tuple[float | None, ...]) -> Spent:
    calls, failed, unfinished, prompt, completion, usd, uncounted, unpriced, seconds = (value or 0 for value in row)
    return Spent(
        calls=int(calls),
        failed=int(failed),
        unfinished=int(unfinished),
        prompt_tokens=int(prompt),
        completion_tokens=int(completion),
        usd=float(usd),
        uncounted=int(uncounted),
        unpriced=int(unpriced),
        seconds=float(seconds),
    )
