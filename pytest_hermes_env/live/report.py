"""The terminal output of live mode: a line per call, one while it waits, a line per test, and a table at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_hermes_env.redaction.shown_text import shown

if TYPE_CHECKING:
    from pytest_hermes_env.live.limits import Limits, Spending, Spent, Usage
    from pytest_hermes_env.live.providers import LiveServer


def waiting_line(server: str, seconds: float) -> str:
    """Return a line about a call that has no answer yet."""
    return shown(f"  live: still waiting for {server} ({seconds:.0f} s)")


def progress_line(place: str, usage: Usage | None, *, status: int | str, seconds: float, spent: Spent) -> str:
    """Return a line about one call: ``live: rollout 1, turn 2: 812 tokens, $0.0004, 3.1 s (run: 2 calls, 1,624 tokens, $0.0008)``.

    ``spent`` is the sum of the run.
    """
    if usage is None:
        said = f"failed ({status})"
    elif usage.prompt_tokens is None or usage.completion_tokens is None:
        said = "tokens unknown"
    else:
        said = f"{usage.prompt_tokens + usage.completion_tokens:,} tokens"
    cost = f", ${usage.usd:.4f}" if usage is not None and usage.usd is not None else ""
    return shown(f"  live: {place}: {said}{cost}, {seconds:.1f} s (run: {spent.describe()})")


def spent_line(spent: str) -> str:
    """Return a line about one test."""
    return f"  live: {spent} in this test"


def spent_table(server: LiveServer, spending: Spending) -> list[str]:
    """Return the table of all tests, with the sum and the limits."""
    rows = spending.by_test()
    if not rows:
        return [f"{server.describe()}: no calls"]
    total = spending.total()
    table: list[tuple[str, ...]] = [("calls", "prompt", "answer", "cost", "seconds", "test")]
    table += [_cells(spent, test) for test, spent in rows.items()]
    table.append(_cells(total, "all" + _limits(spending.limits)))
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]) - 1)]
    lines = ["  ".join([cell.rjust(width) for cell, width in zip(row, widths, strict=False)] + [row[-1]]) for row in table]
    how = ", ".join(f"{status} ({count})" for status, count in spending.failures().items())
    remarks = [
        f"{label}: {count}{said}"
        for label, count, said in (
            ("failed calls", total.failed, f" - {how}"),
            ("calls without an answer", total.unfinished, " when the run ended"),
            ("answers without token counts", total.uncounted, ""),
        )
        if count
    ]
    return [shown(line) for line in (server.describe(), *lines, *remarks)]


def _cells(spent: Spent, name: str) -> tuple[str, ...]:
    return (
        str(spent.calls),
        f"{spent.prompt_tokens:,}",
        f"{spent.completion_tokens:,}",
        spent.cost(),
        f"{spent.seconds:.1f}",
        name,
    )


def _limits(limits: Limits) -> str:
    said = [
        text
        for text, limit in (
            (f"{limits.calls} calls", limits.calls),
            (f"{limits.tokens} tokens", limits.tokens),
            (f"${limits.usd}", limits.usd),
        )
        if limit is not None
    ]
    return f" (limit: {', '.join(said)})" if said else ""
