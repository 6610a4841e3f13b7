"""Both halves of every rule on one class: the source is read, what was played is read, the verdicts are combined.

Place in the flow: whoever judges asks a `ClassContract` for one rule after the other; what is played comes from ``play``, once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_hermes_env import errors
from pytest_hermes_env.contract.judge.causes import holds, with_causes
from pytest_hermes_env.contract.judge.evidence import Evidence, NewerPlayNeeded
from pytest_hermes_env.contract.judge.rule import Rule
from pytest_hermes_env.contract.judge.statements import lines_of_definition, was_run
from pytest_hermes_env.contract.judge.subject import Subject
from pytest_hermes_env.contract.judge.verdict import Outcome, Verdict, one_per_place
from pytest_hermes_env.errors import HermesEnvError
from pytest_hermes_env.play.class_record import ClassRecord
from pytest_hermes_env.play.scenario import CASES, Collection, Rung
from pytest_hermes_env.source import ClassSource
from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from pytest_hermes_env.play.child import Job

Line = tuple[str, int]
"""The real path of a file, and a line of it."""
OWNER_OF_IMPORTS = "HE110"
"""The rule that reports an import which fails, hangs or ends the process."""
FIX_OF_IMPORT = (
    "Import the file alone (`python -m my_env`) and read the traceback. Install what is missing where the tests run, and move work "
    "that fails, exits or takes long into `setup()`."
)


class ClassContract:
    """The contract of one class. ``play`` returns what was played of it; it is called when the first rule asks."""

    def __init__(self, subject: Subject, play: Callable[[], Collection]) -> None:
        self.subject = subject
        self._play = play
        self._failure: Exception | None = None
        self._read: dict[str, Verdict] = {}

    @property
    def source(self) -> ClassSource | None:
        """The class as its file says it; None when there is no file to read."""
        return self.subject.source

    @functools.cached_property
    def evidence(self) -> Evidence:
        """What the dynamic halves read. Raises: it could not be played → the error of whoever plays, once."""
        try:
            collection = self._play()
        except Exception as error:
            self._failure = error  # raised once: every other rule is not played
            raise
        return Evidence(collection=collection, source=self.source)

    def files_with_errors(self, rules: Iterable[Rule]) -> frozenset[str]:
        """Return the files in which the source shows an error that rollouts might not confirm."""
        found: set[str] = set()
        for rule in rules:
            with contextlib.suppress(Exception):  # one that raises says so when it is asked
                if rule.dynamic is not None and (verdict := self._static(rule)) is not None:
                    errors = (item for item in verdict.findings if rule.severity_of(item) is Severity.ERROR)
                    found |= {os.path.realpath(item.path) for item in errors}
        return frozenset(found)

    def job(self, rules: Iterable[Rule], **fields: Any) -> Job:
        """Return what must be played so that these rules can judge; ``fields`` are further ones of `Job`."""
        from pytest_hermes_env.play.child import Job  # noqa: PLC0415 - only where something is played

        chosen, subject = tuple(rules), self.subject
        return Job(
            target=subject.target,
            about=subject.about,
            env_class=subject.env_class,
            scenarios=scenarios_for(chosen, subject.source),
            lines_of=tuple(sorted(self.files_with_errors(chosen))),
            **fields,
        )

    @property
    def rungs(self) -> tuple[Rung, ...]:
        """What the cases earned; empty when they were not played."""
        played = vars(self).get("evidence")
        record = played.collection.scenarios.get(CASES) if played is not None else None
        return record.rungs if record is not None else ()

    @property
    def sandbox(self) -> str:
        """What answered the tools of the scenarios; empty when none were played."""
        played = vars(self).get("evidence")
        return played.collection.sandbox if played is not None else ""

    def result(self, rule: Rule) -> Verdict:
        """Return what ``rule`` concludes about the class, from both halves."""
        static, dynamic = self._static(rule), self._dynamic(rule)
        verdict = combined(rule, static, dynamic, self._lines_run)
        shown = dynamic.findings if dynamic is not None else ()
        return dataclasses.replace(verdict, findings=self._with_a_test(rule, verdict.findings, shown))

    @functools.cached_property
    def _lines_run(self) -> frozenset[Line]:
        played = vars(self).get("evidence")
        lines = played.collection.lines_run if played is not None else {}
        return frozenset((path, line) for path, numbers in lines.items() for line in numbers)

    def _dynamic(self, rule: Rule) -> Verdict | None:
        if rule.dynamic is None and rule.id != OWNER_OF_IMPORTS:
            return None
        if self._failure is not None:
            return Verdict.not_exercised(
                f"not played, because an earlier rule failed with {type(self._failure).__name__}", "HE206"
            )
        collection = self.evidence.collection
        if collection.cls is None:
            return self._of_import(rule, collection)
        if rule.dynamic is None:
            return None
        try:
            return with_causes(rule.dynamic(self.evidence), collection)
        except NewerPlayNeeded as missing:
            return Verdict.not_exercised(f"the evidence has no scenario {missing}: this rule needs a newer play")

    def _of_import(self, rule: Rule, collection: Collection) -> Verdict:
        failed = collection.import_error
        how = failed.how if failed is not None else "nothing was played"
        if rule.id != OWNER_OF_IMPORTS or failed is None:
            return Verdict.not_exercised(f"the class could not be imported: {how}", OWNER_OF_IMPORTS)
        place = failed.place
        line = self.source.line if self.source is not None else 1
        found = Finding(
            message=how if "cannot be imported" in how else f"the import did not end: {how}",
            path=place.path or self.subject.path,
            line=place.line or line,
            severity=Severity.ERROR,
            fix=failed.advice or ("" if place.path and "NetworkBlocked" not in how else FIX_OF_IMPORT),
            cause=(how, place.path, place.line) if place.path else None,
        )
        return Verdict.failed([found])

    def _with_a_test(self, rule: Rule, findings: tuple[Finding, ...], shown: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Return the findings, the first of them with a test that shows the violation alone, where rollouts showed it."""
        if not shown or self.evidence.collection.cls is None:
            return findings
        test = _test_of(rule.id, self.evidence.cls, self.evidence.collection.server_type)
        return (dataclasses.replace(findings[0], reproduction=findings[0].reproduction or test), *findings[1:])

    def _static(self, rule: Rule) -> Verdict | None:
        if rule.static is None:
            return None
        if self.source is None:
            return Verdict.undecided("the class has no source file that could be read")
        if rule.id not in self._read:
            self._read[rule.id] = rule.static(self.source)
        return self._read[rule.id]


