"""An account of a run in the shapes that machines read: JSON, SARIF, GitHub annotations.

Place in the flow: `hermes-env check` and pytest end with an `Account`; each format is one function from it to text.
"""

from __future__ import annotations

from pytest_hermes_env.contract.ledger.account import Account, versions
from pytest_hermes_env.contract.reports.github import github_lines, github_text
from pytest_hermes_env.contract.reports.html_report import html_text
from pytest_hermes_env.contract.reports.json_report import json_text
from pytest_hermes_env.contract.reports.sarif import sarif_text

__all__ = [
    "FORMATS",
    "Account",
    "github_lines",
    "github_text",
    "html_text",
    "json_text",
    "sarif_text",
    "versions",
]

FORMATS = {"json": json_text, "github": github_text, "sarif": sarif_text}
"""From the name of a format to the function that writes it."""
