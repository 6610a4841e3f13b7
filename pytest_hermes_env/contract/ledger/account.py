"""What a run leaves behind, of `hermes-env check` or of pytest: reports are made of it."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from functools import cached_property

from pytest_hermes_env.contract.judge.rule import Rule
from pytest_hermes_env.contract.ledger.ledger import Ledger
from pytest_hermes_env.source import FileProblem, Skipped
from pytest_hermes_env.source.finding import Finding
from pytest_hermes_env.versions import installed_versions

DISTRIBUTION = "pytest-hermes-env"


@dataclass(frozen=True, kw_only=True)
class Account:
    """A whole run. ``mode`` is source, chat or token; ``seconds`` the time it took; ``is_complete`` is False after an abort."""

    entry_point: str
    mode: str
    ledgers: tuple[Ledger, ...]
    exit_code: int = 0
    seconds: float = 0.0
    files: int = 0
    problems: tuple[FileProblem, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    is_strict: bool = False
    is_complete: bool = True
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def has_only_others(self) -> bool:
        """Whether every environment that was found is one of Atropos without the Hermes layer: there is nothing to judge."""
        return not self.ledgers and any(item.is_environment for item in self.skipped)

    @property
    def is_broken(self) -> bool:
        """Whether something is broken, cannot be checked, or was not exercised at all."""
        broken = any(ledger.failures(is_strict=self.is_strict) or ledger.is_vacuous for ledger in self.ledgers)
        return broken or bool(self.problems)

    @cached_property
    def findings(self) -> tuple[tuple[Rule, Finding], ...]:
        """All findings by place; one in a base that several environments share comes once."""
        reported = {(problem.id, os.path.abspath(problem.path), problem.line) for problem in self.problems}
        found = {
            (finding.path, finding.line, finding.column, entry.rule.id, finding.message): (entry.rule, finding)
            for ledger in self.ledgers
            for entry in ledger.entries
            if not entry.waiver
            for finding in entry.findings
            if (entry.rule.id, os.path.abspath(finding.path), finding.line) not in reported
        }
        return tuple(found[key] for key in sorted(found))


def versions() -> dict[str, str]:
    """Return what a result depends on: Python, this distribution, atroposlib and hermes-agent."""
    return {"python": platform.python_version(), **installed_versions()}