def combined(
    rule: Rule, static: Verdict | None, dynamic: Verdict | None, lines_run: AbstractSet[Line] = frozenset()
) -> Verdict:
    """Return one verdict: a violation seen by either half fails; a law has passed only when the half that ran rollouts says so.

    ``lines_run`` are the lines that the rollouts ran: an error in the source that they reached and did not confirm is a warning.
    """
    read = [_with_confirmation(rule, finding, dynamic, lines_run) for finding in static.findings] if static else []
    if findings := _merged(rule, read, dynamic):
        return Verdict.failed(findings, "; ".join(half.note for half in (static, dynamic) if half is not None and half.note))
    if dynamic is None:
        return static or Verdict.not_exercised("this rule has no check that applies here")
    if static is not None and static.outcome is Outcome.NOT_APPLICABLE and dynamic.outcome is Outcome.NOT_EXERCISED:
        return static
    return dynamic


def _merged(rule: Rule, static: list[Finding], dynamic: Verdict | None) -> tuple[Finding, ...]:
    """Join what both halves found, one finding per place, the first of the most severe.

    The source shows the line where a rollout often shows only the method that it happened in: such a finding says nothing more
    than one from the source in that method, which then names the scenario that confirmed it.
    """
    seen = dynamic.findings if dynamic is not None else ()
    more = [
        dataclasses.replace(finding, is_confirmed=True)
        for finding in seen
        if not (lines_of_definition(finding.path, finding.line) and any(holds(finding, item) for item in static))
    ]
    found = sorted([*static, *more], key=lambda finding: rank(rule, finding)[0])
    return tuple(sorted(one_per_place(found), key=functools.partial(rank, rule)))


