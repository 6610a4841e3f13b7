"""The contract as pytest sees it: one item per rule, a check per decorated test, one ledger per class at the end.

Place in the flow: items and checks leave a row each (`rows`), `finish` makes ledgers and reports of all rows.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_hermes_env.contract.judge.causes import reported_once
from pytest_hermes_env.contract.judge.engine import ClassContract, rank, refused
from pytest_hermes_env.contract.judge.rule import Rule
from pytest_hermes_env.contract.judge.subject import Subject, subject_of, subjects_of, unknown_setting
from pytest_hermes_env.contract.judge.verdict import Outcome, Verdict
from pytest_hermes_env.contract.ledger.ladder import ladder_rows
from pytest_hermes_env.contract.ledger.ledger import Ledger, LedgerEntry
from pytest_hermes_env.contract.ledger.settings import Settings, settings_for
from pytest_hermes_env.contract.ledger.waivers import Waivers, waivers_in
from pytest_hermes_env.contract.reports.text import compact_lines, finding_lines
from pytest_hermes_env.contract.rules import rule_words, select_rules
from pytest_hermes_env.contract.run.rows import ROW, row_of
from pytest_hermes_env.errors import (
    BadCases,
    BadSettings,
    BadTarget,
    HermesEnvError,
    NetworkBlocked,
    UsageError,
    shorten,
)
from pytest_hermes_env.live.settings import hosts_of_run
from pytest_hermes_env.options import attack_to_play, real_tools_of, settings_to_play
from pytest_hermes_env.play.attack_plan import AttackPlan
from pytest_hermes_env.play.cases.values import Cases
from pytest_hermes_env.play.evidence_file import PlayedClass, read_evidence
from pytest_hermes_env.play.scenario import CASES, Collection
from pytest_hermes_env.redaction.shown_text import shown_path
from pytest_hermes_env.source.finding import Finding

if TYPE_CHECKING:
    from pytest_hermes_env.contract.run.plays import Plays
    from pytest_hermes_env.play.child import Job


class ContractSession:
    """The classes that are checked in this pytest run; each is read and played once per process."""

    def __init__(self, config: pytest.Config, make_plays: Callable[[], Plays]) -> None:
        self._config = config
        self._make_plays = make_plays
        self._contracts: dict[object, CheckedClass] = {}
        self._played: dict[CheckedClass, PlayedClass] = {}
        self.notes: list[str] = []
        """What else the end of the run reports."""

    @functools.cached_property
    def plays(self) -> Plays:
        """What the run plays; only judging needs none of it."""
        return self._make_plays()

    def contract(self, subject: type | Subject) -> CheckedClass:
        """Return the contract of a class."""
        key = subject if isinstance(subject, type) else subject.target
        if key not in self._contracts:
            made = subject_of(subject) if isinstance(subject, type) else subject
            settings = settings_of(made.path, str(self._config.rootpath))
            if unknown := unknown_setting(settings_to_play(self._config), made):
                raise pytest.UsageError(unknown)
            checked = CheckedClass(
                ClassContract(made, lambda: self._collection(checked)),
                settings,
                mode=self._config.getoption("hermes_mode"),
                is_strict=bool(self._config.getoption("hermes_strict")) or settings.strict,
            )
            self._contracts[key] = checked
        return self._contracts[key]

    def _collection(self, checked: CheckedClass) -> Collection:
        """Return what was played of a class; the first one that asks lets all classes of the run be played.

        Raises: the player refused to play it → its error.
        """
        if checked not in self._played:
            self._play([found for found in self._contracts.values() if found not in self._played and self.rules_of(found)])
        played = self._played[checked]
        if played.refusal is not None:
            raise refused(*played.refusal)
        return played.collection

    def _play(self, contracts: list[CheckedClass]) -> None:
        """Play classes that this run has not played; another worker of it may have."""
        played = self.plays.played([self._job(checked) for checked in contracts])
        self._played.update(zip(contracts, played, strict=True))
        for checked in contracts:
            checked.blocked = self._played[checked].blocked

    def _job(self, checked: CheckedClass) -> Job:
        """Return what must be played of a class so that the selected rules can judge."""
        from pytest_hermes_env.play.child import coverage_settings  # noqa: PLC0415 - only where something is played

        return checked.contract.job(
            self.rules_of(checked),
            sandbox=self._config.getoption("hermes_sandbox"),
            real_tools=real_tools_of(self._config),
            timeout_s=self._config.getoption("hermes_timeout"),
            server_type=self._server_type(),
            hosts=tuple(sorted(hosts_of_run(self._config))),
            coverage=coverage_settings(),
            cases=self._cases_of(checked),
            settings=settings_to_play(self._config),
            effort=self._config.getoption("hermes_effort"),
            attack=AttackPlan.checked(attack_to_play(self._config)),
        )

    def rules_of(self, checked: CheckedClass) -> list[Rule]:
        """Return the rules of the class whose tests this run has selected."""
        return [check.rule for check in self._checks(checked)]

    def _checks(self, checked: CheckedClass) -> list[RuleCheck]:
        session: pytest.Session | None = self._config.pluginmanager.getplugin("session")
        checks = [_check_of(item) for item in getattr(session, "items", ())]
        return [check for check in checks if check is not None and self.contract(check.subject) is checked]

    def _cases_of(self, checked: CheckedClass) -> Cases | None:
        """Return the cases that a test of this run declares. Raises: BadCases."""
        declared = list({id(check.cases): check.cases for check in self._checks(checked) if check.cases is not None}.values())
        if len(declared) > 1:
            places = " and ".join(dict.fromkeys(shown_path(cases.path) for cases in declared))
            name = checked.contract.subject.name
            raise BadCases(f"{name} has cases declared twice in this run, in {places}: declare them once")
        return declared[0] if declared else None

    def _server_type(self) -> str:
        has_tokens = self._config.getoption("hermes_mode") == "token"
        return str(self._config.getoption("hermes_server_type")) if has_tokens else "openai"

    def keep_evidence(self, file: str) -> None:
        """Keep what the run has played."""
        try:
            if self.plays.keep(file):
                self.notes.append(f"wrote {shown_path(file)}")
        except UsageError as error:
            self.notes.append(f"error: {error}")

    def items_of_evidence(self, session: pytest.Session) -> Iterable[pytest.Item]:
        """Yield one item per rule for each class of the file that ``--hermes-judge`` names. Raises: UsageError."""
        try:
            classes = read_evidence(self._config.getoption("hermes_judge"))
        except UsageError as error:
            raise pytest.UsageError(f"--hermes-judge: {error}") from error
        for played in classes:
            subject = Subject.from_evidence(played.target, played.header["about"])
            checked = self.contract(subject)
            checked.mode = "chat" if played.header["server_type"] == "openai" else "token"
            checked.blocked = played.blocked
            self._played[checked] = played
            if subject.about["sha256"] != played.header["about"]["sha256"]:
                self.notes.append(
                    f"{shown_path(subject.path)} {'changed' if os.path.exists(subject.path) else 'is not there any more'}; rules that "
                    f"read the source judge {'it as it is now' if os.path.exists(subject.path) else 'nothing'}: play it again"
                )
            collector = ContractCollector.from_parent(session, name=played.target, nodeid=played.target)
            yield from collector.items_of(subject, self)

    def items_of_targets(self, session: pytest.Session) -> Iterable[pytest.Item]:
        """Yield one item per rule for each class that ``--hermes-env`` names, and one that fails for each target without one.

        Nothing is imported. Raises: UsageError where no target has a class.
        """
        unusable: list[tuple[str, Exception]] = []
        count = 0
        for target in self._config.getoption("hermes_env"):
            try:
                subjects = subjects_of(target)
                for subject in subjects:
                    self.contract(subject).contract.subject.check_cases()
            except (BadCases, BadTarget, BadSettings) as error:
                unusable.append((target, error))
                continue
            count += len(subjects)
            for subject in subjects:
                name = shown_path(subject.path) if os.path.isdir(target) else target
                yield from ContractCollector.from_parent(session, name=name, nodeid=name).items_of(subject, self)
        if unusable and not count:
            raise pytest.UsageError("\n".join(f"--hermes-env {target}: {error}" for target, error in unusable))
        for target, failure in unusable:
            yield UnusableTarget.from_parent(session, name=target, nodeid=target, error=failure)

    def items_of_other_rules(self, items: Iterable[pytest.Item], words: Iterable[str]) -> list[pytest.Item]:
        """Return the items of rules that ``words`` (ids, beginnings of ids, names) do not select."""
        chosen = select_rules(rule_words(words))
        return [item for item in items if (check := _check_of(item)) is not None and check.rule not in chosen]


class CheckedClass:
    """A class with what its project says about it."""

    def __init__(self, contract: ClassContract, settings: Settings, mode: str, *, is_strict: bool) -> None:
        self.contract = contract
        self.settings = settings
        self.mode = mode
        self.is_strict = is_strict
        self.blocked = ""
        """What the class reached for on other machines, until a test has reported it."""
        self._once: dict[Rule, Verdict] | None = None

    @property
    def subject(self) -> str:
        """The class as the ledger names it."""
        return self.contract.subject.label

    @functools.cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that the project selects."""
        return select_rules(self.settings.select, self.settings.ignore)

    @functools.cached_property
    def waivers(self) -> Waivers:
        """The waivers in pyproject.toml and in the files of the class."""
        source = self.contract.source
        return waivers_in(source.module.reader.modules if source is not None else (), self.settings)

    def checked(self, rule: Rule, selected: Iterable[Rule] = ()) -> Ledger:
        """Return a ledger with the one entry of ``rule``, waivers applied; ``selected`` are the rules of the run."""
        start = time.perf_counter()
        verdict = self._verdict(rule, selected)
        entry = LedgerEntry.of(rule, verdict, time.perf_counter() - start, is_strict=self.is_strict)
        entry, source = self.waivers.applied(entry), self.contract.source
        if entry.is_open and source is not None:  # what is not judged has no place but the class
            accepted = self.waivers.accepts(rule.id, Finding(message=entry.note, path=source.path, line=source.line))
            if accepted is not None:
                entry = dataclasses.replace(entry, waiver=accepted.reason, accepted=(accepted,))
        return self.ledger(entry)

    def _verdict(self, rule: Rule, selected: Iterable[Rule]) -> Verdict:
        """Return what a rule concludes; an error that an earlier one of the run reports fails no other one."""
        verdict = self.contract.result(rule)
        played = vars(self.contract).get("evidence")
        if verdict.outcome is not Outcome.FAILED or played is None:
            return verdict
        if self._once is None:
            verdicts: dict[Rule, Verdict] = {}
            for other in selected:
                with contextlib.suppress(Exception):  # one that raises says so in its own item
                    verdicts[other] = self.contract.result(other)
            self._once = reported_once(
                verdicts, played.collection, lambda rule, found: self.waivers.accepts(rule.id, found) is not None
            )
        return self._once.get(rule, verdict)

    def ledger(self, entry: LedgerEntry) -> Ledger:
        """Return the ledger of one entry."""
        source = self.contract.source
        findings = tuple(map(_placed, entry.findings))
        accepted = tuple(dataclasses.replace(found, finding=_placed(found.finding)) for found in entry.accepted)
        return Ledger(
            subject=self.subject,
            entries=(dataclasses.replace(entry, findings=findings, accepted=accepted),),
            sandbox=self.contract.sandbox,
            mode=self.mode,
            path=shown_path(source.path) if source is not None else "",
            line=source.line if source is not None else 0,
            ladder=ladder_rows(self.contract.rungs) if CASES in entry.rule.scenarios else (),
        )


