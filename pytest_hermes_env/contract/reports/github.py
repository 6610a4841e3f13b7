"""Annotations for GitHub Actions: workflow commands that put a finding on its line of a pull request.

Source: docs.github.com, "Workflow commands for GitHub Actions"; the escapes are those of actions/toolkit's command module: ``%``, CR and
LF in the message, and ``:`` and ``,`` too in a property.
"""

from __future__ import annotations

import os

from pytest_hermes_env.contract.judge.rule import Rule
from pytest_hermes_env.contract.ledger.account import Account
from pytest_hermes_env.redaction.shown_text import shown
from pytest_hermes_env.source.finding import Finding


def github_text(account: Account) -> str:
    """Return the annotations as text; nothing where nothing is wrong."""
    return "".join(f"{line}\n" for line in github_lines(account))


def github_lines(account: Account) -> list[str]:
    """Return one workflow command for each problem, finding that counts, and class in which nothing was exercised."""
    lines = [
        _command("error", item.path, item.line, item.column, f"{item.id} {item.name}", item.message)
        for item in account.problems
    ]
    lines += [_finding(rule, finding, is_strict=account.is_strict) for rule, finding in account.findings]
    for ledger in account.ledgers:
        if ledger.is_vacuous:
            message = f"nothing was exercised in {ledger.subject}: this run proves nothing"
            lines.append(_command("error", ledger.path, ledger.line, 1, "hermes-env", message))
    return lines


def _finding(rule: Rule, finding: Finding, *, is_strict: bool) -> str:
    level = "error" if is_strict else rule.severity_of(finding).value
    parts = [finding.message]
    if finding.scenario:
        parts.append(f"in scenario {finding.scenario}")
    if finding.seen:
        parts.append(f"seen: {finding.seen}")
    if finding.also:
        parts.append(f"not judged because of this: {', '.join(finding.also)}")
    if fix := rule.fix(finding):
        parts.append(f"fix: {fix}")
    title = f"{rule.id} {rule.name}"
    return _command(level, finding.path, finding.line, finding.column, title, "\n".join(parts))


def _command(level: str, path: str, line: int, column: int, title: str, message: str) -> str:
    named = {"file": _printable(_from_checkout(path)), "line": line or "", "col": column if line else "", "title": title}
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in named.items() if value)
    return f"::{level} {properties}::{_data(_printable(message))}"


def _from_checkout(path: str) -> str:
    """Name a file from the root of the checkout, which is how GitHub knows it."""
    root = os.environ.get("GITHUB_WORKSPACE")
    if not path or not root:
        return path.replace(os.sep, "/")
    full, root = os.path.realpath(path), os.path.realpath(root)
    return (os.path.relpath(full, root) if full.startswith(root + os.sep) else path).replace(os.sep, "/")


def _printable(text: str) -> str:
    """Return a text with escapes for control characters, but line ends, which `_data` escapes."""
    return "\n".join(map(shown, text.split("\n")))


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
