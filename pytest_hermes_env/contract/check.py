"""The static engine: files in, verdicts out. Nothing that is judged is imported, no process is started.

Place in the flow: `hermes-env check` calls it; it reads classes through `source` and asks the static half of each rule.
What only a rollout can show is entered as not exercised.
"""

from __future__ import annotations

import dataclasses
import difflib
import gc
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytest_hermes_env.contract.judge.rule import Rule
from pytest_hermes_env.contract.judge.verdict import Outcome, Verdict
from pytest_hermes_env.contract.ledger.account import Account
from pytest_hermes_env.contract.ledger.comments import CommentWaiver, read_comments
from pytest_hermes_env.contract.ledger.ledger import Ledger, LedgerEntry
from pytest_hermes_env.contract.ledger.settings import Settings
from pytest_hermes_env.contract.ledger.waivers import waivers_of
from pytest_hermes_env.contract.rules import ALL_RULES
from pytest_hermes_env.errors import BadTarget, shorten
from pytest_hermes_env.missing_files import files_below, no_file
from pytest_hermes_env.source import (
    ABSTRACT_BASE,
    ClassKind,
    ClassSource,
    FileProblem,
    FileReading,
    Skipped,
    SourceTree,
    read_class,
    read_classes,
)
from pytest_hermes_env.source.stale_packages import stale_packages

RECENT = 25
"""How many files stay parsed: those that others import are read again when they are needed later."""

NOT_SELECTED = "not selected"

RULE_RAISED = "the rule failed on this source"
"""Begins the note on a rule that raised."""


@dataclass(frozen=True, kw_only=True)
class _CheckedClass:
    """The ledger of one class, and what tells whether it is an abstract base; not its source, which would stay in memory."""

    ledger: Ledger
    bases: frozenset[tuple[str, int]]
    """File and line of each."""
    is_abstract: bool
    is_abstract_as_base: bool
    """Whether required methods are missing, so that it is abstract if another class inherits from it."""


def with_missing_rules(entries: Iterable[LedgerEntry], note: str) -> tuple[LedgerEntry, ...]:
    """Return one entry for each rule of the catalogue; those that ``entries`` lack were not run, for the reason ``note``."""
    given = {entry.rule.id: entry for entry in entries}
    return tuple(given.get(rule.id) or LedgerEntry(rule=rule, outcome=Outcome.NOT_RUN, note=note) for rule in ALL_RULES)


def check_paths(
    paths: Iterable[str],
    rules: Sequence[Rule] = ALL_RULES,
    *,
    settings: Settings | None = None,
    allows_none: bool = False,
    with_base_env: bool = False,
    is_strict: bool = False,
) -> Account:
    """Check all environment classes in files and directories; ``path.py:Class`` checks one class.

    ``is_strict``: warnings fail, too. ``with_base_env`` also checks environments on Atropos' BaseEnv alone, against the rules that concern it.
    Comments in the files and the waivers of ``settings`` accept findings; those that accept nothing any more are among the problems.

    Raises: BadTarget when a path does not exist, contains no Python file, or when no environment is found (unless ``allows_none``).
    """
    targets = list(paths)
    files = list(_targets(targets))
    tree = SourceTree(keeps=RECENT)
    checked: list[_CheckedClass] = []
    skipped: list[Skipped] = []
    problems: dict[str, FileProblem] = {}
    hiding: dict[str, FileProblem] = {}
    comments: list[CommentWaiver] = []
    complaints: list[FileProblem] = []
    for number, (file, name) in enumerate(files, 1):
        reading = read_classes(file, tree, with_base_env=with_base_env)
        sources, is_chosen = reading.classes, bool(name and not reading.problem)
        if is_chosen:
            sources = (_chosen(file, name, reading, tree, with_base_env=with_base_env),)
        else:
            skipped += reading.skipped
        new = tree.newly_read()
        for module in new:
            held, wrong = read_comments(module)
            comments += held
            complaints += wrong
        problems |= {file: reading.problem} if reading.problem else {}
        hiding |= {problem.path: problem for problem in stale_packages(new)}
        checked += [_checked_class(source, rules, is_chosen=is_chosen) for source in sources]
        if number % RECENT == 0:
            gc.collect()  # syntax trees and what was made of them refer to each other
    bases = {base for item in checked for base in item.bases}
    judged = []
    for item in checked:
        ledger = item.ledger
        if item.is_abstract or (item.is_abstract_as_base and _id(ledger) in bases):
            name = ledger.subject.rpartition(":")[2]
            skipped.append(Skipped(path=ledger.path, line=ledger.line, name=name, reason=ABSTRACT_BASE))
        else:
            judged.append(ledger)
    ledgers = tuple({ledger.subject: ledger for ledger in judged}.values())
    waivers = waivers_of(comments, complaints, settings or Settings())
    ledgers = waivers.applied_to(ledgers)
    stale = waivers.stale(ledgers, sees_rollouts=False)
    account = Account(
        entry_point="hermes-env check",
        mode="source",
        is_strict=is_strict,
        files=len({os.path.abspath(path) for path, _ in files}),
        ledgers=tuple(ledger.strictly() for ledger in ledgers) if is_strict else ledgers,
        problems=(*problems.values(), *hiding.values(), *waivers.problems, *stale),
        skipped=tuple(skipped),
    )
    if not (account.ledgers or account.problems or account.has_only_others or allows_none):
        raise BadTarget(_nothing_found(targets, account))
    return dataclasses.replace(account, exit_code=int(account.is_broken))


