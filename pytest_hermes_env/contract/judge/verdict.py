"""What one half of a rule concludes about a class: a verdict, with its findings or with the reason why there is none."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_hermes_env.play.scenario import Cause, Unavailable
from pytest_hermes_env.source.finding import Finding, sorted_findings

_REPORTED = {
    Cause.CANNOT_BUILD: ("HE206", "HE105", "HE101"),
    Cause.SETUP_FAILED: ("HE206",),
    Cause.SETUP_NOT_ASYNC: ("HE102",),
    Cause.NO_ITEM: ("HE206", "HE202", "HE102"),
}
"""The rules that report why a scenario was not played."""
_IRRELEVANT = frozenset({Cause.CHAT_MODE, Cause.NO_ANSWER, Cause.NO_GOLD, Cause.NO_JUDGE, Cause.NOTHING_TO_TRAIN})
"""Causes for which a rule does not concern the class, or the run."""


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
    """What one half of a rule concluded, and from what. ``note`` says what was looked at, or why nothing was.

    ``blocked_by``, of NOT_EXERCISED, are the rules that report what kept this one from being exercised. ``questions`` are for the author,
    whatever the outcome is.
    """

    outcome: Outcome
    note: str = ""
    findings: tuple[Finding, ...] = ()
    blocked_by: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()

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
        """Return FAILED when there are findings, which speak for themselves, else PASSED with ``note``."""
        found = tuple(findings)
        return cls.failed(found) if found else cls.passed(note)

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
    def not_exercised(cls, reason: str | Unavailable | None, *blocked_by: str) -> Verdict:
        """Return the verdict that the needed evidence never occurred, NOT_APPLICABLE where the cause says that it need not."""
        if isinstance(reason, Unavailable):
            if reason.cause in _IRRELEVANT:
                return cls.not_applicable(reason)
            blocked_by += _REPORTED.get(reason.cause, ())
        return cls(outcome=Outcome.NOT_EXERCISED, note=str(reason or ""), blocked_by=blocked_by)

    @classmethod
    def not_applicable(cls, reason: str | Unavailable) -> Verdict:
        """Return the verdict that the law does not concern this class."""
        return cls(outcome=Outcome.NOT_APPLICABLE, note=str(reason))


def one_per_place(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the first finding at each place; one with a case of its own stands for itself."""
    kept: dict[tuple[str, int, str], Finding] = {}
    for finding in findings:
        kept.setdefault((os.path.abspath(finding.path) if finding.path else "", finding.line, finding.reproduction), finding)
    return tuple(kept.values())
