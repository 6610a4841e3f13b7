"""What a rule is. Rules are values; the engine in `check` runs them.

A rule is one law in one file under `contract/rules`. Its module docstring holds four parts, each introduced by its word
at the start of a line: ``What:``, ``Why:``, ``Fix:`` and ``Source:``. The first line of the docstring is
``HE301 messages-not-final-response``, and the rest of that paragraph states the law as a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_hermes_env.contract.evidence import Evidence
    from pytest_hermes_env.contract.verdict import Verdict
    from pytest_hermes_env.source import ClassSource


StaticHalf = Callable[["ClassSource"], "Verdict"]
DynamicHalf = Callable[["Evidence"], "Verdict"]

_SECTION = re.compile(r"^(What|Why|Fix|Source):", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One law: how serious a violation is, and the two halves that can see one.

    ``scenarios`` names the scenarios whose evidence the dynamic half reads; ``more_scenarios`` returns those that it reads only of a
    class with such a source. ``doc`` is the docstring of the rule's module, which begins with its id and name.
    ``former_names`` select the rule like its name.
    ``holds_for_base_env``: the law is one of Atropos' BaseEnv, and the source can be judged without the Hermes layer.
    """

    doc: str
    severity: Severity
    static: StaticHalf | None = None
    dynamic: DynamicHalf | None = None
    scenarios: tuple[str, ...] = ()
    more_scenarios: Callable[[ClassSource], tuple[str, ...]] | None = None
    former_names: tuple[str, ...] = ()
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

    @property
    def former_labels(self) -> tuple[str, ...]:
        """``HE603-rollouts-do-not-meet`` for each former name."""
        return tuple(f"{self.id}-{name}" for name in self.former_names)

    def is_called(self, word: str) -> bool:
        """Tell whether ``word`` is the id, the name or the label of the rule, or a former one; case does not matter."""
        names = (self.id, self.name, self.label, *self.former_names, *self.former_labels)
        return word.lower() in {name.lower() for name in names}

    def severity_of(self, finding: Finding) -> Severity:
        """Return the severity of a violation: that of the finding, else that of the rule."""
        return finding.severity or self.severity

    def fails_run(self, findings: Iterable[Finding], *, is_strict: bool = False) -> bool:
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
