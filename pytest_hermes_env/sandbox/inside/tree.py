"""The files of a cell's root directory: writes what changed outside, and tells what a command line changed and read.

Every path here was made by a model, so nothing is opened through a link, and only what is a regular file.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any

from hermes_env_shared import trees

OPEN = stat.S_IRUSR | stat.S_IXUSR
"""What the owner of a directory needs to see what is in it."""


class Tree:
    """The tree below ``root``, without other file systems that are mounted in it.

    ``most_bytes``: the most bytes of content that `changes` returns. ``is_cut``: whether there was more, which the last call left out.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._machine: set[str] = set()
        self.most_bytes = 0
        self.is_cut = False
        self._known: dict[str, tuple[int, ...]] = {}
        self._read: dict[str, int] = {}

    def begin(self) -> None:
        """Take all that is there as known, and as nobody's: who reads it reads nothing of the tree."""
        self.changes()
        self._machine = set(self._known)

    def apply(self, changed: Mapping[str, Mapping[str, Any] | None], blobs: list[bytes]) -> None:
        """Write the entries, and remember them as known. Raises: a path that this machine cannot have → OSError."""
        for path in sorted(changed, reverse=True):
            if changed[path] is None:
                _remove(path)
        directories = []
        for path in sorted(changed):
            entry = changed[path]
            if entry is not None:
                self._write(path, entry, blobs)
                if entry["kind"] == "directory":
                    directories.append(path)
        for path in reversed(directories):  # their times, after what is in them
            _set_time(path, changed[path] or {})
        self._machine -= changed.keys()
        for path in sorted(changed):
            self._remember(path)

    def _remember(self, path: str) -> None:
        """Take the present state of a path, and of new directories on the way to it, as known."""
        while True:
            try:
                status = os.lstat(path)
            except FileNotFoundError:
                for known in [known for known in self._known if known == path or known.startswith(f"{path}/")]:
                    del self._known[known]
                return
            self._known[path], self._read[path] = _facts(status), status.st_atime_ns
            path = os.path.dirname(path)
            if path in self._known or path == self._root:
                return

    def _write(self, path: str, entry: Mapping[str, Any], blobs: list[bytes]) -> None:
        parent = os.path.dirname(path)
        trees.make_directories(parent)
        if os.path.realpath(parent) != parent:
            raise OSError(f"{path}: a directory of this path is a link")
        with contextlib.suppress(FileNotFoundError):
            old = os.lstat(path).st_mode
            if stat.S_ISDIR(old) != (entry["kind"] == "directory") or not (stat.S_ISDIR(old) or stat.S_ISREG(old)):
                _remove(path)
        if entry["kind"] == "link":
            _remove(path)
            os.symlink(entry["target"], path)
        elif entry["kind"] == "directory":
            trees.make_directories(path)
            os.chmod(path, entry["mode"])
        else:
            _write_file(path, blobs[entry["data"]], entry["mode"])
        if entry["kind"] != "directory":
            _set_time(path, entry)

    def changes(self) -> tuple[dict[str, dict[str, Any] | None], list[bytes], list[str]]:
        """Return the new state of each path that changed since the last call, the contents, and the files that were read."""
        found: dict[str, tuple[int, ...]] = {}
        changed: dict[str, dict[str, Any] | None] = {}
        contents: list[bytes] = []
        read: list[str] = []
        left = self.most_bytes
        self.is_cut = False
        for path, seen in _walk(self._root):
            known, facts, status = self._known.get(path), _facts(seen), seen
            if stat.S_ISREG(seen.st_mode):
                if known == facts and seen.st_atime_ns == self._read[path]:  # as most files, which makes this the inner loop
                    found[path] = facts
                    continue
                if known is not None and known[-1] == seen.st_ino and seen.st_atime_ns != self._read.get(path):
                    read.extend({path} - self._machine)
                if seen.st_atime_ns > seen.st_mtime_ns:
                    status = _ready_to_be_read(path, seen)
                    known = _facts(status) if known == facts else known
                self._read[path] = status.st_atime_ns
            found[path] = _facts(status)
            if known != found[path]:
                left -= status.st_size
                self.is_cut = self.is_cut or left < 0
                entry = _entry(path, status, contents) if left >= 0 else None
                if entry is not None:
                    changed[path] = entry
                    self._machine.discard(path)
        for path in self._known.keys() - found.keys():
            changed[path] = None
            self._read.pop(path, None)
        self._known = found
        return changed, contents, read


def _facts(status: os.stat_result) -> tuple[int, ...]:
    if stat.S_ISDIR(status.st_mode):
        return (status.st_mode,)
    return (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _ready_to_be_read(path: str, status: os.stat_result) -> os.stat_result:
    """Set the time of the last read back, so that the kernel notes the next one, and return the new status."""
    with contextlib.suppress(OSError):
        os.utime(path, ns=(status.st_mtime_ns, status.st_mtime_ns), follow_symlinks=False)
        return os.lstat(path)
    return status


def _walk(root: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield what is below ``root`` with its status, but no other file system. Closed directories are open meanwhile."""
    device, pending = os.lstat(root).st_dev, [root]
    closed: dict[str, int] = {}
    while pending:
        for path in _listed(pending.pop(), closed):
            try:
                status = os.lstat(path)
            except OSError:  # something still runs
                continue
            if status.st_dev == device:
                yield path, status
                if stat.S_ISDIR(status.st_mode):
                    pending.append(path)
    for path, mode in reversed(closed.items()):  # what is inside first
        with contextlib.suppress(OSError):
            os.chmod(path, mode)


def _listed(directory: str, closed: dict[str, int]) -> list[str]:
    """Return the paths in a directory, none if it is gone or its path is too long. If it is closed, it is opened and noted."""
    with contextlib.suppress(OSError):
        status = os.lstat(directory)
        if status.st_mode & OPEN != OPEN and stat.S_ISDIR(status.st_mode):
            closed[directory] = stat.S_IMODE(status.st_mode)
            os.chmod(directory, 0o700)
        return [entry.path for entry in os.scandir(directory)]
    return []


def _entry(path: str, status: os.stat_result, contents: list[bytes]) -> dict[str, Any] | None:
    """Return the state of a path, None for what is neither a file nor a directory nor a link."""
    facts: dict[str, Any] = {"mode": stat.S_IMODE(status.st_mode), "changed_ns": status.st_mtime_ns}
    if stat.S_ISDIR(status.st_mode):
        return {"kind": "directory", **facts}
    if stat.S_ISLNK(status.st_mode):
        return {"kind": "link", "target": os.readlink(path), **facts}
    if not stat.S_ISREG(status.st_mode):
        return None
    try:
        contents.append(_content(path, status.st_size))
    except OSError:
        return None
    return {"kind": "file", "data": len(contents) - 1, **facts}


def _content(path: str, size: int) -> bytes:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOATIME
    try:
        descriptor = os.open(path, flags)
    except PermissionError:
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        os.chmod(path, 0o600)
        descriptor = os.open(path, flags)
        os.chmod(path, mode)
    with open(descriptor, "rb") as file:
        return file.read(size)


def _write_file(path: str, content: bytes, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
    with contextlib.suppress(FileNotFoundError):
        os.chmod(path, 0o600)
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), mode)


def _set_time(path: str, entry: Mapping[str, Any]) -> None:
    if entry.get("changed_ns"):
        os.utime(path, ns=(entry["changed_ns"], entry["changed_ns"]), follow_symlinks=False)


def _remove(path: str) -> None:
    """Raises: something resists → OSError."""
    if resisting := trees.remove(path):
        raise OSError(f"{path}: {resisting[0]}")
