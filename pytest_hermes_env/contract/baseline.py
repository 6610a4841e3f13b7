"""The findings that old code is allowed to keep: a file that only shrinks.

An entry is a rule, a class and the text of the line, so that a finding keeps its entry when lines move. Two equal findings need two
entries. What is not in the file fails, and an entry that no longer occurs must be taken out.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import linecache
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pytest_hermes_env.contract.ledger.comments import complaint
from pytest_hermes_env.contract.ledger.ledger import Accepted, Ledger, LedgerEntry
from pytest_hermes_env.contract.project_files import read_stored_json, shown_path
from pytest_hermes_env.contract.verdict import Outcome
from pytest_hermes_env.errors import BadSettings, shorten
from pytest_hermes_env.source import FileProblem
from pytest_hermes_env.source.finding import Finding

DEFAULT_FILE = "hermes-env-baseline.json"
VERSION = 1
_FIELDS = ("rule", "path", "class", "line", "fingerprint")
_SETTLED = frozenset({Outcome.PASSED, Outcome.FAILED, Outcome.NOT_APPLICABLE})


@dataclass(frozen=True, kw_only=True, order=True)
class Known:
    """A finding as the file keeps it. ``path`` is relative to the file's directory; ``text`` is the line, for its readers."""

    path: str
    owner: str
    rule: str
    text: str
    fingerprint: str


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A baseline file as it was read."""

    file: str
    entries: tuple[Known, ...] = ()

    def applied(self, ledgers: Sequence[Ledger]) -> tuple[Ledger, ...]:
        """Return the ledgers with the findings of the file moved aside."""
        left = Counter(self.entries)
        file = shown_path(self.file)

        def accept(finding: Finding, ledger: Ledger, entry: LedgerEntry) -> Accepted | None:
            known = known_as(self.file, ledger, entry.rule.id, finding)
            if left[known] <= 0:
                return None
            left[known] -= 1
            return Accepted(finding=finding, reason=f"in the baseline {file}", origin=file)

        return tuple(
            dataclasses.replace(
                ledger,
                entries=tuple(entry.set_aside(partial(accept, ledger=ledger, entry=entry)) for entry in ledger.entries),
            )
            for ledger in ledgers
        )

    def gone(self, ledgers: Sequence[Ledger]) -> list[Known]:
        """Return the entries that no longer occur, as far as this check could see; ``ledgers`` as `applied` gave them."""
        left = Counter(self.entries)
        left.subtract(
            known_as(self.file, ledger, entry.rule.id, item.finding)
            for ledger in ledgers
            for entry in ledger.entries
            for item in entry.accepted
            if item.origin == shown_path(self.file)
        )
        outcomes = {
            (relative(self.file, ledger.path), owner_of(ledger), entry.rule.id): entry.outcome
            for ledger in ledgers
            for entry in ledger.entries
        }
        return sorted(known for known in left.elements() if self._is_gone(known, outcomes))

    def _is_gone(self, known: Known, outcomes: dict[tuple[str, str, str], Outcome]) -> bool:
        outcome = outcomes.get((known.owner.rpartition(":")[0], known.owner.rpartition(":")[2], known.rule))
        if outcome is not None:
            return outcome in _SETTLED
        file = os.path.join(os.path.dirname(self.file), known.owner.rpartition(":")[0])
        if not os.path.isfile(file):
            return True
        with open(file, "rb") as stream:
            name = re.escape(known.owner.rpartition(":")[2]).encode()
            return re.search(rb"\bclass\s+" + name + rb"\b", stream.read()) is None

    def complaints(self, ledgers: Sequence[Ledger]) -> list[FileProblem]:
        """Return a complaint for each entry that no longer occurs."""
        return [
            complaint(
                shown_path(self.file),
                1,
                1,
                f"{known.rule} in {known.owner} ({shorten(known.text)!r}) no longer occurs: `hermes-env check --write-baseline` "
                "removes it",
            )
            for known in self.gone(ledgers)
        ]


def read_baseline(file: str) -> Baseline:
    """Return the baseline in a file. Raises: BadSettings when there is none, or when it is no baseline."""
    path = os.path.abspath(file)
    hint = "`hermes-env check PATH --write-baseline` writes one"
    findings = read_stored_json(path, kind="baseline", version=VERSION, key="findings", hint=hint)
    if not isinstance(findings, list):
        raise BadSettings(
            f'{shown_path(path)} is not a baseline: expected an object with "version": {VERSION} and "findings": [...]'
        )
    return Baseline(file=path, entries=tuple(_entry(path, number, item) for number, item in enumerate(findings, 1)))


def rewritten(file: str, old: Baseline | None, ledgers: Sequence[Ledger], *, adds: bool) -> tuple[str, int, int, list[Known]]:
    """Return the file's next text, how many entries it has, how many were taken out, and the findings that may not be added.

    ``ledgers`` as `Baseline.applied` gave them, where there was an ``old`` one. Only ``adds`` or a first writing lets the file grow.
    """
    path = os.path.abspath(file)
    gone = old.gone(ledgers) if old else []
    fresh = [
        known_as(path, ledger, entry.rule.id, finding)
        for ledger in ledgers
        for entry in ledger.entries
        if not entry.waiver
        for finding in entry.findings
    ]
    refused = fresh if old is not None and not adds else []
    kept = Counter(old.entries if old else ())
    kept.subtract(gone)
    entries = sorted([*kept.elements(), *(fresh if not refused else ())])
    return _text(entries), len(entries), len(gone), sorted(refused)


def known_as(file: str, ledger: Ledger, rule_id: str, finding: Finding) -> Known:
    """Return a finding as the baseline in ``file`` keeps it."""
    linecache.checkcache(finding.path)  # a line that was read before the file changed is not the finding's
    text = " ".join(linecache.getline(finding.path, finding.line).split()) if finding.path else ""
    path = relative(file, finding.path)
    owner = f"{relative(file, ledger.path)}:{owner_of(ledger)}"
    digest = hashlib.sha256("\n".join([rule_id, path, owner, text or finding.message]).encode()).hexdigest()
    return Known(path=path, owner=owner, rule=rule_id, fingerprint=digest[:16], text=text)


def owner_of(ledger: Ledger) -> str:
    """Return the name of a ledger's class."""
    return ledger.subject.rpartition(":")[2].rpartition(".")[2]


def relative(file: str, path: str) -> str:
    """Return ``path`` as it is written in the baseline ``file``."""
    if not path:
        return ""
    return os.path.relpath(os.path.abspath(path), os.path.dirname(os.path.abspath(file))).replace(os.sep, "/")


def _entry(file: str, number: int, item: Any) -> Known:
    if not isinstance(item, dict) or any(not isinstance(item.get(name), str) for name in _FIELDS):
        raise BadSettings(
            f"{shown_path(file)}: finding {number} needs the strings {', '.join(_FIELDS)}; got {shorten(repr(item))}"
        )
    return Known(path=item["path"], owner=item["class"], rule=item["rule"], fingerprint=item["fingerprint"], text=item["line"])


def _text(entries: Iterable[Known]) -> str:
    rows = [
        {"rule": item.rule, "class": item.owner, "path": item.path, "line": item.text, "fingerprint": item.fingerprint}
        for item in entries
    ]
    return json.dumps({"version": VERSION, "findings": rows}, indent=2, ensure_ascii=False) + "\n"
