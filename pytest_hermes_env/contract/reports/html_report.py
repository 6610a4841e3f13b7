"""The HTML report: one file that loads nothing, for a browser. It shows what the JSON report holds."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.contract.reports.json_report import class_data, finding_data

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

    from pytest_hermes_env.contract.ledger.account import Account
    from pytest_hermes_env.contract.ledger.ledger import Ledger

OPEN = ("failed", "waived", "undecided", "not exercised", "not applicable", "not run", "passed")
"""Outcomes in the order in which a reader wants them."""


def html_text(account: Account) -> str:
    """Return the account as a page."""
    return _template().render(account=account, classes=[_class(ledger) for ledger in account.ledgers])


@functools.cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - only where a page is asked for

    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["with_code"] = _with_code
    return environment.get_template("contract.html.jinja")


def _with_code(text: str) -> Markup:
    """Return a text escaped, with what stands between backticks as code."""
    from markupsafe import Markup, escape  # noqa: PLC0415

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - it is escaped


def _class(ledger: Ledger) -> dict[str, Any]:
    data = class_data(ledger)
    failed = ledger.failures(is_strict=any(entry.is_strict for entry in ledger.entries))
    findings = [
        {
            **finding_data(entry.rule, finding),
            "why": "" if finding.fix else entry.rule.section("Why"),
            "fix": entry.rule.fix(finding),
            "id": entry.rule.id,
            "name": entry.rule.name,
            "fails": entry in failed,
        }
        for entry in ledger.entries
        for finding in entry.findings
    ]
    findings.sort(key=lambda finding: (not finding["fails"], not finding["confirmation"].startswith("confirmed")))
    by_outcome = {word: [rule for rule in data["rules"] if rule["outcome"] == word] for word in OPEN}
    return {
        **data,
        "headline": ledger.headline(),
        "findings": findings,
        "outcomes": {k: v for k, v in by_outcome.items() if v},
    }
