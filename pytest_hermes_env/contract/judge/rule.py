"""What a rule is. Rules are values; the engine in `check` runs them.

A rule is one law in one file under `contract/rules`. Its module docstring holds four parts, each introduced by its word
at the start of a line: ``What:``, ``Why:``, ``Fix:`` and ``Source:``. The first line of the docstring is
``HE301 messages-not-final-response``, and the rest of that paragraph states the law as a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from pytest_hermes_env.contract.judge.evidence import Evidence
from pytest_hermes_env.contract.judge.verdict import Verdict
from pytest_hermes_env.source import ClassSource
from pytest_hermes_env.source.finding import Finding, Severity

StaticHalf = Callable[["ClassSource"], "Verdict"]
DynamicHalf = Callable[["Evidence"], "Verdict"]

_SECTION = re.compile(r"^(What|Why|Fix|Source):", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One law: how serious a violation is, and the two halves that can see one.

    ``scenarios`` names the scenarios whose evidence the dynamic half reads; ``more_scenarios`` returns those that it reads only of a
    class with such a source. ``doc`` is the docstring of the rule's module, which begins with its id and name.
    ``holds_for_base_env``: the law is one of Atropos' BaseEnv, and the source can be judged without the Hermes layer.
    """

    doc: str
    severity: Severity
    static: StaticHalf | None = None
    dynamic: DynamicHalf | None = None
    scenarios: tuple[str, ...] = ()
    more_scenarios: Callable[[ClassSource], tuple[str, ...]] | None = None
    holds_for_base_env: bool = False

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
    def seen_in(self) -> tuple[str, ...]:
        """Where its halves look: source, rollout, or both."""
        return tuple(word for word, half in (("source", self.static), ("rollout", self.dynamic)) if half is not None)

    def severity_of(self, finding: Finding) -> Severity:
        """Return the severity of a violation: that of the finding, else that of the rule."""
        return finding.severity or self.severity

    def fails_run(self, findings: Iterable[Finding], *, is_strict: bool = False) -> bool:
        """Tell whether a violation fails the run: one of its findings is an error, or with ``is_strict`` a warning.

        Where the findings are not at hand, the rule's own severity counts.
        """
        heavy = {Severity.ERROR, Severity.WARNING} if is_strict else {Severity.ERROR}
        return not heavy.isdisjoint([self.severity_of(finding) for finding in findings] or [self.severity])

    def fix(self, finding: Finding) -> str:
        """Return how to fix a violation; empty where an error of the environment's own line does not show it."""
        return finding.fix or ("" if finding.raised_by else self.section("Fix"))

    def section(self, title: str) -> str:
        """Return one part of the rule's documentation (What, Why, Fix or Source), unfolded to plain text."""
        pieces = _SECTION.split(self.doc)
        for word, text in zip(pieces[1::2], pieces[2::2], strict=True):
            if word == title:
                return " ".join(text.split())
        raise KeyError(f"{self.id} has no part {title!r}; its parts are {pieces[1::2]}")
