"""Both halves of every rule on one class: the source is read, the scenarios are collected once, the verdicts are joined.

Place in the flow: the pytest doors ask a `ClassContract` for one rule after the other; `collect` runs at the first rule that
needs it.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import linecache
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.cases.finding import cases_beside
from pytest_hermes_env.contract.evidence import Evidence
from pytest_hermes_env.contract.reachable_lines import lines_reached
from pytest_hermes_env.contract.reproduction import reproduction_of
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.contract.statement_at import was_run
from pytest_hermes_env.contract.verdict import Outcome, Verdict, one_per_place
from pytest_hermes_env.garbage_collection import collecting_new_garbage
from pytest_hermes_env.layer import layer_of
from pytest_hermes_env.rollout.cases import Cases, Rung
from pytest_hermes_env.rollout.lines_run import Line, recording_lines
from pytest_hermes_env.rollout.scenario_names import CASES
from pytest_hermes_env.source import ClassSource, read_class
from pytest_hermes_env.source.finding import Finding, Severity
from pytest_hermes_env.types import RealToolsUse

if TYPE_CHECKING:
    from pytest_hermes_env.rollout.collection import Collection
    from pytest_hermes_env.rollout.driver import Collector
    from pytest_hermes_env.rollout.scenario import Scenario


@dataclass(frozen=True, kw_only=True)
class RuleResult:
    """What one rule concluded about one class, from both halves."""

    rule: Rule
    outcome: Outcome
    note: str
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0
    is_excused: bool = False
    because: tuple[str, ...] = ()


class ClassContract:
    """The contract of one class: its source and its collected scenarios, each read once.

    ``server_type`` "vllm" or "sglang" runs the rollouts in token mode. ``rules`` tells those that will be asked about: what they
    need is collected in one go; by default all. ``cases`` are those that a test declares; by
    default those in a file beside the class.
    """

    def __init__(
        self,
        env_class: type,
        *,
        sandbox: str,
        timeout_s: float,
        real_tools: RealToolsUse = "confined",
        server_type: str = "openai",
        rules: Callable[[], Iterable[Rule]] = lambda: ALL_RULES,
        cases: Cases | None = None,
    ) -> None:
        self.env_class = env_class
        self._sandbox = sandbox
        self._real_tools: RealToolsUse = real_tools
        self._timeout_s = timeout_s
        self._server_type = server_type
        self._failure: Exception | None = None
        self._rules = rules
        self._declared = cases
        self._read: dict[str, Verdict] = {}
        self._lines_run: set[Line] = set()

    @functools.cached_property
    def cases(self) -> Cases | None:
        """What the author declares: in a test, or in a file beside the class. Raises: BadCases."""
        return self._declared if self._declared is not None else cases_beside(self.env_class)

    @functools.cached_property
    def source(self) -> ClassSource | None:
        """The class as its file says it; None when there is no file to read."""
        try:
            path = inspect.getsourcefile(self.env_class)
        except TypeError:
            path = None
        read = (read_class(path, name) for name in _written_names(self.env_class)) if path else ()
        return next(filter(None, read), None)

    @functools.cached_property
    def evidence(self) -> Evidence:
        """What the dynamic halves may look at; the scenarios are run when the first rule asks for one."""

        def run_scenarios(names: Iterable[str]) -> Collection:
            asked = frozenset(names)
            try:
                # what other rules will ask for is played at the same time
                with recording_lines(self._files_with_errors, self._lines_run):
                    return self._collector.collect(asked | self._wanted() if asked else ())
            except Exception as error:
                self._failure = error  # told once: every other rule is not played
                raise

        return Evidence(
            env_class=self.env_class,
            source=self.source,
            layer_base=layer_of(self.env_class).base,
            collect=run_scenarios,
            declared=self.cases,
        )

    @functools.cached_property
    def _collector(self) -> Collector:
        from pytest_hermes_env.rollout.driver import Collector  # noqa: PLC0415 - only where rollouts are run

        return Collector(
            self.env_class,
            sandbox=self._sandbox,
            real_tools=self._real_tools,
            timeout_s=self._timeout_s,
            server_type=self._server_type,
            cases=self.cases,
        )

    def _wanted(self) -> frozenset[str]:
        """Return the scenarios that the rules to come will ask for."""
        return frozenset(name for rule in self._rules() for name in rule.scenarios)

    @functools.cached_property
    def _files_with_errors(self) -> frozenset[str]:
        """The files in which the source shows an error that rollouts might not confirm."""
        found: set[str] = set()
        for rule in self._rules():
            if rule.dynamic is not None and rule.rollouts_decide and (verdict := self._static(rule)) is not None:
                found |= {os.path.realpath(item.path) for item in verdict.findings if rule.severity_of(item) is Severity.ERROR}
        return frozenset(found)

    @property
    def rungs(self) -> tuple[Rung, ...]:
        """What the cases earned; empty when they were not played."""
        record = self.scenarios.get(CASES)
        return record.rungs if record is not None else ()

    @property
    def scenarios(self) -> Mapping[str, Scenario]:
        """What was collected so far, by name."""
        played = self._failure is None and "_collector" in vars(self)
        return self._collector.collect(()).scenarios if played else {}

    @property
    def world(self) -> str:
        """What answered the tools of the scenarios; empty when none were run."""
        collector: Collector | None = vars(self).get("_collector")
        return collector.world if collector is not None else ""

    def result(self, rule: Rule) -> RuleResult:
        """Return what ``rule`` concludes about the class."""
        start = time.perf_counter()
        with collecting_new_garbage():
            static, dynamic = self._static(rule), self._dynamic(rule)
        result = joined(rule, static, dynamic, self._lines_run)
        shown = dynamic.findings if dynamic is not None else ()
        findings = self._with_a_test(rule, result.findings, shown)
        return dataclasses.replace(result, findings=findings, seconds=time.perf_counter() - start)

    def _dynamic(self, rule: Rule) -> Verdict | None:
        if rule.dynamic is None or self._failure is None:
            return rule.dynamic(self.evidence) if rule.dynamic is not None else None
        return Verdict.not_exercised(f"not played, because an earlier rule failed with {type(self._failure).__name__}", "HE206")

    def _with_a_test(self, rule: Rule, findings: tuple[Finding, ...], shown: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Return the findings, the first of them with a test that shows the violation alone, where rollouts showed it."""
        if not shown:
            return findings
        scenarios = self.evidence.collection.scenarios
        seen = [(finding, scenarios.get(finding.scenario)) for finding in shown]
        test = reproduction_of(rule.id, seen, self.env_class, self._server_type)
        return (dataclasses.replace(findings[0], reproduction=test), *findings[1:])

    def _static(self, rule: Rule) -> Verdict | None:
        if rule.static is None:
            return None
        if self.source is None:
            return Verdict.undecided("the class has no source file that could be read")
        if rule.id not in self._read:
            self._read[rule.id] = rule.static(self.source)
        return self._read[rule.id]


