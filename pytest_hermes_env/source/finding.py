"""A violation at a place in a file, and how serious it is."""

from __future__ import annotations

import ast
import dataclasses
import enum
import linecache
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pytest_hermes_env.redaction.shown_text import shown
from pytest_hermes_env.source.classes import ClassSource
from pytest_hermes_env.source.functions import Function

_OPAQUE = re.compile(r"""(["'])(?=[^"']*[0-9A-Z])[\w+/=.-]{16,}\1""")


class Severity(enum.StrEnum):
    """How serious a violation is: an error fails, a warning fails only under ``--strict``."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One violation of one rule, at one place.

    ``line`` and ``column`` count from 1; ``path`` is as the source was given. ``seen`` is what was observed, already short.
    ``confirmation`` is what rollouts showed about a finding in the source; rules leave it empty, the engine fills it.
    ``is_confirmed``: a rollout showed it, or the source alone proves it; the engine sets the former.
    ``reproduction`` is a test, or a case, ready to paste, that shows only this violation; the engine fills in a test.
    ``fix`` is how to fix this violation, where it is another than that of its rule.
    ``severity`` is set when this violation is more or less serious than its rule.
    """

    message: str
    path: str = ""
    line: int = 0
    column: int = 1
    seen: str = ""
    scenario: str = ""
    confirmation: str = ""
    severity: Severity | None = None
    reproduction: str = ""
    is_confirmed: bool = False
    fix: str = ""
    cause: tuple[str, str, int] | None = None
    """The error that this comes from, with path and line of the environment that raised it; an empty path where none did."""
    because_of: str = ""
    """The rule whose violation this follows from: where that one fails a run, too, this is no second finding."""
    also: tuple[str, ...] = ()
    """The rules that could not be judged because of this one."""

    @property
    def raised_by(self) -> str:
        """The line of source that raised the error, long literals that may be a part of a key left out; empty without one."""
        line = linecache.getline(*self.cause[1:]).strip() if self.cause is not None and self.cause[1] else ""
        return shown(_OPAQUE.sub(r"\1…\1", line))

    @property
    def observed(self) -> str:
        """What rollouts showed of it; empty where they showed nothing."""
        return self.confirmation.removeprefix("confirmed").removeprefix(": ") if self.is_confirmed else ""


def finding_at(where: Function | ClassSource, node: ast.AST, message: str, seen: str = "") -> Finding:
    """Return the finding at ``node`` in the file of ``where``."""
    line, column = where.module.place(node)
    return Finding(message=message, path=where.path, line=line, column=column, seen=seen)


def shown_finding(finding: Finding) -> Finding:
    """Return a finding without secrets and control characters in its texts; its path stays a path."""
    texts = ("message", "seen", "confirmation", "reproduction", "fix")
    texts_shown: dict[str, Any] = {name: shown(getattr(finding, name)) for name in texts}
    return dataclasses.replace(finding, **texts_shown)


def sorted_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings by place, each once."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda item: (item.path, item.line, item.column, item.message)))
