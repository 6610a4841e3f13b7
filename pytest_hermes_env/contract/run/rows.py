"""Ledger rows on their way to the end of the run: they travel with pytest's reports, so that xdist's controller has them all.

A row holds the ledger of one rule as bytes, since xdist takes no objects from a worker to its controller, and what the short summary needs.
Loaded by the plugin in every run: the standard library and pytest only.
"""

from __future__ import annotations

import copy
import pickle
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_hermes_env.contract.ledger.ledger import Ledger

ROW = pytest.StashKey[dict[str, Any]]()
"""On an item: what its rule concluded."""

_ATTRIBUTE = "hermes_env_row"


def minimum_of(config: pytest.Config) -> int | None:
    """Return how many rules must be exercised in each class; None means all that apply. Raises: pytest.UsageError."""
    given = config.getoption("hermes_min_exercised") or config.getini("hermes_min_exercised") or "all"
    if given == "all":
        return None
    if not given.isdecimal():
        raise pytest.UsageError(f"hermes_min_exercised must be all or a number of rules, not {given!r}")
    return int(given)


def row_of(ledger: Ledger, rank: tuple[int, bool]) -> dict[str, Any]:
    """Return the row of a ledger with one entry; ``rank`` is that of its worst finding."""
    (entry,) = ledger.entries
    first = entry.findings[0] if entry.findings else None
    place = f"{first.path}:{first.line}" if first is not None and first.path else ""
    return {
        "class": ledger.subject,
        "rule": entry.rule.id,
        "rank": rank,
        "place": place,
        "message": first.message if first is not None else "",
        "ledger": pickle.dumps(ledger),
    }


def ledger_in(row: dict[str, Any]) -> Ledger:
    """Return the ledger that a row of this run holds."""
    return pickle.loads(row["ledger"])  # type: ignore[no-any-return]  # noqa: S301 - this run wrote it


def _named_by_finding(report: Any, below_root: str) -> Any:
    """Return a report for the short summary; only its name differs."""
    row = getattr(report, _ATTRIBUTE, None)
    if row is None or not row["message"]:
        return report
    named = copy.copy(report)
    name = f"{row['rule']} {row['place']}".rstrip()
    named.nodeid = f"{below_root}/{name}" if below_root != "." else name
    if (crash := getattr(report.longrepr, "reprcrash", None)) is not None:
        crash.message = row["message"]
    return named


class RowKeeper:
    """A plugin of one run: puts each item's row on its report, and collects the rows of all reports."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], dict[str, Any]] = {}
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """How long the run has taken."""
        return time.perf_counter() - self._start

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        """Hang the row on the report of the call."""
        report = yield
        if call.when == "call" and ROW in item.stash:
            setattr(report, _ATTRIBUTE, item.stash[ROW])
        return report

    def most_severe_first(self, reports: list[Any], below_root: str | None) -> None:
        """Sort failed reports: the most severe violation that rollouts confirmed comes first; reports without a rule stay first.

        In the short summary, the line of a violation begins with its rule and its place instead of the id of the test, which pytest
        prints relative to the working directory: ``below_root``, as seen from the root, or None if it is elsewhere.
        """

        def rank(report: Any) -> tuple[Any, ...]:
            row = getattr(report, _ATTRIBUTE, None)
            return tuple(row["rank"]) if row is not None else ()

        reports.sort(key=rank)
        if below_root is not None:
            reports[:] = [_named_by_finding(report, below_root) for report in reports]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the row that a report brings, also one from an xdist worker."""
        row = getattr(report, _ATTRIBUTE, None)
        if row is not None:
            self.rows[row["class"], row["rule"]] = row
