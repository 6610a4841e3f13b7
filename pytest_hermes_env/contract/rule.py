"""What a rule is, and what it may say. Rules are values; the engine in `check` runs them.

A rule is one law in one file under `contract/rules`. Its module docstring holds four parts, each introduced by its word
at the start of a line: ``What:``, ``Why:``, ``Fix:`` and ``Source:``. The first line of the docstring is
``HE301 messages-not-final-response``, and the rest of that paragraph states the law as a sentence.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_hermes_env.rollout.unavailable import Cause, Unavailable
from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_hermes_env.contract.evidence import Evidence
    from pytest_hermes_env.source import ClassSource


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


StaticHalf = Callable[["ClassSource"], Verdict]
DynamicHalf = Callable[["Evidence"], Verdict]

_SECTION = re.compile(r"^(What|Why|Fix|Source):", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One law: how serious a violation is, and the two halves that can see one.

    ``scenarios`` names the scenarios whose evidence the dynamic half reads. ``doc`` is the docstring of the rule's module, which begins with its id and name.
    ``former_names`` select the rule like its name.
    """

    doc: str
    severity: Severity
    static: StaticHalf | None = None
    dynamic: DynamicHalf | None = None
    scenarios: tuple[str, ...] = ()
    former_names: tuple[str, ...] = ()

    @cached_property
    def id(self) -> str:
        """The id, such as HE301."""
        return self.doc.split(maxsplit=2)[0]

    @cached_property
    def name(self) -> str:
        """The name, such as messages-not-final-response."""
        return self.doc.split(maxsplit=2)[1]

    @property
    def label(self) -> str:
        """``HE301-messages-not-final-response``, as pytest items show it."""
        return f"{self.id}-{self.name}"

    @property
    def former_labels(self) -> tuple[str, ...]:
        """``HE603-rollouts-do-not-meet`` for each former name."""
        return tuple(f"{self.id}-{name}" for name in self.former_names)

    def is_called(self, word: str) -> bool:
        """Tell whether ``word`` is the id, the name or the label of the rule, or a former one; case does not matter."""
        names = (self.id, self.name, self.label, *self.former_names, *self.former_labels)
        return word.lower() in {name.lower() for name in names}

    def severity_of(self, finding: Finding) -> Severity:
        """Return what a violation weighs: as the finding says, else as the rule does."""
        return finding.severity or self.severity

    def weighs(self, findings: Iterable[Finding], *, is_strict: bool = False) -> bool:
        """Tell whether a violation fails the run: one of its findings is an error, or with ``is_strict`` a warning.

        Where the findings are not at hand, the rule's own severity counts.
        """
        heavy = {Severity.ERROR, Severity.WARNING} if is_strict else {Severity.ERROR}
        return not heavy.isdisjoint([self.severity_of(finding) for finding in findings] or [self.severity])

    def section(self, title: str) -> str:
        """Return one part of the rule's documentation (What, Why, Fix or Source), unfolded to plain text."""
        pieces = _SECTION.split(self.doc)
        for word, text in zip(pieces[1::2], pieces[2::2], strict=True):
            if word == title:
                return " ".join(text.split())
        raise KeyError(f"{self.id} has no part {title!r}; its parts are {pieces[1::2]}")
