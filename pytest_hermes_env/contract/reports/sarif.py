"""The SARIF 2.1.0 log of a run, for code scanning. Waived findings are in it, with their suppression.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0.
"""

from __future__ import annotations

import hashlib
import json
import linecache
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from pytest_hermes_env.contract.judge.rule import Rule
from pytest_hermes_env.contract.ledger.account import Account
from pytest_hermes_env.contract.ledger.ledger import Accepted, Ledger
from pytest_hermes_env.contract.reports.text import law, problem_texts
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.source import FileProblem
from pytest_hermes_env.source.finding import Finding

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
ROOT = "SRCROOT"


def sarif_text(account: Account) -> str:
    """Return the account as a SARIF log with a final newline."""
    run = {
        "tool": {
            "driver": {
                "name": "hermes-env",
                "version": account.versions.get("pytest-hermes-env", "unknown"),
                "rules": [*(_rule(rule) for rule in ALL_RULES), *_problem_rules(account)],
            }
        },
        "invocations": [
            {
                "executionSuccessful": account.is_complete,
                "exitCode": account.exit_code,
                "properties": {"entry_point": account.entry_point, "door": account.entry_point, "mode": account.mode},
            }
        ],
        "originalUriBaseIds": {ROOT: {"uri": _folder(os.getcwd())}},
        "columnKind": "unicodeCodePoints",
        "results": list(_results(account)),
        "properties": {"versions": account.versions},
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    markdown = "\n\n".join(f"**{title}.** {rule.section(title)}" for title in ("What", "Why", "Fix", "Source"))
    return {
        "id": rule.id,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": law(rule)},
        "fullDescription": {"text": rule.section("Why")},
        "help": {"text": f"{rule.section('Fix')} (hermes-env explain {rule.id})", "markdown": markdown},
        "defaultConfiguration": {"level": rule.severity.value, "enabled": True},
    }


def _problem_rules(account: Account) -> Iterator[dict[str, Any]]:
    known = {rule.id for rule in ALL_RULES}
    for problem in {item.id: item for item in account.problems if item.id not in known}.values():
        why, _ = problem_texts(problem)
        yield {
            "id": problem.id,
            "name": "".join(word.capitalize() for word in problem.name.split("-")),
            "shortDescription": {"text": why},
            "help": {"text": why},
            "defaultConfiguration": {"level": "error"},
        }


def _results(account: Account) -> Iterator[dict[str, Any]]:
    index = {rule.id: number for number, rule in enumerate(ALL_RULES)}
    for extra in _problem_rules(account):
        index.setdefault(extra["id"], len(index))
    seen: Counter[str] = Counter()
    for problem in account.problems:
        yield _problem(problem, index[problem.id], seen)
    reported: set[tuple[str, Finding]] = set()
    for ledger in account.ledgers:
        for entry in ledger.entries:
            given: list[tuple[Finding, Accepted | None]] = [(finding, None) for finding in entry.findings]
            given += [(item.finding, item) for item in entry.accepted]
            for finding, accepted in given:
                if (entry.rule.id, finding) not in reported:
                    reported.add((entry.rule.id, finding))
                    yield _result(ledger, entry.rule, finding, accepted, index[entry.rule.id], seen)


def _result(
    ledger: Ledger, rule: Rule, finding: Finding, accepted: Accepted | None, index: int, seen: Counter[str]
) -> dict[str, Any]:
    linecache.checkcache(finding.path)
    text = linecache.getline(finding.path, finding.line) if finding.path else ""
    facts = {
        "class": ledger.subject,
        "scenario": finding.scenario,
        "confirmation": finding.confirmation,
        "seen": finding.seen,
    }
    return {
        "ruleId": rule.id,
        "ruleIndex": index,
        "level": rule.severity_of(finding).value,
        "message": {"text": finding.message},
        **_locations(finding.path or ledger.path, finding.line, finding.column),
        "partialFingerprints": _fingerprint([rule.id, finding.path, " ".join(text.split()) or finding.message], seen),
        **({"suppressions": [_suppression(accepted)]} if accepted is not None else {}),
        "properties": {name: value for name, value in facts.items() if value},
    }


def _problem(problem: FileProblem, index: int, seen: Counter[str]) -> dict[str, Any]:
    return {
        "ruleId": problem.id,
        "ruleIndex": index,
        "level": "error",
        "message": {"text": problem.message},
        **_locations(problem.path, problem.line, problem.column),
        "partialFingerprints": _fingerprint([problem.id, problem.path, problem.message], seen),
    }


def _suppression(accepted: Accepted) -> dict[str, str]:
    is_comment = accepted.origin.rpartition(":")[0].endswith((".py", ".pyi"))
    return {
        "kind": "inSource" if is_comment else "external",
        "status": "accepted",
        "justification": f"{accepted.reason} ({accepted.origin})",
    }


def _locations(path: str, line: int, column: int) -> dict[str, Any]:
    if not path:
        return {}
    place: dict[str, Any] = {"artifactLocation": _artifact(path)}
    if line:
        place["region"] = {"startLine": line, "startColumn": max(column, 1)}
    return {"locations": [{"physicalLocation": place}]}


def _artifact(path: str) -> dict[str, str]:
    full, here = os.path.abspath(path), os.getcwd() + os.sep
    if full.startswith(here):
        return {"uri": quote(full.removeprefix(here).replace(os.sep, "/")), "uriBaseId": ROOT}
    return {"uri": "file://" + quote(full.replace(os.sep, "/"))}


def _folder(path: str) -> str:
    return "file://" + quote(path.replace(os.sep, "/").rstrip("/")) + "/"


def _fingerprint(facts: list[str], seen: Counter[str]) -> dict[str, str]:
    """Return a fingerprint that does not know lines, so that a finding stays the same when code above it moves."""
    text = "\n".join(facts)
    seen[text] += 1
    return {"hermesEnv/v1": hashlib.sha256(f"{text}\n{seen[text]}".encode()).hexdigest()[:32]}
