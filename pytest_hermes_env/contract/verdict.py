"""What one half of a rule concludes about a class: a verdict, with its findings or with the reason why there is none."""

from __future__ import annotations

import enum
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_hermes_env.rollout.unavailable import Cause, Unavailable
from pytest_hermes_env.source.finding import Finding, sorted_findings

if TYPE_CHECKING:
    from collections.abc import Container, Iterable


class Outcome(enum.StrEnum):
    """What one half of a rule concluded. Only PASSED means that the law was seen to hold."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"
    """The static half could not know, and says so instead of guessing."""
    NOT_EXERCISED = "not exercised"
    """The evidence never occurred: nothing was seen, so nothing has passed."""
    NOT_APPLICABLE = "not applicable"
    """The law does not concern this class, for the reason given."""
    NOT_RUN = "not run"
    """Nobody asked for the rule in this run."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What one half of a rule concluded, and from what. ``note`` says what was looked at, or why nothing was."""

    outcome: Outcome
    note: str = ""
    findings: tuple[Finding, ...] = ()

    @classmethod
    def passed(cls, note: str) -> Verdict:
        """Return the verdict that the law was seen to hold; ``note`` says in what."""
        return cls(outcome=Outcome.PASSED, note=note)

    @classmethod
    def failed(cls, findings: Iterable[Finding], note: str = "") -> Verdict:
        """Return the verdict that the law is broken, with at least one finding."""
        found = tuple(findings)
        if not found:
            raise ValueError("a failed verdict needs at least one finding")
        return cls(outcome=Outcome.FAILED, note=note, findings=found)

    @classmethod
    def of(cls, findings: Iterable[Finding], note: str) -> Verdict:
        """Return FAILED when there are findings, else PASSED with ``note``."""
        found = tuple(findings)
        return cls.failed(found, note) if found else cls.passed(note)

    @classmethod
    def of_source(cls, findings: Iterable[Finding], note: str, *, doubt: str = "") -> Verdict:
        """Return FAILED with the findings by place; without any, UNDECIDED because of ``doubt``, else PASSED with ``note``."""
        found = sorted_findings(findings)
        if found:
            return cls.failed(found)
        return cls.undecided(doubt) if doubt else cls.passed(note)

    @classmethod
    def undecided(cls, reason: str) -> Verdict:
        """Return the verdict that the source alone does not show the answer."""
        return cls(outcome=Outcome.UNDECIDED, note=reason)

    @classmethod
    def not_exercised(cls, reason: str | Unavailable | None) -> Verdict:
        """Return the verdict that the needed evidence never occurred."""
        return cls(outcome=Outcome.NOT_EXERCISED, note=str(reason or ""))

    @classmethod
    def not_applicable(cls, reason: str | Unavailable) -> Verdict:
        """Return the verdict that the law does not concern this class."""
        return cls(outcome=Outcome.NOT_APPLICABLE, note=str(reason))

    @classmethod
    def not_seen(cls, reason: str | Unavailable | None, *, irrelevant: Container[Cause] = (Cause.NOTHING_TO_TRAIN,)) -> Verdict:
        """Return NOT_APPLICABLE where the cause is one of ``irrelevant``, else NOT_EXERCISED. A benchmark has nothing to train on."""
        if isinstance(reason, Unavailable) and reason.cause in irrelevant:
            return cls.not_applicable(reason)
        return cls.not_exercised(reason)


def one_per_place(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the first finding at each place."""
    kept: dict[tuple[str, int], Finding] = {}
    for finding in findings:
        kept.setdefault((os.path.abspath(finding.path) if finding.path else "", finding.line), finding)
    return tuple(kept.values())
