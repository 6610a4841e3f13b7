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
SUMS = """
COUNT(*) AS calls,
COUNT(*) FILTER (WHERE state = 'failed') AS failed,
COUNT(*) FILTER (WHERE state = 'begun') AS unfinished,
IFNULL(SUM(prompt), 0) AS prompt_tokens,
IFNULL(SUM(completion), 0) AS completion_tokens,
TOTAL(usd) AS usd,
COUNT(*) FILTER (WHERE state = 'answered' AND (prompt IS NULL OR completion IS NULL)) AS uncounted,
COUNT(*) FILTER (WHERE state = 'answered' AND usd IS NULL) AS unpriced,
TOTAL(seconds) AS seconds
"""
"""The fields of a `Spent`, by name."""


class Spending:
    """The calls of a run, in the file at ``path``, which is created if missing. Safe for threads and processes."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.path = path
        self.limits = limits
        with self._open() as connection:
            connection.execute(SCHEMA)

    def begin(self, test: str) -> int:
        """Record that a test makes a call, and return its number.

        Raises: a limit is reached → BudgetSpent, and nothing is recorded.
        """
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            _check(self.limits, _total(connection))
            number = connection.execute("INSERT INTO calls (test, state) VALUES (?, 'begun')", (test,)).lastrowid
        if number is None:
            raise AssertionError("an inserted row has a number")
        return number

    def check(self) -> None:
        """Return if one more call is allowed. Raises: a limit is reached → BudgetSpent."""
        _check(self.limits, self.total())

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
            return _total(connection)

    def by_test(self) -> Mapping[str, Spent]:
        """Return the sum for each test, in the order of their first calls."""
        with self._open() as connection:
            found = connection.execute(f"SELECT test, {SUMS} FROM calls GROUP BY test ORDER BY MIN(rowid)")  # noqa: S608 - constant
            rows = [dict(row) for row in found]
        return {row.pop("test"): Spent(**row) for row in rows}

    def failures(self) -> Mapping[str, int]:
        """Return the number of failed calls by status, the most frequent first."""
        with self._open() as connection:
            rows = connection.execute(
                "SELECT status, COUNT(*) FROM calls WHERE state = 'failed' GROUP BY status ORDER BY COUNT(*) DESC, status"
            )
            return {row["status"]: row["COUNT(*)"] for row in rows}

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.path, timeout=PATIENCE_S)
        connection.row_factory = sqlite3.Row
        try:
            connection.execute("PRAGMA synchronous = OFF")  # a crash of the machine may lose it
            with connection:
                yield connection
        finally:
            connection.close()


def _total(connection: sqlite3.Connection) -> Spent:
    return Spent(**dict(connection.execute(f"SELECT {SUMS} FROM calls").fetchone()))  # noqa: S608 - constant


def _check(limits: Limits, spent: Spent) -> None:
    """Return if one more call is allowed. Raises: a limit is reached → BudgetSpent."""
    rows = (
        ("--hermes-max-calls", limits.calls, spent.calls, False, "", ""),
        (
            "--hermes-max-tokens",
            limits.tokens,
            spent.tokens,
            bool(spent.uncounted),
            "answers report no tokens",
            "use --hermes-max-calls instead: this server does not count tokens",
        ),
        (
            "--hermes-max-usd",
            limits.usd,
            spent.usd,
            bool(spent.unpriced),
            "neither answers nor --hermes-prices report the cost",
            "add --hermes-prices FILE, or use --hermes-max-calls or --hermes-max-tokens instead",
        ),
    )
    for flag, limit, used, is_unknown, cause, instead in rows:
        if limit is not None and (is_unknown or used >= limit):
            why = f"cannot be enforced: {cause}" if is_unknown else "is reached"
            fix = instead if is_unknown else f"raise {flag}, or run fewer tests"
            raise BudgetSpent(
                f"a call was not made because {flag} {limit:.12g} {why}.\n  spent     {spent.describe()}\n  fix       {fix}"
            )
