"""One path of an in-memory machine: what is there, and who wrote and read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["DIRECTORY_MODE", "FILE_MODE", "FIRST_DIRECTORIES", "HOME", "FileRead", "Node", "content_of", "is_usual"]

HOME = "/root"
DIRECTORY_MODE, FILE_MODE, EXECUTABLE_MODE = 0o755, 0o644, 0o755
FIRST_DIRECTORIES = {"/": DIRECTORY_MODE, HOME: DIRECTORY_MODE, "/tmp": 0o1777}  # noqa: S108 - of the in-memory machine


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """One path: a file's content or a link's target, its mode and time of change, who wrote it last, and the change's number."""

    kind: Literal["file", "directory", "link"]
    data: bytes = b""
    target: str = ""
    mode: int = FILE_MODE
    changed_ns: int = 0
    writer: str = ""
    party: str = ""
    changed_at: int = 0


@dataclass(frozen=True, kw_only=True)
class FileRead:
    """A file that was read or looked for. ``reader`` and ``written_by`` are parties; ``written_by`` is empty for a missing file."""

    path: str
    reader: str
    written_by: str = ""


def content_of(node: Node) -> tuple[object, ...]:
    """Return what a program can read of a path, and when that changed."""
    return node.kind, node.data, node.target, node.changed_ns


def is_usual(path: str, node: Node) -> bool:
    """Return whether the in-memory shell knows such a path: no link, and no rare mode."""
    if node.kind == "directory":
        return node.mode == FIRST_DIRECTORIES.get(path, DIRECTORY_MODE)
    return node.kind == "file" and node.mode in {FILE_MODE, EXECUTABLE_MODE}
