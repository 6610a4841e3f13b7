"""The tasks of a terminal benchmark: their archives, their fields, how to load them from a dataset, and how to choose some by name.

An archive is base64 of a tar file, compressed or not. It is unpacked so that nothing lands outside of its directory.
"""

from __future__ import annotations

import base64
import bz2
import difflib
import functools
import gzip
import io
import lzma
import os
import tarfile
import zlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import yaml

from environments.rollout.data_rows import check_columns, load_items, unique_items

MAX_BYTES = 256 * 2**20
"""Bytes of an archive, unpacked: a few kilobytes of a dataset could otherwise fill memory and disk."""
MAX_MEMBERS = 20_000
"""Files, directories and links of an archive: empty ones have no bytes, and use up the disk's inodes."""

_DECOMPRESSED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
"""The first bytes of a compressed archive -> the function that opens it."""


class ArchiveError(ValueError):
    """An archive cannot be read, or is not safe to unpack."""


def unpack(text: str, directory: Path, *, max_bytes: int = MAX_BYTES, max_members: int = MAX_MEMBERS) -> None:
    """Unpack an archive into ``directory``: plain files, directories, and links downwards.

    A path or link that goes up is refused even if it would stay inside: tarfile's own filter was led out by chains of such links
    (CVE-2025-4517, fixed in Python 3.12.11 and 3.13.4), and links that only go down lead nowhere else.

    Raises: ArchiveError for an archive that cannot be read, for a member that goes up, for devices, and for more than ``max_bytes``
        or ``max_members``.
    """
    size = 0
    try:
        data = base64.b64decode(text, validate=True)
        opened = next((opened for start, opened in _DECOMPRESSED.items() if data.startswith(start)), lambda plain: plain)
        plain = opened(io.BytesIO(data)).read(max_bytes + 1)
        _check_limit(len(plain), max_bytes, "bytes")
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r|") as archive:
            for count, member in enumerate(archive, 1):
                size += member.size  # a sparse file is larger than its part of the archive
                _check_limit(size, max_bytes, "bytes")
                _check_limit(count, max_members, "members")
                if any(".." in path.split("/") for path in (member.name, member.linkname)):
                    raise ArchiveError(f"it holds a path that goes up: {member.name[:200]} {member.linkname[:200]}".rstrip())
                _extract(archive, member, directory)
    except (ValueError, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, RecursionError) as error:
        raise ArchiveError(f"the archive cannot be unpacked: {type(error).__name__}: {error}") from error


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, directory: Path) -> None:
    """Extract one member that does not go up, also in a Python before 3.11.4, whose tarfile has no filters."""
    if hasattr(tarfile, "data_filter"):
        archive.extract(member, directory, filter="data")
        return
    if not (member.isfile() or member.isdir() or member.issym() or member.islnk()) or member.linkname.startswith("/"):
        raise ArchiveError(f"it holds a device, or a link to an absolute path: {member.name[:200]}")
    member.name, member.mode = member.name.lstrip("/"), member.mode & 0o755
    member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
    archive.extract(member, directory)


def _check_limit(number: int, limit: int, unit: str) -> None:
    if number > limit:
        raise ArchiveError(
            f"it holds more than {limit:,} {unit}, which is the limit for a task; leave the task out with skip_tasks"
        )


def packed(files: Mapping[str, str]) -> str:
    """Return an archive of text files, by their paths."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, content in files.items():
            data = content.encode()
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(data), 0o644
            archive.addfile(member, io.BytesIO(data))
    return base64.b64encode(buffer.getvalue()).decode()


# ---------------------------------------------------------------------- tasks

REQUIRED = ("task_name", "instruction", "test_sh")


class TerminalTask(TypedDict):
    """One task. Archives are base64 of a tar file; a field that a dataset lacks is empty."""

    task_name: str
    category: str
    instruction: str
    docker_image: str
    environment_tar: str
    """The files that the agent starts with."""
    tests_tar: str
    """The files that ``test_sh`` needs."""
    test_sh: str


@functools.cache
def sample_tasks() -> tuple[TerminalTask, ...]:
    """Return the tasks of ``sample_tasks.yaml``."""
    text = Path(__file__).with_name("sample_tasks.yaml").read_text(encoding="utf-8")
    return tuple(
        TerminalTask(
            task_name=row["task_name"],
            category=row["category"],
            instruction=row["instruction"],
            docker_image="",
            environment_tar=packed(row["environment"]),
            tests_tar=packed(row["tests"]),
            test_sh=row["test_sh"],
        )
        for row in yaml.safe_load(text)
    )


def load_tasks(name: str | None, *, split: str) -> list[TerminalTask]:
    """Return the tasks of a dataset, or the samples; see `data_rows.load_items`."""

    def items_of(rows: Any) -> list[TerminalTask]:
        check_columns(name or "", rows.column_names, **{f"required for {field}": field for field in REQUIRED})
        return unique_items(rows, _task_of, name=name or "", key="task_name", needs="test_sh")

    return load_items(name, split, items_of=items_of, samples=sample_tasks())


def _task_of(row: Mapping[str, Any]) -> TerminalTask:
    values = {field: str(row.get(field) or "") for field in TerminalTask.__annotations__}
    return TerminalTask(**{**values, "category": values["category"] or "uncategorized"})  # type: ignore[typeddict-item]


def chosen_tasks(tasks: Sequence[TerminalTask], *, only: str | None, skipped: str | None) -> list[TerminalTask]:
    """Return the tasks whose names are in ``only``, if it is set, and not in ``skipped``: names with commas between them.

    Raises: ValueError for a name that no task has, and when no task is left.
    """
    names = [task["task_name"] for task in tasks]
    wanted, unwanted = _names(only, "task_filter", names), _names(skipped, "skip_tasks", names)
    chosen = [task for task in tasks if task["task_name"] not in unwanted and (not wanted or task["task_name"] in wanted)]
    if not chosen:
        raise ValueError(f"No task is left: task_filter={only!r} and skip_tasks={skipped!r} leave none of {len(tasks)}")
    return chosen


def _names(text: str | None, setting: str, known: Collection[str]) -> set[str]:
    names = {name.strip() for name in (text or "").split(",") if name.strip()}
    for name in sorted(names.difference(known)):
        near = difflib.get_close_matches(name, known, n=3)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise ValueError(f"{setting} names {name!r}, which is none of the {len(known)} tasks{hint}")
    return names