def _chosen(path: str, name: str, reading: FileReading, tree: SourceTree, *, with_base_env: bool) -> ClassSource:
    source = read_class(path, name, tree)
    seen = sorted({item.name for item in reading.classes} | {item.name for item in reading.skipped})
    if source is None:
        nearest = difflib.get_close_matches(name, seen, n=1, cutoff=0.6)
        hint = f" Did you mean {nearest[0]}?" if nearest else ""
        raise BadTarget(f"{path} has no class {name}; its classes are: {', '.join(seen) or 'none'}.{hint}")
    if source.class_kind is ClassKind.OTHER or (source.class_kind is ClassKind.ATROPOS and not with_base_env):
        way_out = " (or add --hermes-base-env)" if source.class_kind is ClassKind.ATROPOS else ""
        raise BadTarget(f"{path}:{name} is {source.class_kind}: expected a class derived from HermesAgentBaseEnv{way_out}")
    return source


def _checked_class(source: ClassSource, rules: Sequence[Rule], *, is_chosen: bool) -> _CheckedClass:
    """Ask every rule about a class; one that a user chose is judged whatever it is called a base for."""
    return _CheckedClass(
        ledger=check_class(source, rules),
        bases=frozenset() if is_chosen else frozenset(map(_id, source.readable[1:])),
        is_abstract=source.is_marked_abstract and not is_chosen,
        is_abstract_as_base=bool(source.missing) and not source.unreadable and not is_chosen,
    )


def _id(place: ClassSource | Ledger) -> tuple[str, int]:
    return os.path.abspath(place.path), place.line


def check_class(source: ClassSource, rules: Sequence[Rule] = ALL_RULES) -> Ledger:
    """Ask every rule about a class."""
    return Ledger(
        subject=f"{source.path}:{source.name}",
        entries=with_missing_rules([_entry(rule, source) for rule in rules], NOT_SELECTED),
        mode="source",
        path=source.path,
        line=source.line,
    )


def _entry(rule: Rule, source: ClassSource) -> LedgerEntry:
    start = time.perf_counter()
    verdict = _verdict(rule, source)
    return LedgerEntry.of(rule, verdict, time.perf_counter() - start)


def _verdict(rule: Rule, source: ClassSource) -> Verdict:
    if source.class_kind is ClassKind.ATROPOS and not rule.holds_for_base_env:
        return Verdict.not_applicable("a law of the Hermes layer, and the class is built on Atropos' BaseEnv alone")
    if rule.static is None:
        return Verdict.not_exercised("needs a rollout: pytest --hermes-env path/to/env.py:Class")
    try:
        return rule.static(source)
    except RecursionError:
        return Verdict.undecided("the source is nested too deeply to be analysed")
    except Exception as error:  # noqa: BLE001  # one rule must not stop the others; the ledger says it
        return Verdict.undecided(shorten(f"{RULE_RAISED}; please report it: {type(error).__name__}: {error}"))


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
            raise BadTarget(f"{path} is a directory: expected path/to/file.py:Class" if os.path.isdir(path) else no_file(path))
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
        raise BadTarget(no_file(path))
    found = sorted(file for file in files_below(path) if file.endswith(".py"))
    if not found:
        raise BadTarget(f"{path} contains no Python file")
    return found


def _nothing_found(targets: list[str], account: Account) -> str:
    count = account.files
    lines = [
        f"no Hermes environment in {', '.join(targets)} ({count} Python {'file' if count == 1 else 'files'} read)",
        "  looked for  classes derived from HermesAgentBaseEnv",
    ]
    if account.skipped:
        lines.append(f"  seen        {shorten(', '.join(_told(item) for item in account.skipped), 600)}")
    lines.append("  fix         name the file that defines the environment, or its directory")
    return "\n".join(lines)


def _told(item: Skipped) -> str:
    return item.name if item.reason == "no environment" else f"{item.name} ({item.reason})"
