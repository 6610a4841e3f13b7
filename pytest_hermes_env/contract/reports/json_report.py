"""The JSON report, described for its readers in docs/reference/reports.md. A change of its shape changes VERSION."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from pytest_hermes_env.contract.judge.rule import Rule
from pytest_hermes_env.contract.ledger.account import Account
from pytest_hermes_env.contract.ledger.ledger import Ledger, LedgerEntry
from pytest_hermes_env.source.finding import Finding

VERSION = 1


def json_text(account: Account) -> str:
    """Return the account as JSON with a final newline."""
    document = {
        "version": VERSION,
        "entry_point": account.entry_point,
        "mode": account.mode,
        "versions": account.versions,
        "strict": account.is_strict,
        "complete": account.is_complete,
        "exit_code": account.exit_code,
        "seconds": round(account.seconds, 3),
        "files": account.files,
        "classes": [_class(ledger) for ledger in account.ledgers],
        "problems": [dataclasses.asdict(item) for item in account.problems],
        "skipped": [
            {"path": item.path, "line": item.line, "class": item.name, "reason": item.reason}
            | {"is_environment": item.is_environment, "is_unreadable": item.is_unreadable}
            for item in account.skipped
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _class(ledger: Ledger) -> dict[str, Any]:
    return {
        "class": ledger.subject,
        **{name: getattr(ledger, name) for name in ("path", "line", "mode", "sandbox", "counts")},
        "rules": [_rule(entry) for entry in ledger.entries],
        "ladder": [dataclasses.asdict(row) for row in ledger.ladder],
    }


def _rule(entry: LedgerEntry) -> dict[str, Any]:
    return {
        "id": entry.rule.id,
        "name": entry.rule.name,
        "severity": entry.rule.severity.value,
        "outcome": entry.word,
        "note": entry.note,
        "waiver": entry.waiver,
        "seconds": round(entry.seconds, 3),
        "findings": [_finding(entry.rule, finding) for finding in entry.findings],
        "accepted": [
            {"reason": item.reason, "origin": item.origin, "finding": _finding(entry.rule, item.finding)}
            for item in entry.accepted
        ],
    }


def _finding(rule: Rule, finding: Finding) -> dict[str, Any]:
    names = ("message", "path", "line", "column", "seen", "scenario", "confirmation", "raised_by", "also")
    return {"severity": rule.severity_of(finding).value, **{name: getattr(finding, name) for name in names}}