def _written_names(cls: type) -> Iterator[str]:
    """Yield the qualified names by which a file may define a class: its own, and, where a factory renamed it, those of its methods."""
    yield cls.__qualname__
    codes = (getattr(inspect.unwrap(getattr(member, "__func__", member)), "__code__", None) for member in vars(cls).values())
    names = (code.co_qualname.rpartition(".") for code in codes if code is not None)
    yield from dict.fromkeys(holder for holder, _, name in names if holder and name in vars(cls))


def joined(
    rule: Rule, static: Verdict | None, dynamic: Verdict | None, lines_run: AbstractSet[Line] = frozenset()
) -> RuleResult:
    """Return one result: a violation seen by either half fails; a law has passed only when the half that ran rollouts says so.

    ``lines_run`` are the lines that the rollouts ran: an error in the source that they reached and did not confirm is a warning.
    """
    halves = [half for half in (static, dynamic) if half is not None]
    read = [_weighed(rule, finding, dynamic, lines_run) for finding in static.findings] if static else []
    findings = _merged(rule, read, dynamic)
    if findings:
        notes = "; ".join(half.note for half in halves if half.note)
        return RuleResult(rule=rule, outcome=Outcome.FAILED, note=notes, findings=findings)
    if dynamic is None:
        only = static or Verdict.not_exercised("this rule has no check that applies here")
        return RuleResult(rule=rule, outcome=only.outcome, note=only.note)
    if dynamic.outcome is Outcome.NOT_EXERCISED and static is not None and static.outcome is Outcome.NOT_APPLICABLE:
        return RuleResult(rule=rule, outcome=static.outcome, note=static.note)
    note = dynamic.note
    is_reported = bool(dynamic.because)  # then the same note for all rules is one line of the ledger
    if dynamic.outcome is Outcome.NOT_EXERCISED and static is not None and static.outcome is Outcome.PASSED and not is_reported:
        note = f"{note} (in the source: {static.note})"
    return RuleResult(rule=rule, outcome=dynamic.outcome, note=note, is_excused=dynamic.is_excused, because=dynamic.because)