def rank(rule: Rule, finding: Finding) -> tuple[int, bool]:
    """Return the place of a finding among those of its rule: the most severe first, and what rollouts showed before the rest."""
    return list(Severity).index(rule.severity_of(finding)), not finding.is_confirmed


def _with_confirmation(rule: Rule, finding: Finding, dynamic: Verdict | None, lines_run: AbstractSet[Line]) -> Finding:
    """Return a finding from the source with what the rollouts said: they confirmed it, did not, or did not check it."""
    if finding.is_confirmed:  # by the source itself: no rollout of the other half is about it
        return finding
    if dynamic is None:
        return dataclasses.replace(finding, confirmation="not checked in rollouts: this rule reads the source only")
    if dynamic.outcome is Outcome.PASSED:
        if rule.severity_of(finding) is not Severity.ERROR:
            return dataclasses.replace(finding, confirmation=f"not confirmed: {dynamic.note}")
        if not was_run(finding.path, finding.line, lines_run):
            return dataclasses.replace(finding, confirmation="not checked in rollouts: no rollout ran this line")
        confirmation = f"not confirmed, therefore a warning: the rollouts ran this line, and {dynamic.note}"
        return dataclasses.replace(finding, confirmation=confirmation, severity=Severity.WARNING)
    if dynamic.outcome is not Outcome.FAILED:
        return dataclasses.replace(finding, confirmation=f"not checked in rollouts: {dynamic.note}")
    same = next((item for item in dynamic.findings if holds(item, finding)), None)
    if same is None:
        places = ", ".join(dict.fromkeys(f"line {item.line}" for item in dynamic.findings))
        return dataclasses.replace(finding, confirmation=f"not confirmed here: rollouts violated this rule at {places}")
    told = "" if same.message == finding.message else f": {same.message}"
    return dataclasses.replace(
        finding, scenario=finding.scenario or same.scenario, confirmation=f"confirmed{told}", is_confirmed=True
    )


def _test_of(rule_id: str, cls: ClassRecord, server_type: str = "openai") -> str:
    """Return a short test, ready to paste, that asks this one rule; nothing for a class that has no name to import."""
    if "<locals>" in cls.name:
        return ""
    mode = "" if server_type == "openai" else f', server_type="{server_type}"'
    return "\n".join(
        [
            "from pytest_hermes_env import check_rule",
            "",
            f"from {_module_of(cls)} import {cls.name.partition('.')[0]}",
            "",
            "",
            f"def test_{rule_id.lower()}():",
            f'    check_rule({cls.name}, "{rule_id}"{mode})',
            "",
        ]
    )


def _module_of(cls: ClassRecord) -> str:
    """Return the name to import: that of the file where a second file of the same name was loaded under another one."""
    stem = Path(cls.place.path).stem
    return stem if stem and cls.module.startswith(f"{stem}_") else cls.module


def scenarios_for(rules: Iterable[Rule], source: ClassSource | None) -> tuple[str, ...]:
    """Return the scenarios that rules read of a class, once each."""
    names: dict[str, None] = {}
    for rule in rules:
        names |= dict.fromkeys(rule.scenarios)
        if rule.more_scenarios is not None and source is not None:
            names |= dict.fromkeys(rule.more_scenarios(source))
    return tuple(names)


def refused(kind: str, text: str) -> HermesEnvError:
    """Return the error with which a player refused to play."""
    cls = getattr(errors, kind, HermesEnvError)
    return cls(text) if isinstance(cls, type) and issubclass(cls, HermesEnvError) else HermesEnvError(text)
