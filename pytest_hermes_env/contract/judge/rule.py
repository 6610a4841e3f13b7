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
_PART = re.compile(r"^## (Bad|Good)\s*$", re.MULTILINE)
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


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


@dataclass(frozen=True, kw_only=True)
class Example:
    """One block of code, the words above it, and whether the rule finds a violation in it."""

    rule_id: str
    is_bad: bool
    text: str
    code: str


def examples_of(rule_id: str) -> tuple[Example, ...]:
    """Return the examples of a rule, in the order of its file; none when it has no file yet. Raises: ValueError.

    ``contract/examples/HE301.md`` holds the parts ``## Bad`` and ``## Good``, each with at least one block of Python: methods of an
    environment, or a whole file where the violation lies outside of methods.
    """
    from importlib import resources  # noqa: PLC0415  # only where examples are shown

    file = resources.files("pytest_hermes_env.contract").joinpath("examples", f"{rule_id}.md")
    if not file.is_file():
        return ()
    pieces = _PART.split(file.read_text(encoding="utf-8"))
    found = [
        Example(rule_id=rule_id, is_bad=part == "Bad", text=" ".join(before.split()), code=code)
        for part, body in zip(pieces[1::2], pieces[2::2], strict=True)
        for before, code in _blocks(body)
    ]
    if {example.is_bad for example in found} != {True, False}:
        raise ValueError(f"contract/examples/{rule_id}.md needs the parts '## Bad' and '## Good', each with a ```python block")
    return tuple(found)


def _blocks(body: str) -> list[tuple[str, str]]:
    pieces = _BLOCK.split(body)
    return list(zip(pieces[0::2], pieces[1::2], strict=False))
