"""The static engine: files in, verdicts out. Nothing that is judged is imported, no process is started.

Place in the flow: `hermes-env check` calls it; it reads classes through `source` and asks the static half of each rule.
What only a rollout can show is entered as not exercised.
"""

from __future__ import annotations

import gc
import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.file_check import (
    CheckedClass,
    CheckedFile,
    checked_class,
    checked_file,
    without_abstract_classes,
)
from pytest_hermes_env.contract.judge.rule import Rule
from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.contract.ledger.ledger import Ledger, LedgerEntry
from pytest_hermes_env.contract.ledger.settings import Settings
from pytest_hermes_env.contract.ledger.waivers import waivers_of
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.errors import BadTarget, shorten
from pytest_hermes_env.source import ClassSource, FileProblem, Skipped, SourceTree
from pytest_hermes_env.source.finding import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

RECENT = 25
"""How many files stay parsed: those that others import are read again when they are needed later."""

_NO_SOURCE = frozenset({"__pycache__", "node_modules", "site-packages", "build", "dist"})
NOT_SELECTED = "not selected"
OPINION = "an opinion: it runs only where --select or pyproject.toml selects it"


@dataclass(frozen=True, kw_only=True)
class StaticReport:
    """What was found in some paths: a ledger for each environment class, and the files that could not be checked."""

    files: int
    ledgers: tuple[Ledger, ...] = ()
    problems: tuple[FileProblem, ...] = ()
    skipped: tuple[Skipped, ...] = ()

    @property
    def has_only_others(self) -> bool:
        """Whether every environment that was found is one of Atropos without the Hermes layer: there is nothing to judge."""
        return not self.ledgers and any(item.is_environment for item in self.skipped)

    @cached_property
    def findings(self) -> tuple[tuple[Rule, Finding], ...]:
        """All findings by place; one in a base that several environments share comes once."""
        told = {(problem.id, os.path.abspath(problem.path), problem.line) for problem in self.problems}
        found = {
            (finding.path, finding.line, finding.column, entry.rule.id, finding.message): (entry.rule, finding)
            for ledger in self.ledgers
            for entry in ledger.entries
            if not entry.waiver
            for finding in entry.findings
            if (entry.rule.id, os.path.abspath(finding.path), finding.line) not in told
        }
        return tuple(found[key] for key in sorted(found))

    def exit_code(self, *, is_strict: bool = False) -> int:
        """Return 1 when something is broken, cannot be checked, or was not exercised at all; else 0."""
        broken = any(ledger.failures(is_strict=is_strict) or ledger.is_vacuous for ledger in self.ledgers)
        return int(broken or bool(self.problems))


def with_missing_rules(entries: Iterable[LedgerEntry], note: str) -> tuple[LedgerEntry, ...]:
    """Return one entry for each rule of the catalogue; those that ``entries`` lack were not run, for the reason ``note``."""
    given = {entry.rule.id: entry for entry in entries}
    return tuple(
        given.get(rule.id)
        or LedgerEntry(rule=rule, outcome=Outcome.NOT_RUN, note=OPINION if rule.severity is Severity.OPINION else note)
        for rule in ALL_RULES
    )


