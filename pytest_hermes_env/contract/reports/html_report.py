"""The HTML report: one file that loads nothing, for a browser. It shows what the JSON report holds."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_env_shared.pages import axis_of, page_template
from pytest_hermes_env.contract.ledger.ladder import remarks
from pytest_hermes_env.play.cases.values import AUTOMATIC, GOLD, WELL_KNOWN

if TYPE_CHECKING:
    from pytest_hermes_env.contract.ledger.account import Account
    from pytest_hermes_env.contract.ledger.ladder import LadderRow
    from pytest_hermes_env.contract.ledger.ledger import Ledger, LedgerEntry

OUTCOMES = ("failed", "waived", "undecided", "not exercised", "not applicable", "not run", "passed")
"""Outcomes in the order in which a reader wants them."""


def html_text(account: Account) -> str:
    """Return the account as a page."""
    classes = [_class(ledger, account) for ledger in account.ledgers]
    title = f"Contract of {', '.join(found['name'] for found in classes) or 'nothing'}"
    template = page_template(Path(__file__).with_name("contract.html.jinja"))
    date = dt.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M")
    return template.render(title=title, account=account, classes=classes, date=date)


def _class(ledger: Ledger, account: Account) -> dict[str, Any]:
    failed = ledger.failures(is_strict=any(entry.is_strict for entry in ledger.entries))
    verdict, colour = _verdict(ledger, account, failed)
    words = {word: [entry for entry in ledger.entries if _word(entry) == word] for word in OUTCOMES}
    played = dict.fromkeys(name for entry in ledger.exercised for name in entry.rule.scenarios)
    return {
        "ledger": ledger,
        "name": ledger.subject.rpartition(":")[2] or ledger.subject,
        "verdict": verdict,
        "colour": colour,
        "commit": _commit(ledger.path) if ledger.path else "",
        "causes": _causes(ledger, failed),
        "outcomes": {word: entries for word, entries in words.items() if entries},
        "scenarios": {name: [entry for entry in ledger.exercised if name in entry.rule.scenarios] for name in played},
        "remarks": remarks(ledger.ladder) if ledger.ladder else [],
        **_ladder(ledger.ladder),
    }


def _word(entry: LedgerEntry) -> str:
    return "passed" if entry.is_warned else entry.word


def _verdict(ledger: Ledger, account: Account, failed: Sequence[LedgerEntry]) -> tuple[str, str]:
    """Return the verdict in words, and its colour."""
    if failed:
        return f"✗ Failed: {len(failed)} {'rule is' if len(failed) == 1 else 'rules are'} violated", "bad"
    if ledger.is_vacuous:
        return "✗ Failed: nothing was exercised, so this run proves nothing", "bad"
    if ledger.not_judged and account.exit_code:
        return f"✗ Failed: not judged were {', '.join(entry.rule.id for entry in ledger.not_judged)}", "bad"
    if account.problems:
        return "✗ Failed: waivers or files below are wrong", "bad"
    if not account.is_complete:
        return "⚠ Interrupted: this is not all", "warn"
    if any(entry.is_warned for entry in ledger.entries):
        return "✓ Passed, with warnings", "good"
    return "✓ Passed", "good"


def _causes(ledger: Ledger, failed: Sequence[LedgerEntry]) -> list[dict[str, Any]]:
    """Return the findings, those of one rule and one fix together: what fails the run and was confirmed comes first."""
    causes: dict[tuple[str, str], dict[str, Any]] = {}
    for entry in ledger.entries:
        for number, finding in enumerate(entry.findings, start=1):
            fix = entry.rule.fix(finding)
            why = "" if finding.fix else entry.rule.section("Why")
            cause = {"entry": entry, "fails": entry in failed, "fix": fix, "why": why, "findings": []}
            causes.setdefault((entry.rule.id, fix), cause)["findings"].append((number, finding))
    order = {
        key: (
            not cause["fails"],
            not any(one.is_confirmed or one.confirmation.startswith("confirmed") for _, one in cause["findings"]),
        )
        for key, cause in causes.items()
    }
    return [causes[key] for key in sorted(causes, key=lambda key: order[key])]


def _ladder(rows: Sequence[LadderRow]) -> dict[str, Any]:
    """Return each policy with its place on the axis of rewards, in percent, and what it means: gold, or what is paid like gold."""
    axis, place = axis_of(row.reward for row in rows if row.reward is not None)
    gold = next((row.reward for row in rows if row.name == GOLD), None)

    def kind(row: LadderRow) -> str:
        is_worse = row.name in {*WELL_KNOWN, *AUTOMATIC}
        is_paid = gold is not None and row.reward is not None and row.reward >= gold
        return "gold" if row.name == GOLD else "bad" if is_worse and is_paid else "quiet"

    rungs = [(row, None if row.reward is None else place(row.reward), kind(row)) for row in rows]
    return {"rungs": rungs, "axis": axis, "gold": None if gold is None else place(gold), "zero": place(0.0)}


def _commit(path: str) -> str:
    """Return the commit of a file, with a sign that something is changed; empty outside of git."""
    command = ["git", "-C", os.path.dirname(os.path.abspath(path)), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()
