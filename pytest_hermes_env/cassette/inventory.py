"""Lists cassettes and what has changed since they were recorded, by reading files, without importing tests.

Place in the flow: `hermes-env cassettes` prints them.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pytest_hermes_env.cassette.format import SUFFIX, read_tape
from pytest_hermes_env.cassette.recorder import version_drift
from pytest_hermes_env.cassette.tape import ModelCall, Tape
from pytest_hermes_env.errors import BadCassette, UsageError
from pytest_hermes_env.missing_files import files_below
from pytest_hermes_env.redaction.shown_text import shown_name

DEFAULT_DIRECTORY = "cassettes"
_SECONDS_PER_DAY = 86_400


@dataclass(frozen=True, kw_only=True)
class CassetteEntry:
    """One file. ``days``: its age. ``drift``: the changes since. ``orphan``: why no test uses it. ``error``: why it is unreadable."""

    path: str
    size: int
    calls: int = 0
    model_calls: int = 0
    days: int | None = None
    model: str = ""
    provider: str = ""
    recorded_from: str = ""
    environment: str = ""
    test: str = ""
    drift: tuple[str, ...] = ()
    orphan: str = ""
    error: str = ""

    @property
    def has_finding(self) -> bool:
        """Whether the cassette is unreadable, has drifted, or is used by no test."""
        return bool(self.error or self.drift or self.orphan)


def inventory_of(directories: Sequence[str], root: Path, now: datetime | None = None) -> list[CassetteEntry]:
    """Return all cassettes below ``directories``, by default below ``root``/cassettes, sorted by path.

    Test ids and environments are looked up below ``root``.

    Raises: a directory does not exist, or none contains a cassette → UsageError.
    """
    named = [Path(directory) for directory in directories] or [root / DEFAULT_DIRECTORY]
    for directory in named:
        if not directory.exists():
            raise UsageError(
                f"the cassette directory {directory} does not exist.\n"
                "  fix       pass the directories with cassettes: hermes-env cassettes DIR, or record one:\n"
                "            pytest --hermes-record=once"
            )
    paths = sorted({path for directory in named for path in _files(directory)})
    if not paths:
        raise UsageError(
            f"there is no cassette below {', '.join(map(str, named))}: no {SUFFIX} file.\n"
            "  fix       pass another directory, or record a cassette: pytest --hermes-record=once"
        )
    project = _Project(root)
    return [_entry(path, project, now or datetime.now(UTC)) for path in paths]


def _files(directory: Path) -> list[Path]:
    if directory.is_file():
        return [directory]
    found = filter(Path.is_file, directory.rglob(f"*{SUFFIX}"))
    return [path for path in found if not any(part.startswith(".") for part in path.relative_to(directory).parts)]


def _entry(path: Path, project: _Project, now: datetime) -> CassetteEntry:
    shown = os.path.relpath(path, project.root) if path.is_absolute() else str(path)
    size = path.stat().st_size
    try:
        tape = read_tape(path)
    except BadCassette as error:
        return CassetteEntry(path=shown, size=size, error=str(error))
    header = tape.header
    return CassetteEntry(
        path=shown,
        size=size,
        calls=len(tape.calls),
        model_calls=sum(isinstance(call, ModelCall) for call in tape.calls),
        days=_days(header.recorded_at, now),
        model=header.model,
        provider=header.provider,
        recorded_from=header.recorded_from,
        environment=header.environment,
        test=header.test,
        drift=tuple(_drift(tape, project)),
        orphan=project.why_no_test(header.test),
    )


def _days(recorded_at: str, now: datetime) -> int | None:
    try:
        then = datetime.fromisoformat(recorded_at)
    except ValueError:
        return None
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return int((now - then).total_seconds() // _SECONDS_PER_DAY)


def _drift(tape: Tape, project: _Project) -> Iterator[str]:
    yield from version_drift(tape.header)
    if not tape.header.environment or not tape.header.source_hash:
        return
    module = tape.header.environment.partition(":")[0]
    hashes = project.source_hashes(module)
    if not hashes:
        yield f"the source of {tape.header.environment} was not found below {project.root} or on sys.path"
    elif tape.header.source_hash not in hashes:
        yield f"the source of {tape.header.environment} has changed"


class _Project:
    """The tests and sources below a directory; each module is looked up once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.source_hashes = functools.cache(self._source_hashes)

    def why_no_test(self, test: str) -> str:
        """Return why no test uses a cassette; "" if one may do so."""
        if not test:
            return "it names no test"
        file, _, name = test.partition("::")
        path = self.root / file
        if not path.is_file():
            return f"there is no file {file}"
        function = name.partition("[")[0].rpartition("::")[2]
        is_there = re.search(rf"\b{re.escape(function)}\b", path.read_text(encoding="utf-8", errors="replace"))
        return "" if is_there else f"{file} has no test {function}"

    def _source_hashes(self, module: str) -> frozenset[str]:
        """Return the SHA-256 of every file below the project or on sys.path that may be ``module``."""
        tail = os.path.join(*module.split("."))
        ends = (f"{tail}.py", os.path.join(tail, "__init__.py"))
        own = [path for path in self._python_files if path.endswith(tuple(f"{os.sep}{end}" for end in ends))]
        installed = [os.path.join(place, end) for place in sys.path if place for end in ends]
        found = [path for path in map(Path, (*own, *installed)) if path.is_file()]
        return frozenset(hashlib.sha256(path.read_bytes()).hexdigest() for path in found)

    @functools.cached_property
    def _python_files(self) -> list[str]:
        return [path for path in files_below(os.path.abspath(self.root)) if path.endswith(".py")]


def inventory_lines(entries: Sequence[CassetteEntry]) -> list[str]:
    """Return the inventory as lines of text."""
    lines: list[str] = []
    for entry in entries:
        lines.append(entry.path)
        if entry.error:
            lines.extend(
                f"  error     {line.strip()}" if number == 0 else f"  {line.strip()}"
                for number, line in enumerate(entry.error.splitlines())
            )
            continue
        age = "age unknown" if entry.days is None else f"{entry.days} days old"
        lines.append(f"  holds     {entry.calls} calls, {entry.model_calls} of them to a model; {_size(entry.size)}, {age}")
        where = ", ".join(part for part in (entry.model, entry.provider) if part) or "no model named"
        lines.append(f"  from      {where}: {entry.recorded_from}")
        lines.append(f"  test      {entry.test or 'none named'}")
        lines.extend(f"  drift     {drift}" for drift in entry.drift)
        if entry.orphan:
            lines.append(f"  orphan    {entry.orphan}")
    lines.append(_summary(entries))
    return list(map(shown_name, lines))


def _summary(entries: Sequence[CassetteEntry]) -> str:
    counts = {
        "unreadable": sum(bool(entry.error) for entry in entries),
        "drifted": sum(bool(entry.drift) for entry in entries),
        "that no test uses": sum(bool(entry.orphan) for entry in entries),
    }
    noun = "cassette" if len(entries) == 1 else "cassettes"
    size = _size(sum(entry.size for entry in entries))
    return f"{len(entries)} {noun}, {size}: " + ", ".join(f"{count} {what}" for what, count in counts.items())


def _size(size: int) -> str:
    kilobyte = 1000
    if size < kilobyte:
        return f"{size} B"
    return f"{size / kilobyte:.1f} kB" if size < kilobyte**2 else f"{size / kilobyte**2:.1f} MB"
