"""The end of a pytest run: rows become ledgers, ledgers become reports, and what the run proves becomes its exit code.

Place in the flow: the plugin calls `finish` in the process that has all rows (with xdist, the controller), then `summary`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from typing import Any

import pytest

from pytest_hermes_env.atomic_files import write_text
from pytest_hermes_env.contract.check import with_missing_rules
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.contract.ledger.account import Account, versions
from pytest_hermes_env.contract.ledger.ledger import Ledger
from pytest_hermes_env.contract.ledger.settings import Settings, settings_for
from pytest_hermes_env.contract.ledger.waivers import waivers_in
from pytest_hermes_env.contract.reports import report_text
from pytest_hermes_env.contract.reports.text import problem_lines
from pytest_hermes_env.contract.run.rows import ledger_in, minimum_of
from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.redaction.file_check import check_text, keys_among
from pytest_hermes_env.redaction.shown_text import environment_redactor, shown, shown_name, shown_path
from pytest_hermes_env.source import FileProblem, Module, SourceTree, read_class

NOT_RUN = "deselected, or the run ended before it"


def finish(session: pytest.Session, rows: Iterable[dict[str, Any]], seconds: float) -> tuple[Account, list[str]]:
    """Write the reports that were asked for and fail the session where the contract says so.

    Return the account and what else to report. Reports are written for aborted runs, too, and say that they are not complete.
    """
    config = session.config
    ledgers = ledgers_of(rows)
    root = str(config.rootpath)
    is_strict = bool(config.getoption("hermes_strict")) or any(_settings(ledger, root).strict for ledger in ledgers)
    is_complete = not (session.shouldstop or session.shouldfail) and session.exitstatus not in {
        pytest.ExitCode.INTERRUPTED,
        pytest.ExitCode.INTERNAL_ERROR,
    }
    problems = _complaints(ledgers, root)
    notes: list[str] = []
    unplayed = [line for ledger in ledgers for line in _unplayed(ledger, minimum_of(config))]
    notes += unplayed
    is_broken = bool(problems or unplayed) or any(ledger.is_vacuous for ledger in ledgers)
    if is_broken and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    account = Account(
        entry_point="pytest",
        mode=str(config.getoption("hermes_mode")),
        ledgers=tuple(ledgers),
        exit_code=int(session.exitstatus),
        seconds=seconds,
        files=len({ledger.path for ledger in ledgers}),
        problems=tuple(problems),
        is_strict=is_strict,
        is_complete=is_complete,
        versions=versions(),
    )
    for option, form in (("hermes_report_json", "json"), ("hermes_sarif", "sarif"), ("hermes_html", "html")):
        if config.getoption(option):
            file = _place(config, option)
            notes.append(_written(file, report_text(account, form), session))
    return account, [shown(note) for note in notes if note]


def _unplayed(ledger: Ledger, minimum: int | None) -> list[str]:
    """Return why a class was exercised too little, as lines; none when it was exercised enough.

    ``minimum`` None: every rule of severity error that applies.
    """
    count, missed = len(ledger.exercised), ledger.not_judged
    if minimum is not None:
        is_partial = any(entry.outcome is Outcome.NOT_RUN and entry.note == NOT_RUN for entry in ledger.entries)
        if count >= minimum or is_partial:
            return []
        return [f"error: {ledger.subject}: rollouts exercised {count} rules, and hermes_min_exercised is {minimum}"]
    if not missed:
        return []
    ids = ", ".join(entry.rule.id for entry in missed)
    return [
        f"error: {ledger.subject}: {ids} {'was' if len(missed) == 1 else 'were'} not judged, for the reason above; what was not judged has not passed",
        "  fix  remove the reason, or waive the rule with yours; --hermes-min-exercised N accepts N exercised rules",
    ]


def summary(terminalreporter: Any, account: Account, notes: Iterable[str]) -> None:
    """Print the ledgers, what is wrong with waivers, what became of the files, and GitHub's annotations in its actions."""
    is_verbose = terminalreporter.config.option.verbose > 0
    for ledger in account.ledgers:
        terminalreporter.section(f"contract of {shown_name(ledger.subject)}", sep="-")
        for line in ledger.summary_lines() if is_verbose else ledger.brief_lines():
            terminalreporter.write_line(line)
    if account.problems:
        terminalreporter.section("waivers", sep="-")
        for number, problem in enumerate(account.problems):
            for line in problem_lines(problem, is_brief=number > 0):
                terminalreporter.write_line(line)
    for note in notes:
        terminalreporter.write_line(f"hermes-env: {note}")
    if os.environ.get("GITHUB_ACTIONS") == "true":
        terminalreporter.write(report_text(account, "github"))


def ledgers_of(rows: Iterable[dict[str, Any]]) -> list[Ledger]:
    """Return one ledger per class, each with every rule of the catalogue."""
    by_class: dict[str, list[Ledger]] = {}
    for row in rows:
        by_class.setdefault(row["class"], []).append(ledger_in(row))
    return [
        dataclasses.replace(
            found[0],
            entries=with_missing_rules([entry for ledger in found for entry in ledger.entries], NOT_RUN),
            sandbox=next((ledger.sandbox for ledger in found if ledger.sandbox), ""),
            ladder=next((ledger.ladder for ledger in found if ledger.ladder), ()),
        )
        for _, found in sorted(by_class.items())
    ]


def _settings(ledger: Ledger, root: str) -> Settings:
    found = settings_for(ledger.path) if ledger.path else Settings()
    return found if found.file else settings_for(root)


def _complaints(ledgers: list[Ledger], root: str) -> list[FileProblem]:
    """Return what is wrong with the waivers of the classes that were checked, those of each project looked at once."""
    projects: dict[str, tuple[Settings, list[Ledger]]] = {}
    for ledger in ledgers:
        settings = _settings(ledger, root)
        projects.setdefault(settings.file, (settings, []))[1].append(ledger)
    found: list[FileProblem] = []
    for settings, checked in projects.values():
        tree = SourceTree()
        for ledger in checked:
            source = read_class(ledger.path, ledger.subject.rpartition(":")[2], tree) if ledger.path else None
            _ = source.readable if source is not None else ()  # bases in other files are read, too
        modules: tuple[Module, ...] = tree.modules
        waivers = waivers_in(modules, settings)
        found += [*waivers.problems, *waivers.stale(checked, sees_rollouts=True)]
    return list(dict.fromkeys(found))


def _place(config: pytest.Config, option: str) -> str:
    """Return a file that an option names, from where pytest was started."""
    return shown_path(os.path.join(str(config.invocation_params.dir), config.getoption(option)))


def _written(file: str, text: str, session: pytest.Session) -> str:
    try:
        check_text(file, text, keys_among(environment_redactor().known), UsageError)
        write_text(file, text)
    except UsageError as error:
        if session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return f"error: {error}"
    return f"wrote {file}"
