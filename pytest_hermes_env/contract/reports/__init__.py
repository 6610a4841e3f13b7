"""An account of a run in the shapes that machines and browsers read: JSON, SARIF, GitHub annotations, HTML.

Place in the flow: `hermes-env check` and pytest end with an `Account`; each format is one function from it to text.
"""

from __future__ import annotations

from importlib import import_module

from pytest_hermes_env.contract.ledger.account import Account

_FUNCTIONS = {
    "json": "json_report.json_text",
    "github": "github.github_text",
    "sarif": "sarif.sarif_text",
    "html": "html_report.html_text",
}


def report_text(account: Account, form: str) -> str:
    """Return the account in a format: json, github, sarif or html. Only the module of this format is loaded."""
    module, _, function = _FUNCTIONS[form].partition(".")
    return str(getattr(import_module(f"{__name__}.{module}"), function)(account))
