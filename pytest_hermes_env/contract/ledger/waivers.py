"""Which findings are accepted, why, and which waivers no longer hold.

Place in the flow: `hermes-env check` and pytest give their ledgers, the comments of the files that were read and the table of
pyproject.toml; they get ledgers back in which accepted findings no longer count, and a complaint for each waiver that waives nothing.

A waiver is called stale only by a run that could have seen the violation: a rule with a half that runs rollouts is never settled by
reading source, and a rule that was undecided, not exercised or not run settles nothing.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import glob
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import PurePath

from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.contract.ledger.comments import CommentWaiver, complaint, read_comments
from pytest_hermes_env.contract.ledger.ledger import Accepted, Ledger, LedgerEntry
from pytest_hermes_env.contract.ledger.settings import PathWaiver, Settings
from pytest_hermes_env.redaction.shown_text import shown_path
from pytest_hermes_env.source import FileProblem, Module, SourceTree, read_classes
from pytest_hermes_env.source.finding import Finding


@dataclass(frozen=True, kw_only=True)
class Waivers:
    """Everything that accepts findings by their place. ``problems`` are comments that cannot hold, whatever was found."""

    comments: tuple[CommentWaiver, ...] = ()
    paths: tuple[PathWaiver, ...] = ()
    root: str = ""
    problems: tuple[FileProblem, ...] = ()

    def applied_to(self, ledgers: Sequence[Ledger]) -> tuple[Ledger, ...]:
        """Return the ledgers with accepted findings moved aside."""
        return tuple(
            dataclasses.replace(ledger, entries=tuple(self.applied(entry) for entry in ledger.entries)) for ledger in ledgers
        )

    def applied(self, entry: LedgerEntry) -> LedgerEntry:
        """Return the entry with the findings that some waiver accepts moved aside."""
        return entry.set_aside(lambda finding: self.accepts(entry.rule.id, finding))

    def accepts(self, rule_id: str, finding: Finding) -> Accepted | None:
        """Return why a finding is accepted, or None."""
        file = os.path.abspath(finding.path) if finding.path else ""
        for comment in self.comments:
            is_here = comment.file == file and comment.first <= finding.line <= comment.last
            if rule_id in comment.rules and is_here and not _is_expired(comment):
                return Accepted(finding=finding, reason=comment.reason, origin=comment.origin)
        for waiver in self.paths:
            if rule_id in waiver.rules and not _is_expired(waiver) and file in self._files(waiver):
                return Accepted(finding=finding, reason=waiver.reason, origin=_origin(waiver))
        return None

    def stale(self, ledgers: Sequence[Ledger], *, sees_rollouts: bool) -> list[FileProblem]:
        """Return a complaint for each waiver that accepted nothing although this run could have seen what it accepts."""
        used = {
            (accepted.origin, entry.rule.id) for ledger in ledgers for entry in ledger.entries for accepted in entry.accepted
        }
        complaints = []
        for comment in self.comments:
            if _is_expired(comment):
                complaints.append(complaint(comment.path, comment.line, 1, _expired(comment)))
                continue
            checked = _checked_by_comment(comment, ledgers, sees_rollouts=sees_rollouts)
            complaints += [
                complaint(comment.path, comment.line, 1, _stale(rule_id, comment.reason, "here"))
                for rule_id in comment.rules
                if (comment.origin, rule_id) not in used and _is_settled(rule_id, checked, sees_rollouts=sees_rollouts)
            ]
        for waiver in self.paths:
            messages = self._faults(waiver, ledgers, used, sees_rollouts=sees_rollouts)
            complaints += [complaint(shown_path(waiver.file), waiver.line, 1, message) for message in messages]
        return complaints

    def _faults(
        self, waiver: PathWaiver, ledgers: Sequence[Ledger], used: set[tuple[str, str]], *, sees_rollouts: bool
    ) -> list[str]:
        """Return why a waiver of pyproject.toml no longer holds."""
        files = self._files(waiver)
        if _is_expired(waiver):
            return [_expired(waiver)]
        if not files:
            return [f"the waiver of {', '.join(waiver.rules)} names {', '.join(waiver.paths)}, which matches no file"]
        if not _are_whole(files, ledgers):
            return []
        checked = [ledger for ledger in ledgers if os.path.abspath(ledger.path) in files]
        return [
            _stale(rule_id, waiver.reason, f"in {', '.join(waiver.paths)}")
            for rule_id in waiver.rules
            if (_origin(waiver), rule_id) not in used and _is_settled(rule_id, checked, sees_rollouts=sees_rollouts)
        ]

    def _files(self, waiver: PathWaiver) -> frozenset[str]:
        """Return the Python files that a waiver names."""
        known = self._expanded.get(waiver)
        if known is None:
            known = self._expanded[waiver] = frozenset(
                os.path.normpath(os.path.join(self.root, name))
                for pattern in waiver.paths
                for name in _expanded(pattern, self.root)
            )
        return known

    @cached_property
    def _expanded(self) -> dict[PathWaiver, frozenset[str]]:
        return {}


def waivers_of(comments: Iterable[CommentWaiver], problems: Iterable[FileProblem], settings: Settings) -> Waivers:
    """Return the waivers of a run: the comments of the files that were read, each once, and the table of ``settings``."""
    return Waivers(
        comments=tuple(dict.fromkeys(comments)),
        paths=settings.waivers,
        root=settings.root,
        problems=tuple(dict.fromkeys(problems)),
    )


def waivers_in(modules: Iterable[Module], settings: Settings) -> Waivers:
    """Return the waivers of a run from the files themselves."""
    read = [read_comments(module) for module in modules]
    return waivers_of(
        chain.from_iterable(found for found, _ in read), chain.from_iterable(wrong for _, wrong in read), settings
    )


def _are_whole(files: Iterable[str], ledgers: Sequence[Ledger]) -> bool:
    """Tell whether every environment of ``files`` was checked in this run."""
    checked = {(os.path.abspath(ledger.path), ledger.line) for ledger in ledgers}
    tree = SourceTree()
    return all(
        source.is_marked_abstract or (file, source.line) in checked
        for file in files
        for source in read_classes(file, tree).classes
    )


def _checked_by_comment(comment: CommentWaiver, ledgers: Sequence[Ledger], *, sees_rollouts: bool) -> list[Ledger]:
    """Return the classes whose verdicts say whether a comment still waives anything; none when this run cannot know."""
    here = [ledger for ledger in ledgers if os.path.abspath(ledger.path) == comment.file]
    if comment.owner:
        own = [ledger for ledger in here if ledger.subject.rpartition(":")[2].rpartition(".")[2] == comment.owner]
        return own if own or sees_rollouts else here
    return here if _are_whole([comment.file], here) else []


def _is_settled(rule_id: str, ledgers: Sequence[Ledger], *, sees_rollouts: bool) -> bool:
    entries = [entry for ledger in ledgers for entry in ledger.entries if entry.rule.id == rule_id]
    return bool(entries) and all(_says(entry, sees_rollouts=sees_rollouts) for entry in entries)


def _says(entry: LedgerEntry, *, sees_rollouts: bool) -> bool:
    if entry.outcome in {Outcome.PASSED, Outcome.FAILED}:
        return sees_rollouts or entry.rule.dynamic is None
    return entry.outcome is Outcome.NOT_APPLICABLE and entry.rule.dynamic is None


def _stale(rule_id: str, reason: str, where: str) -> str:
    return f"{rule_id} is waived ({reason}), but no violation of it was found {where}: remove the waiver"


def _expired(waiver: CommentWaiver | PathWaiver) -> str:
    return f"the waiver of {', '.join(waiver.rules)} ({waiver.reason}) expired on {waiver.expires}"


def _is_expired(waiver: CommentWaiver | PathWaiver) -> bool:
    return waiver.expires is not None and waiver.expires < dt.datetime.now(tz=dt.UTC).date()


def _origin(waiver: PathWaiver) -> str:
    return f"{shown_path(waiver.file)}:{waiver.line}"


def _expanded(pattern: str, root: str) -> list[str]:
    """Return what a glob means: ``legacy/**`` is every file below, ``legacy`` the directory itself, too."""
    if os.path.isdir(os.path.join(root, pattern)):
        pattern = str(PurePath(pattern) / "**")
    if pattern.endswith("**"):
        pattern = str(PurePath(pattern) / "*.py")
    return [name for name in glob.glob(pattern, root_dir=root or None, recursive=True) if name.endswith((".py", ".pyi"))]
