"""The contract as pytest sees it: one item per rule, a check per decorated test, one ledger per class at the end.

Ledger rows travel as user properties of the test reports, so that xdist's controller has them all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_hermes_env.contract.judge import ClassContract, RuleResult
from pytest_hermes_env.contract.ledger import Ledger, LedgerEntry
from pytest_hermes_env.contract.report import finding_lines
from pytest_hermes_env.contract.rule import Finding, Outcome, Rule
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.errors import BadTarget, BadWaiver
from pytest_hermes_env.rollout.layer import find_class

__all__ = ["ContractSession", "RuleCheck", "finish", "remember", "write_ledgers"]

PROPERTY = "hermes_env_rule"

_rows: dict[tuple[str, str], dict[str, str]] = {}
"""(class, rule id) -> ledger row; filled from test reports, read once at the end of the session."""


class ContractSession:
    """The classes that are judged in this pytest run; each is read and run once per process."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._contracts: dict[type, ClassContract] = {}

    def contract(self, env_class: type) -> ClassContract:
        """Return the contract of a class."""
        if env_class not in self._contracts:
            self._contracts[env_class] = ClassContract(
                env_class,
                sandbox=self._config.getoption("hermes_sandbox"),
                timeout_s=self._config.getoption("hermes_timeout"),
                server_type=self._server_type(),
            )
        return self._contracts[env_class]

    def _server_type(self) -> str:
        has_tokens = self._config.getoption("hermes_mode") == "token"
        return str(self._config.getoption("hermes_server_type")) if has_tokens else "openai"

    def items_of_targets(self, session: pytest.Session) -> Iterable[pytest.Item]:
        """Return one item per rule for each class that ``--hermes-env`` names. Raises: UsageError for a bad target."""
        for target in self._config.getoption("hermes_env"):
            try:
                classes = find_class(target)
            except BadTarget as error:
                raise pytest.UsageError(f"--hermes-env {target}: {error}") from error
            collector = ContractCollector.from_parent(session, name=target, nodeid=target)
            for env_class in classes:
                yield from collector.items_of(env_class, self)


class ContractCollector(pytest.Collector):
    """Stands for one target of ``--hermes-env``."""

    def collect(self) -> Iterable[pytest.Item]:
        """Return nothing: the items are made by `items_of`."""
        return []

    def items_of(self, env_class: type, session: ContractSession) -> list[pytest.Item]:
        """Return one item per rule."""
        return [
            RuleItem.from_parent(
                self, name=f"{env_class.__name__}[{rule.label}]", check=RuleCheck(env_class, rule), session_contracts=session
            )
            for rule in ALL_RULES
        ]


class RuleItem(pytest.Item):
    """One rule on one class."""

    def __init__(self, *, check: RuleCheck, session_contracts: ContractSession, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.check = check
        self._session_contracts = session_contracts

    def runtest(self) -> None:
        """Judge the rule."""
        self.check.run(self, self._session_contracts)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Name the class's file and the item."""
        source = self._session_contracts.contract(self.check.env_class).source
        path = Path(source.path) if source is not None else Path.cwd()
        return path, source.line - 1 if source is not None else None, self.name


class RuleCheck:
    """One rule on one class, with the reason why a breach is expected, if it is."""

    def __init__(self, env_class: type, rule: Rule, waiver: str = "") -> None:
        self.env_class = env_class
        self.rule = rule
        self.waiver = waiver

    def run(self, item: pytest.Item, session: ContractSession) -> None:
        """Judge, put a row into the ledger, and pass, fail, skip or xfail like a test."""
        contract = session.contract(self.env_class)
        result = contract.result(self.rule)
        is_strict = item.config.getoption("hermes_strict")
        is_breach = result.outcome is Outcome.FAILED
        fails = is_breach and self.rule.weighs(result.findings, is_strict=is_strict)
        self._remember(item, result, is_waived=is_breach and bool(self.waiver), world=contract.world)
        if self.waiver and not is_breach:
            raise_usage(
                f"{self.rule.id} is waived for {self.env_class.__name__} ({self.waiver}), but it is {result.outcome}: "
                f"{result.note}. Take the waiver away."
            )
        if self.waiver:
            pytest.xfail(f"{self.rule.id} waived: {self.waiver}")
        if fails:
            pytest.fail("\n".join(_failure(self.rule, result)), pytrace=False)
        if is_breach:
            item.warn(pytest.PytestWarning("\n".join(_failure(self.rule, result))))
            return
        if result.outcome is not Outcome.PASSED:
            pytest.skip(f"{self.rule.id} {result.outcome}: {result.note}")

    def _remember(self, item: pytest.Item, result: RuleResult, *, is_waived: bool, world: str) -> None:
        row = {
            "class": f"{self.env_class.__module__}:{self.env_class.__qualname__}",
            "rule": self.rule.id,
            "outcome": result.outcome.value,
            "note": result.note,
            "waiver": self.waiver if is_waived else "",
            "world": world,
        }
        item.user_properties.append((PROPERTY, json.dumps(row)))


def raise_usage(message: str) -> None:
    """Fail the test with a usage error, without the plugin's own frames."""
    __tracebackhide__ = True
    pytest.fail(f"{BadWaiver.__name__}: {message}", pytrace=False)


def _failure(rule: Rule, result: RuleResult) -> list[str]:
    return [
        line
        for number, finding in enumerate(result.findings)
        for line in finding_lines(rule, _from_here(finding), is_brief=number > 0)
    ]


def _from_here(finding: Finding) -> Finding:
    """Name the file from the working directory when it lies below it."""
    here = Path.cwd()
    path = Path(finding.path)
    is_below = path.is_absolute() and path.is_relative_to(here)
    return replace(finding, path=str(path.relative_to(here))) if is_below else finding


def remember(rows: Iterable[Any]) -> None:
    """Keep ledger rows that a test report brought."""
    for text in rows:
        row = json.loads(text)
        _rows[row["class"], row["rule"]] = row


def ledgers() -> list[Ledger]:
    """Return one ledger per class that was judged."""
    rules = {rule.id: rule for rule in ALL_RULES}
    names = list(dict.fromkeys(name for name, _ in _rows))
    return [
        Ledger(
            subject=name,
            world=next((row["world"] for (owner, _), row in _rows.items() if owner == name and row["world"]), ""),
            entries=tuple(
                LedgerEntry(
                    rule=rules[row["rule"]],
                    outcome=Outcome(row["outcome"]),
                    note=row["note"],
                    waiver=row["waiver"],
                )
                for (owner, _), row in sorted(_rows.items())
                if owner == name
            ),
        )
        for name in names
    ]


def finish(session: pytest.Session) -> None:
    """Fail the run when a class was judged and nothing at all was exercised."""
    if any(ledger.is_vacuous for ledger in ledgers()) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def write_ledgers(terminalreporter: Any) -> None:
    """Print the ledgers, and forget them: a process may run several sessions."""
    for ledger in ledgers():
        terminalreporter.section(f"contract of {ledger.subject}", sep="-")
        for line in ledger.summary_lines():
            terminalreporter.write_line(line)
    _rows.clear()
