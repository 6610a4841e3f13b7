"""A stored ledger: which rules a class was exercised by. A later run that exercises fewer fails, and says which and why.

The file keeps, for each class and mode (chat, token), the ids of the rules that passed, failed or were waived.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from pytest_hermes_env.contract.ledger.ledger import Ledger, LedgerEntry
from pytest_hermes_env.contract.project_files import read_stored_json
from pytest_hermes_env.contract.verdict import Outcome
from pytest_hermes_env.errors import BadSettings

VERSION = 1
_EXERCISED = frozenset({Outcome.PASSED, Outcome.FAILED})

Stored = dict[str, dict[str, list[str]]]
"""class -> mode -> ids of the rules that were exercised."""


def read_stored(file: str) -> Stored:
    """Return what a file keeps. Raises: BadSettings when there is none, or when it is no ledger."""
    hint = "Add --hermes-write-ledger to store this run's"
    classes = read_stored_json(file, kind="ledger", version=VERSION, key="classes", hint=hint)
    if not isinstance(classes, dict) or not all(_is_stored(modes) for modes in classes.values()):
        raise BadSettings(f'{file} is not a ledger: expected an object with "version": {VERSION} and "classes": {{...}}')
    return classes


def stored_text(old: Stored, ledgers: Iterable[Ledger]) -> str:
    """Return the text of a file that keeps the classes of this run, and what was kept of others."""
    classes: Stored = {name: dict(modes) for name, modes in old.items()}
    for ledger in ledgers:
        classes.setdefault(ledger.subject, {})[ledger.mode] = sorted(e.rule.id for e in ledger.entries if _is_exercised(e))
    return json.dumps({"version": VERSION, "classes": classes}, indent=2, sort_keys=True) + "\n"


def fewer(stored: Mapping[str, Mapping[str, list[str]]], ledgers: Iterable[Ledger], *, mode: str) -> list[str]:
    """Return a line for each class that was exercised by fewer rules than the file keeps for its mode."""
    checked = {ledger.subject: ledger for ledger in ledgers}
    lines = []
    for name, modes in stored.items():
        before = modes.get(mode, [])
        if not before:
            continue
        ledger = checked.get(name)
        if ledger is None:
            lines.append(f"{name} was checked before (in {mode} mode) and is not in this run{_nearest(name, checked)}")
            continue
        entries = {entry.rule.id: entry for entry in ledger.entries}
        lost = [rule_id for rule_id in before if rule_id not in entries or not _is_exercised(entries[rule_id])]
        if lost:
            reasons = "; ".join(f"{rule_id} {_why(entries.get(rule_id))}" for rule_id in lost)
            count = len(before) - len(lost)
            lines.append(
                f"{name} was exercised by {len(before)} rules before (in {mode} mode), now by {count} of them: {reasons}"
            )
    return lines


def _why(entry: LedgerEntry | None) -> str:
    if entry is None:
        return "no longer exists"
    return f"is {entry.word} ({entry.note})" if entry.note else f"is {entry.word}"


def _nearest(name: str, checked: Mapping[str, Ledger]) -> str:
    """Name a class of the same name that was checked: it may have moved."""
    same = [other for other in checked if other.rpartition(":")[2] == name.rpartition(":")[2]]
    return f"; {same[0]} is: store the ledger again with --hermes-write-ledger" if same else ""


def _is_exercised(entry: LedgerEntry) -> bool:
    return entry.outcome in _EXERCISED


def _is_stored(modes: object) -> bool:
    return isinstance(modes, dict) and all(
        isinstance(ids, list) and all(isinstance(item, str) for item in ids) for ids in modes.values()
    )
