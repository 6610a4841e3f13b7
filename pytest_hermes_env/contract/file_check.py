"""One file of a static check: its classes are judged while they are in memory, and only what was found stays.

Place in the flow: `check` asks for one file after the other, in several processes; what comes back is small and can be pickled.
"""

from __future__ import annotations

import difflib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_hermes_env.contract.judge.rule import Rule
from pytest_hermes_env.contract.judge.verdict import Verdict
from pytest_hermes_env.contract.ledger.comments import CommentWaiver, read_comments
from pytest_hermes_env.errors import BadTarget, shorten
from pytest_hermes_env.source import (
    ABSTRACT_BASE,
    ClassKind,
    ClassSource,
    FileProblem,
    Skipped,
    SourceTree,
    read_class,
    read_classes,
)
from pytest_hermes_env.source.leftover_packages import leftover_packages

if TYPE_CHECKING:
    from pytest_hermes_env.source import FileReading

_Id = tuple[str, int]
"""File and line of a class statement."""


RULE_RAISED = "the rule failed on this source"
"""Begins the note on a rule that raised."""


@dataclass(frozen=True, kw_only=True)
class CheckedClass:
    """The verdicts of one class, and what tells whether it is an abstract base of others."""

    path: str
    line: int
    name: str
    id: _Id
    bases: frozenset[_Id]
    is_marked_abstract: bool
    is_incomplete: bool
    """Whether required methods are missing, so that it is abstract if another class inherits from it."""
    verdicts: tuple[tuple[Verdict, float], ...]
    """For each rule its verdict, and the seconds that it took."""

    @property
    def label(self) -> str:
        """``path:Class``, as commands accept it."""
        return f"{self.path}:{self.name}"


@dataclass(frozen=True, kw_only=True)
class CheckedFile:
    """What was found in one file, and in the files that were first read for it."""

    path: str
    classes: tuple[CheckedClass, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    problem: FileProblem | None = None
    comments: tuple[CommentWaiver, ...] = ()
    complaints: tuple[FileProblem, ...] = ()
    leftovers: tuple[FileProblem, ...] = ()
    """Files that hide the layer from the environments beside them."""
    is_chosen: bool = False
    """Whether a class was named, which is judged whatever it is called a base for."""


def checked_file(path: str, name: str, rules: Sequence[Rule], tree: SourceTree, *, with_base_env: bool) -> CheckedFile:
    """Check the environments of a file, or the class ``name`` alone; ``with_base_env``: also those without the Hermes layer.

    Raises: BadTarget where there is no such environment.
    """
    reading = read_classes(path, tree, with_base_env=with_base_env)
    sources = reading.classes
    if name and not reading.problem:
        sources = (_chosen(path, name, reading, tree, with_base_env=with_base_env),)
    classes = tuple(checked_class(source, rules) for source in sources)
    comments: list[CommentWaiver] = []
    complaints: list[FileProblem] = []
    new = tree.newly_read()
    for module in new:
        found, wrong = read_comments(module)
        comments += found
        complaints += wrong
    return CheckedFile(
        path=path,
        classes=classes,
        skipped=() if name else reading.skipped,
        problem=reading.problem,
        comments=tuple(comments),
        complaints=tuple(complaints),
        leftovers=tuple(leftover_packages(new)),
        is_chosen=bool(name),
    )


def without_abstract_classes(files: Sequence[CheckedFile]) -> Iterator[tuple[CheckedFile, list[CheckedClass], list[Skipped]]]:
    """Yield each file with its classes that are judged, and with what is skipped, abstract bases among them."""
    bases = {base for file in files if not file.is_chosen for item in file.classes for base in item.bases}
    for file in files:
        abstract = {
            item.id
            for item in file.classes
            if not file.is_chosen and (item.is_marked_abstract or (item.id in bases and item.is_incomplete))
        }
        notes = [
            Skipped(path=item.path, line=item.line, name=item.name, reason=ABSTRACT_BASE)
            for item in file.classes
            if item.id in abstract
        ]
        yield file, [item for item in file.classes if item.id not in abstract], [*file.skipped, *notes]


def _chosen(path: str, name: str, reading: FileReading, tree: SourceTree, *, with_base_env: bool) -> ClassSource:
    source = read_class(path, name, tree)
    seen = sorted({item.name for item in reading.classes} | {item.name for item in reading.skipped})
    if source is None:
        nearest = difflib.get_close_matches(name, seen, n=1, cutoff=0.4)
        hint = f" Did you mean {nearest[0]}?" if nearest else ""
        raise BadTarget(f"{path} has no class {name}; its classes are: {', '.join(seen) or 'none'}.{hint}")
    if source.class_kind is ClassKind.OTHER or (source.class_kind is ClassKind.ATROPOS and not with_base_env):
        way_out = " (or add --hermes-base-env)" if source.class_kind is ClassKind.ATROPOS else ""
        raise BadTarget(f"{path}:{name} is {source.class_kind}: expected a class derived from HermesAgentBaseEnv{way_out}")
    return source


def checked_class(source: ClassSource, rules: Sequence[Rule]) -> CheckedClass:
    """Ask every rule about a class."""
    return CheckedClass(
        path=source.path,
        line=source.line,
        name=source.name,
        id=_id(source),
        bases=frozenset(map(_id, source.readable[1:])),
        is_marked_abstract=source.is_marked_abstract,
        is_incomplete=bool(source.missing) and not source.unreadable,
        verdicts=tuple(_timed_verdict(rule, source) for rule in rules),
    )


def _id(source: ClassSource) -> _Id:
    return os.path.abspath(source.path), source.line


def _timed_verdict(rule: Rule, source: ClassSource) -> tuple[Verdict, float]:
    start = time.perf_counter()
    verdict = _verdict(rule, source)
    return verdict, time.perf_counter() - start


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