def check_paths(
    paths: Iterable[str],
    rules: Sequence[Rule] = ALL_RULES,
    *,
    settings: Settings | None = None,
    allows_none: bool = False,
    with_base_env: bool = False,
) -> StaticReport:
    """Check all environment classes in files and directories; ``path.py:Class`` checks one class.

    ``with_base_env`` also checks environments on Atropos' BaseEnv alone, against the rules that concern it.
    Comments in the files and the waivers of ``settings`` accept findings; those that accept nothing any more are among the problems.

    Raises: BadTarget when a path does not exist, contains no Python file, or when no environment is found (unless ``allows_none``).
    """
    targets = list(paths)
    files = list(_targets(targets))
    tree = SourceTree(keeps=RECENT)

    checked: list[CheckedFile] = []
    for file, name in files:
        checked.append(checked_file(file, name, rules, tree, with_base_env=with_base_env))
        if len(checked) % RECENT == 0:
            gc.collect()  # syntax trees and what was made of them refer to each other
    judged = list(without_abstract_classes(checked))
    classes = {item.label: item for _, kept, _ in judged for item in kept}
    ledgers = tuple(_ledger(item, rules) for item in classes.values())
    waivers = waivers_of(
        [comment for file in checked for comment in file.comments],
        [complaint for file in checked for complaint in file.complaints],
        settings or Settings(),
    )
    leftovers = {problem.path: problem for file in checked for problem in file.leftovers}
    ledgers = waivers.applied_to(ledgers)
    complaints = [*waivers.problems, *waivers.stale(ledgers, sees_rollouts=False)]
    report = StaticReport(
        files=len({os.path.abspath(path) for path, _ in files}),
        ledgers=ledgers,
        problems=(*(file.problem for file in checked if file.problem), *leftovers.values(), *complaints),
        skipped=tuple(item for _, _, skipped in judged for item in skipped),
    )
    if not (report.ledgers or report.problems or report.has_only_others or allows_none):
        raise BadTarget(_nothing_found(targets, report))
    return report


def check_all(sources: Iterable[ClassSource], rules: Sequence[Rule] = ALL_RULES) -> tuple[Ledger, ...]:
    """Check classes that were read, in their order."""
    return tuple(_ledger(checked_class(source, rules), rules) for source in sources)


def _ledger(checked: CheckedClass, rules: Sequence[Rule]) -> Ledger:
    entries = with_missing_rules(
        [
            LedgerEntry(rule=rule, outcome=verdict.outcome, note=verdict.note, findings=verdict.findings, seconds=seconds)
            for rule, (verdict, seconds) in zip(rules, checked.verdicts, strict=True)
        ],
        NOT_SELECTED,
    )
    return Ledger(subject=checked.label, entries=entries, mode="source", path=checked.path, line=checked.line)


def path_of(target: str) -> str:
    """Return the path of a target, without the class that it may name."""
    return _split(target)[0]


def _split(target: str) -> tuple[str, str]:
    path, colon, name = target.rpartition(":")
    is_class = bool(colon) and all(part.isidentifier() for part in name.split(".")) and not os.path.exists(target)
    return (path, name) if is_class else (target, "")


def _targets(targets: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each file once, with the name of the class that a target chose from it, else with an empty one."""
    named: dict[tuple[str, str], tuple[str, str]] = {}
    for target in targets:
        path, name = _split(target)
        if name and not os.path.isfile(path):
            raise BadTarget(f"{path} is not a file: expected path/to/file.py:Class")
        for file in [path] if name else _files(path):
            named.setdefault((os.path.abspath(file), name), (file, name))
    yield from named.values()


def _files(path: str) -> list[str]:
    """Return the Python files of a path, hidden directories, virtual environments and build output left out."""
    if os.path.isfile(path):
        if not path.endswith((".py", ".pyi")):
            raise BadTarget(f"{path} is not a Python file")
        return [path]
    if not os.path.isdir(path):
        raise BadTarget(f"{path} does not exist")
    found = sorted(_walk(path))
    if not found:
        raise BadTarget(f"{path} contains no Python file")
    return found


def _walk(path: str) -> Iterator[str]:
    for folder, folders, files in os.walk(path):
        folders[:] = [
            name
            for name in folders
            if name not in _NO_SOURCE
            and not name.startswith(".")
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
        ]
        for name in files:
            if name.endswith(".py"):
                yield os.path.normpath(os.path.join(folder, name))


def _nothing_found(targets: list[str], report: StaticReport) -> str:
    count = report.files
    lines = [
        f"no Hermes environment in {', '.join(targets)} ({count} Python {'file' if count == 1 else 'files'} read)",
        "  looked for  classes derived from HermesAgentBaseEnv",
    ]
    if report.skipped:
        lines.append(f"  seen        {shorten(', '.join(_told(item) for item in report.skipped), 600)}")
    lines.append("  fix         name the file that defines the environment, or its directory")
    return "\n".join(lines)


def _told(item: Skipped) -> str:
    return item.name if item.reason == "no environment" else f"{item.name} ({item.reason})"
