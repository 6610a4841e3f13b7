"""What one half of a rule concludes about a class: a verdict, with its findings or with the reason why there is none."""

from __future__ import annotations

import enum
import os
from collections.abc import Container, Iterable
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
_ACCEPTABLE = frozenset({Cause.CHAT_MODE, Cause.NO_JUDGE, Cause.NOT_REACHED, Cause.NOTHING_TO_TRAIN})


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

    The last two fields are about NOT_EXERCISED: ``acceptable_gap`` when the reason is the environment's good right, such as tools of
    a kind that it does not have; ``blocked_by`` are the rules that report what kept this one from being exercised.
    """

    outcome: Outcome
    note: str = ""
    findings: tuple[Finding, ...] = ()
    acceptable_gap: bool = False
    blocked_by: tuple[str, ...] = ()

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
    def not_exercised(cls, reason: str | Unavailable | None, *blocked_by: str, acceptable_gap: bool = False) -> Verdict:
        """Return the verdict that the needed evidence never occurred: see the fields of the class for the other arguments."""
        if isinstance(reason, Unavailable):
            blocked_by += _REPORTED.get(reason.cause, ())
            acceptable_gap = acceptable_gap or reason.cause in _ACCEPTABLE
        return cls(outcome=Outcome.NOT_EXERCISED, note=str(reason or ""), blocked_by=blocked_by, acceptable_gap=acceptable_gap)

    @classmethod
    def not_applicable(cls, reason: str | Unavailable) -> Verdict:
        """Return the verdict that the law does not concern this class."""
        return cls(outcome=Outcome.NOT_APPLICABLE, note=str(reason))

    @classmethod
    def not_seen(
        cls,
        reason: str | Unavailable | None,
        *blocked_by: str,
        irrelevant: Container[Cause] = (Cause.NOTHING_TO_TRAIN,),
        acceptable_gap: bool = False,
    ) -> Verdict:
        """Return NOT_APPLICABLE where the cause is one of ``irrelevant``, else NOT_EXERCISED. A benchmark has nothing to train on."""
        if isinstance(reason, Unavailable) and reason.cause in irrelevant:
            return cls.not_applicable(reason)
        return cls.not_exercised(reason, *blocked_by, acceptable_gap=acceptable_gap)


def one_per_place(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the first finding at each place."""
    kept: dict[tuple[str, int], Finding] = {}
    for finding in findings:
        kept.setdefault((os.path.abspath(finding.path) if finding.path else "", finding.line), finding)
    return tuple(kept.values())