def settings_of(file: str, root: str) -> Settings:
    """Return the settings that hold for a class in ``file``: those above it, else those above ``root``. Raises: BadSettings."""
    found = settings_for(file) if file else Settings()
    return found if found.file else settings_for(root)


class ContractCollector(pytest.Collector):
    """Stands for one target of ``--hermes-env``."""

    def collect(self) -> Iterable[pytest.Item]:
        """Return nothing: the items are made by `items_of`."""
        return []

    def items_of(self, subject: Subject, session: ContractSession) -> list[pytest.Item]:
        """Return one item per rule."""
        name = subject.name.rpartition(".")[2]
        return [
            RuleItem.from_parent(self, name=f"{name}[{rule.label}]", check=RuleCheck(subject, rule), session_contracts=session)
            for rule in session.contract(subject).rules
        ]


class UnusableTarget(pytest.Item):
    """A target of ``--hermes-env`` without a class that could be judged: it fails, and the others are judged."""

    def __init__(self, *, error: Exception, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._error = error

    def runtest(self) -> None:
        """Fail with the error."""
        pytest.fail(f"--hermes-env {self.name}: {self._error}", pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Name the target."""
        return Path.cwd(), None, f"--hermes-env {self.name}"


class RuleItem(pytest.Item):
    """One rule on one class."""

    def __init__(self, *, check: RuleCheck, session_contracts: ContractSession, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.check = check
        self._session_contracts = session_contracts

    def runtest(self) -> None:
        """Check the rule."""
        self.check.run(self, self._session_contracts)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Name the class's file and the item."""
        source = self._session_contracts.contract(self.check.subject).contract.source
        path = Path(source.path) if source is not None else Path.cwd()
        return path, source.line - 1 if source is not None else None, self.name


class RuleCheck:
    """One rule on one class, with the cases that a test declares."""

    def __init__(self, subject: type | Subject, rule: Rule, cases: Cases | None = None) -> None:
        self.subject = subject
        self.rule = rule
        self.cases = cases

    def run(self, item: pytest.Item, session: ContractSession) -> None:
        """Check, put a row into the ledger, and pass, fail, skip or xfail like a test."""
        contract = session.contract(self.subject)
        try:
            self._judge(item, contract, contract.checked(self.rule, session.rules_of(contract)))
        except Exception as error:
            note = shorten(f"could not be checked: {type(error).__name__}: {error}")
            with contextlib.suppress(Exception):  # what made the rule fail may be needed here, too
                self._remember(item, contract.ledger(LedgerEntry(rule=self.rule, outcome=Outcome.UNDECIDED, note=note)))
            if isinstance(error, HermesEnvError) or item.config.option.fulltrace:
                raise
            what = f"{self.rule.id} {self.rule.name} could not judge"
            way_out = "; until then leave the rule out: ignore in [tool.hermes-env]"
            raise pytest.fail.Exception(own_mistake(what, error, way_out), pytrace=False) from None

    def _judge(self, item: pytest.Item, contract: CheckedClass, ledger: Ledger) -> None:
        self._remember(item, ledger)
        if contract.blocked:
            item.addfinalizer(functools.partial(_refuse, contract.blocked))
            contract.blocked = ""
        (entry,) = ledger.entries
        if entry.waiver:
            pytest.xfail(f"{self.rule.id} waived: {entry.waiver}")
        if entry.outcome is Outcome.FAILED:
            text = "\n".join(_failure(entry, item.config.option.verbose))
            if self.rule.fails_run(entry.findings, is_strict=contract.is_strict):
                pytest.fail(text, pytrace=False)
            with warnings.catch_warnings():
                warnings.simplefilter("always")  # where all warnings are errors, these still fail by --hermes-strict only
                item.warn(pytest.PytestWarning(text))
        elif entry.outcome is not Outcome.PASSED:
            pytest.skip(f"{self.rule.id} {entry.outcome}: {entry.note}")

    def _remember(self, item: pytest.Item, ledger: Ledger) -> None:
        (entry,) = ledger.entries
        told = {"hermes_rule": entry.rule.id, "hermes_class": ledger.subject, "hermes_outcome": entry.word}
        item.user_properties[:] = [*(pair for pair in item.user_properties if pair[0] not in told), *told.items()]
        item.stash[ROW] = row_of(ledger, min((rank(entry.rule, finding) for finding in entry.findings), default=(9, True)))


def own_mistake(what: str, error: Exception, way_out: str = "") -> str:
    """Return what is said where this package itself crashed: nothing about the environment."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"{what}: {shorten(f'{type(error).__name__}: {error}')}\n"
        f"  seen  {shown_path(place.filename)}:{place.lineno}, a mistake of pytest-hermes-env, not of the environment\n"
        f"  fix   report it with what pytest --full-trace prints{way_out}"
    )


def _refuse(text: str) -> None:
    __tracebackhide__ = True
    raise NetworkBlocked(text)


def _check_of(item: pytest.Item) -> RuleCheck | None:
    """Return the rule that an item checks: one of a target, or one of a decorated test."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    check = getattr(item, "check", None) or parameters.get("hermes_rule")
    return check if isinstance(check, RuleCheck) else None


def _failure(entry: LedgerEntry, verbosity: int) -> list[str]:
    """Return the findings of a rule as text, whole with ``-v``."""
    if verbosity < 1:
        return compact_lines(entry.rule, entry.findings)
    return [
        line
        for number, finding in enumerate(entry.findings)
        for line in finding_lines(entry.rule, finding, is_brief=number > 0)
    ]


def _placed(finding: Finding) -> Finding:
    return dataclasses.replace(finding, path=shown_path(finding.path))
