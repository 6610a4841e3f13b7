"""The evidence file: what was played, as lines of JSON, written as it happens and read by whoever judges.

Each class begins with a line ``{"evidence": VERSION, ...}``. Then follow, in the order in which they happened, ``begins`` (the name of
a scenario), ``scenario`` (its record; a later one of the same name replaces it), ``finished`` (a family of them), ``class`` (what is known of the class) and ``ended``
(how its process ended). A file that was kept is compressed and redacted; a part that a killed process left is neither whole nor
compressed, and is read as far as it goes.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from pytest_hermes_env.atomic_files import write_bytes
from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.play import class_record, journal, sampling, scenario
from pytest_hermes_env.play.codec import Codec
from pytest_hermes_env.play.probing import record
from pytest_hermes_env.play.scenario import Collection, Scenario
from pytest_hermes_env.redaction.file_check import check_text, keys_among
from pytest_hermes_env.redaction.shown_text import environment_redactor
from pytest_hermes_env.sandbox import seam

VERSION = 2
"""Of the format; a file of a later one is refused."""

CODEC = Codec(class_record, journal, sampling, scenario, record, seam)
_MAGIC = b"\x1f\x8b"


class EvidenceWriter:
    """Appends lines to one part; a context that closes it. A process that was forked from the one that opened it writes nothing."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "a", encoding="utf-8", errors="surrogatepass")  # noqa: SIM115 - open for the life of the process
        self._process = os.getpid()

    def write(self, kind: str, value: Any, **more: Any) -> None:
        """Append one line, and hand it to the system at once."""
        self.write_encoded(kind, CODEC.encode(value), **more)

    def write_encoded(self, kind: str, value: Any, **more: Any) -> None:
        """Append one line of what is plain JSON already."""
        if os.getpid() == self._process:
            self._file.write(json.dumps({kind: value, **more}) + "\n")
            self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


@dataclass
class PlayedClass:
    """One class of an evidence file: its first line, what was played, and the scenarios that had begun when its process ended."""

    header: dict[str, Any]
    collection: Collection
    unfinished: list[tuple[str, str]] = field(default_factory=list)
    """Name, and first scenario of its family."""
    refusal: tuple[str, str] | None = None
    """Type and text of the error with which the player refused to play."""
    blocked: str = ""
    """What it reached for on other machines, as an error text."""
    died: str = ""
    """What ended the event loop of the last process."""

    @property
    def target(self) -> str:
        """The class as the user named it."""
        return str(self.header.get("target", ""))


def read_lines(lines: Iterable[str], place: str) -> Iterator[PlayedClass]:
    """Yield the classes of an evidence file. A last line that is not whole is left out. Raises: not such a file → UsageError."""
    played: PlayedClass | None = None
    scenarios: dict[str, Scenario] = {}
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            kind = next(iter(row))
        except (ValueError, TypeError, StopIteration):
            if not line.endswith("\n"):
                break
            raise UsageError(
                f"{place}, line {number}, is not a line of an evidence file (--hermes-evidence writes one)"
            ) from None
        if kind == "evidence":
            if row[kind] != VERSION:
                raise UsageError(
                    f"{place} has version {row[kind]} of the evidence format; this version of pytest-hermes-env reads {VERSION}"
                )
            if played is not None:
                yield _whole(played, scenarios)
            played, scenarios = PlayedClass(header=row, collection=Collection()), {}
        elif played is None:
            raise UsageError(f"{place} is not an evidence file: its first line must be {{'evidence': {VERSION}, ...}}")
        elif kind == "begins":
            played.unfinished.append((row[kind], row["of"]))
        elif kind == "scenario":
            found = CODEC.decode(row[kind])
            scenarios[found.name] = found
            played.unfinished = [begun for begun in played.unfinished if begun[0] != found.name]
        elif kind == "finished":
            played.unfinished = [begun for begun in played.unfinished if begun[1] != row[kind]]
        elif kind == "class":
            played.collection = CODEC.decode(row[kind])
        elif kind == "refused":
            played.refusal = row["type"], row[kind]
        elif kind == "blocked":
            played.blocked = row[kind]
        elif kind == "died":
            played.died = row[kind]
        elif kind == "ended":
            played.unfinished, played.died = [], ""
    if played is not None:
        yield _whole(played, scenarios)


def _whole(played: PlayedClass, scenarios: dict[str, Scenario]) -> PlayedClass:
    played.collection = replace(played.collection, scenarios=dict(scenarios))
    return played


def read_evidence(path: str) -> list[PlayedClass]:
    """Read an evidence file, compressed or not. Raises: it cannot be read, or is none → UsageError."""
    try:
        text = _text_of(path)
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise UsageError(f"the evidence file {path} cannot be read: {error}") from error
    found = list(read_lines(text.splitlines(keepends=True), path))
    if not found:
        raise UsageError(f"{path} is empty: --hermes-evidence FILE writes one")
    return found


def _text_of(path: str) -> str:
    data = Path(path).read_bytes()
    return (gzip.decompress(data) if data.startswith(_MAGIC) else data).decode(errors="surrogatepass")


def keep_evidence(path: str, parts: Iterable[str]) -> None:
    """Write the parts of a run, redacted and compressed, whole or not at all; of a class in several parts, the first.

    Raises: it cannot be written, or contains a secret after all → UsageError.
    """
    redactor = environment_redactor()
    kept: list[str] = []
    known: set[str] = set()
    is_new = False
    for line in (line for part in parts for line in _text_of(part).splitlines()):
        row = json.loads(line)
        if "evidence" in row:
            is_new = row["target"] not in known
            known.add(row["target"])
        if is_new:
            kept.append(json.dumps(redactor.value(row)) + "\n")
    text = "".join(kept)
    check_text(path, text, keys_among(redactor.known), UsageError)
    write_bytes(path, gzip.compress(text.encode(), mtime=0))