def _merged(rule: Rule, static: list[Finding], dynamic: Verdict | None) -> tuple[Finding, ...]:
    """Join what both halves found, one finding per place.

    The source shows the line where a rollout often shows only the method that it happened in: such a finding says nothing more
    beside one from the source in that method, or in one that it calls, which then names the scenario that confirmed it.
    """
    seen = dynamic.findings if dynamic is not None else ()
    more = [
        dataclasses.replace(finding, is_confirmed=True)
        for finding in seen
        if not (_is_definition(finding) and any(_holds(finding, item) for item in static))
    ]
    return tuple(sorted(one_per_place([*static, *more]), key=functools.partial(rank, rule)))


def rank(rule: Rule, finding: Finding) -> tuple[int, bool]:
    """Return the place of a finding among those of its rule: the most severe first, and what rollouts showed before the rest."""
    return list(Severity).index(rule.severity_of(finding)), not finding.is_confirmed


def _weighed(rule: Rule, finding: Finding, dynamic: Verdict | None, lines_run: AbstractSet[Line]) -> Finding:
    """Return a finding from the source with what the rollouts said: they confirmed it, did not, or did not check it."""
    if dynamic is None:
        return dataclasses.replace(finding, confirmation="not checked in rollouts: this rule reads the source only")
    if dynamic.outcome is Outcome.PASSED:
        if not rule.rollouts_decide or rule.severity_of(finding) is not Severity.ERROR:
            return dataclasses.replace(finding, confirmation=f"not confirmed: {dynamic.note}")
        if not was_run(finding.path, finding.line, lines_run):
            return dataclasses.replace(finding, confirmation="not checked in rollouts: no rollout ran this line")
        confirmation = f"not confirmed, therefore a warning: the rollouts ran this line, and {dynamic.note}"
        return dataclasses.replace(finding, confirmation=confirmation, severity=Severity.WARNING)
    if dynamic.outcome is not Outcome.FAILED:
        return dataclasses.replace(finding, confirmation=f"not checked in rollouts: {dynamic.note}")
    same = next((item for item in dynamic.findings if _holds(item, finding)), None)
    if same is None:
        places = ", ".join(dict.fromkeys(f"line {item.line}" for item in dynamic.findings))
        return dataclasses.replace(finding, confirmation=f"not confirmed here: rollouts violated this rule at {places}")
    told = "" if same.message == finding.message else f": {same.message}"
    return dataclasses.replace(
        finding, scenario=finding.scenario or same.scenario, confirmation=f"confirmed{told}", is_confirmed=True
    )


def _holds(outer: Finding, inner: Finding) -> bool:
    """Tell whether ``outer`` is at the place of ``inner``, or at the line that begins the function or class around it.

    What a function calls in its file counts as around it: a rollout often shows no more than the method that it began in.
    """
    if _file(outer) != _file(inner):
        return False
    if outer.line == inner.line:
        return True
    return _is_definition(outer) and inner.line in lines_reached(outer.path, outer.line)


def _is_definition(finding: Finding) -> bool:
    return linecache.getline(finding.path, finding.line).lstrip().startswith(("def ", "async def ", "class ", "@"))


def _file(finding: Finding) -> str:
    return str(Path(finding.path).absolute()) if finding.path else ""
