"""``hermes-env rules`` and ``hermes-env explain``: what the contract asks."""

from __future__ import annotations

import argparse
import sys
from typing import Any


def add(commands: Any) -> None:
    """Add the commands to the parser."""
    rules = commands.add_parser("rules", help="list the rules")
    rules.add_argument(
        "--format", choices=("text", "json", "markdown"), default="text", help="text (default), json or markdown"
    )
    rules.add_argument("--write-docs", metavar="DIR", default="", help="write a page for each rule, and an index, into DIR")
    rules.set_defaults(run=run)

    explain = commands.add_parser("explain", help="explain a rule: what it means, why it matters and how to fix a violation")
    explain.add_argument("rule", metavar="RULE", help="id or name: HE702, eval-rolls-back-buffers")
    explain.set_defaults(run=run_explain)


def run(options: argparse.Namespace) -> int:
    """List the rules, or write their pages."""
    from pytest_hermes_env.contract.rules import ALL_RULES  # noqa: PLC0415

    if options.write_docs:
        from pytest_hermes_env.contract.rule_pages import main as write  # noqa: PLC0415

        return write([options.write_docs])
    if options.format == "markdown":
        from pytest_hermes_env.contract.rule_pages import index_text  # noqa: PLC0415

        sys.stdout.write(index_text())
        return 0
    from pytest_hermes_env.contract.reports.text import rule_table, rules_json  # noqa: PLC0415

    sys.stdout.write(rules_json(ALL_RULES) if options.format == "json" else "\n".join(rule_table(ALL_RULES)) + "\n")
    return 0


def run_explain(options: argparse.Namespace) -> int:
    """Explain one rule. Raises: no such rule → UnknownRule."""
    from pytest_hermes_env.contract.reports.text import explain_lines  # noqa: PLC0415
    from pytest_hermes_env.contract.rules import find_rule  # noqa: PLC0415

    print("\n".join(explain_lines(find_rule(options.rule))))
    return 0
