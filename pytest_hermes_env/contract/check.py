"""The static engine: files in, verdicts out. Nothing that is judged is imported, no process is started.

Place in the flow: `hermes-env check` calls it; it reads classes through `source` and asks the static half of each rule.
What only a rollout can show is entered as not exercised.
"""

from __future__ import annotations

import difflib
import os
import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.baseline import Baseline
from pytest_hermes_env.contract.fork_pool import shared_out
from pytest_hermes_env.contract.ledger import Ledger, LedgerEntry
from pytest_hermes_env.contract.rule import Rule
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.contract.settings import Settings
from pytest_hermes_env.contract.verdict import Outcome, Verdict
from pytest_hermes_env.contract.waivers import waivers_of
from pytest_hermes_env.errors import BadTarget, shorten
from pytest_hermes_env.source import (
    ClassKind,
    ClassSource,
    FileProblem,
    FileReading,
    Skipped,
    SourceTree,
    read_class,
    read_classes,
    without_abstract_bases,
)
from pytest_hermes_env.source.finding import Finding, Severity
from pytest_hermes_env.source.leftover_packages import leftover_packages

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["StaticReport", "check_all", "check_paths", "path_of", "whole"]

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


def whole(entries: Iterable[LedgerEntry], note: str) -> tuple[LedgerEntry, ...]:
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
    baseline: Baseline | None = None,
    processes: int = 1,
    allows_none: bool = False,
) -> StaticReport:
    """Check all environment classes in files and directories; ``path.py:Class`` checks one class.

    Comments in the files, the waivers of ``settings`` and the ``baseline`` accept findings; those that accept nothing any more are
    among the problems. With more than one process, many classes are shared out among forks of this one, which must have no other threads.

    Raises: BadTarget when a path does not exist, contains no Python file, or when no environment is found (unless ``allows_none``).
    """
    tree = SourceTree()
    targets = list(paths)
    readings: dict[str, FileReading] = {}
    chosen: dict[str, ClassSource] = {}
    for target in targets:
        path, name = _split(target)
        if name:
            readings.setdefault(os.path.abspath(path), _reading_of(path, name, tree, chosen))
            continue
        for file in _files(path):
            readings[os.path.abspath(file)] = read_classes(file, tree)
    checked = without_abstract_bases(readings.values())
    classes = {source.label: source for reading in checked for source in reading.classes} | chosen
    ledgers = check_all(list(classes.values()), rules, processes=processes)
    waivers = waivers_of(tree.modules, settings or Settings())
    ledgers = waivers.applied_to(ledgers)
    complaints = [*waivers.problems, *waivers.stale(ledgers, sees_rollouts=False)]
    if baseline is not None:
        ledgers = baseline.applied(ledgers)
        complaints += baseline.complaints(ledgers)
    report = StaticReport(
        files=len(readings),
        ledgers=ledgers,
        problems=(*(reading.problem for reading in checked if reading.problem), *leftover_packages(tree.modules), *complaints),
        skipped=tuple(item for reading in checked for item in reading.skipped),
    )
    if not report.ledgers and not report.problems and not allows_none:
        raise BadTarget(_nothing_found(targets, report))
    return report


def check_all(sources: Sequence[ClassSource], rules: Sequence[Rule] = ALL_RULES, *, processes: int = 1) -> tuple[Ledger, ...]:
    """Check classes, in their order; see `check_paths` for ``processes``."""

    def verdicts(index: int) -> list[tuple[Verdict, float]]:
        return [_timed_verdict(rule, sources[index]) for rule in rules]

    return tuple(
        _ledger(source, rules, found)
        for source, found in zip(sources, shared_out(verdicts, len(sources), processes), strict=True)
    )


def _ledger(source: ClassSource, rules: Iterable[Rule], verdicts: Iterable[tuple[Verdict, float]]) -> Ledger:
    entries = whole(
        [
            LedgerEntry(rule=rule, outcome=verdict.outcome, note=verdict.note, findings=verdict.findings, seconds=seconds)
            for rule, (verdict, seconds) in zip(rules, verdicts, strict=True)
        ],
        NOT_SELECTED,
    )
    return Ledger(subject=source.label, entries=entries, mode="source", path=source.path, line=source.line)


def _timed_verdict(rule: Rule, source: ClassSource) -> tuple[Verdict, float]:
    start = time.perf_counter()
    verdict = _verdict(rule, source)
    return verdict, time.perf_counter() - start


def _verdict(rule: Rule, source: ClassSource) -> Verdict:
    if rule.static is None:
        return Verdict.not_exercised("needs a rollout: pytest --hermes-env path/to/env.py:Class")
    try:
        return rule.static(source)
    except RecursionError:
        return Verdict.undecided("the source is nested too deeply to be analysed")
    except Exception as error:  # noqa: BLE001  # one rule must not stop the others; the ledger says it
        return Verdict.undecided(shorten(f"the rule failed on this source; please report it: {type(error).__name__}: {error}"))


def path_of(target: str) -> str:
    """Return the path of a target, without the class that it may name."""
    return _split(target)[0]


def _split(target: str) -> tuple[str, str]:
    path, colon, name = target.rpartition(":")
    is_class = bool(colon) and all(part.isidentifier() for part in name.split(".")) and not os.path.exists(target)
    return (path, name) if is_class else (target, "")


def _reading_of(path: str, name: str, tree: SourceTree, chosen: dict[str, ClassSource]) -> FileReading:
    """Read one class of a file, whatever it is called a helper for."""
    if not os.path.isfile(path):
        raise BadTarget(f"{path} is not a file: expected path/to/file.py:Class")
    reading = read_classes(path, tree)
    if reading.problem:
        return FileReading(path=path, problem=reading.problem)
    source = read_class(path, name, tree)
    seen = sorted({item.name for item in reading.classes} | {item.name for item in reading.skipped})
    if source is None:
        nearest = difflib.get_close_matches(name, seen, n=1, cutoff=0.4)
        hint = f" Did you mean {nearest[0]}?" if nearest else ""
        raise BadTarget(f"{path} has no class {name}; its classes are: {', '.join(seen) or 'none'}.{hint}")
    if source.class_kind in {ClassKind.ATROPOS, ClassKind.OTHER}:
        raise BadTarget(f"{path}:{name} is {source.class_kind}: expected a class derived from HermesAgentBaseEnv")
    chosen[source.label] = source
    return FileReading(path=path)


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
