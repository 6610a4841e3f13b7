"""Ledger rows on their way to the end of the run: they travel with pytest's reports, so that xdist's controller has them all.

Loaded by the plugin in every run: the standard library and pytest only.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

__all__ = ["ROW", "RowKeeper"]

ROW = pytest.StashKey[dict[str, Any]]()
"""On an item: what its rule concluded."""

_ATTRIBUTE = "hermes_env_row"


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

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the row that a report brings, also one from an xdist worker."""
        row = getattr(report, _ATTRIBUTE, None)
        if row is not None:
            self.rows[row["class"], row["rule"]] = row
