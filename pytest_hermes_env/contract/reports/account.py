"""What a run leaves behind, of `hermes-env check` or of pytest."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.ledger.ledger import Ledger
from pytest_hermes_env.source import FileProblem, Skipped

if TYPE_CHECKING:
    from pytest_hermes_env.contract.check import StaticReport

DISTRIBUTION = "pytest-hermes-env"
_NAMED = (DISTRIBUTION, "atroposlib", "hermes-agent")


@dataclass(frozen=True, kw_only=True)
class Account:
    """A whole run. ``mode`` is source, chat or token; ``seconds`` the time it took; ``is_complete`` is False after an abort."""

    entry_point: str
    mode: str
    ledgers: tuple[Ledger, ...]
    exit_code: int
    seconds: float
    files: int = 0
    problems: tuple[FileProblem, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    is_strict: bool = False
    is_complete: bool = True
    versions: dict[str, str] = field(default_factory=dict)


def account_of(report: StaticReport, *, is_strict: bool, seconds: float) -> Account:
    """Return the account of a static check."""
    return Account(
        entry_point="hermes-env check",
        mode="source",
        ledgers=report.ledgers,
        exit_code=report.exit_code(is_strict=is_strict),
        seconds=seconds,
        files=report.files,
        problems=report.problems,
        skipped=report.skipped,
        is_strict=is_strict,
        versions=versions(),
    )


def versions() -> dict[str, str]:
    """Return what a result depends on: Python, this distribution, atroposlib and hermes-agent."""
    found = {"python": platform.python_version()}
    for name in _NAMED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
