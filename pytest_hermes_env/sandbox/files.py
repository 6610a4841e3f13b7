"""The files of an in-memory machine: a tree of files, directories and symbolic links, with modes, times and who wrote and read them.

Place in the flow: `FakeSandbox` has one per rollout, and a test reads and writes it as ``sandbox.files``, a mapping from paths to texts.
The shell and its commands work on it, and `real_lines` writes it out for real bash and reads back what changed.
"""

from __future__ import annotations

import copy
import difflib
import errno
import operator
import os
import posixpath
import time
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from pytest_hermes_env.errors import MissingFile, NotText, UsageError, shorten

NULL = "/dev/null"
MOST_LINKS = 40
"""Links that one path may lead through, as on Linux."""


HOME = "/root"
WORKSPACE = "/workspace"
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


class Files(MutableMapping[str, str]):
    """The files of one machine with one user. Paths are absolute or begin at ``cwd``; links are followed.

    ``writer`` is the current writer, such as a tool; `written_by` returns a file's last one. ``party`` is the current party:
    ``environment`` (the code that prepares the machine), ``agent`` or ``verifier``; `made_for` returns a file's last one, and `reads`
    lists who read what.
    """

    def __init__(self, initial: Mapping[str, str | bytes] | None = None, *, cwd: str = WORKSPACE) -> None:
        self.cwd = posixpath.normpath(posixpath.join("/", cwd))
        self.writer = self.party = "environment"
        self._reads: dict[tuple[str, str], FileRead] = {}
        self._nodes = {path: Node(kind="directory", mode=mode) for path, mode in FIRST_DIRECTORIES.items()}
        self._unusual: frozenset[str] = frozenset()
        self._changes = 0
        self.make_directory(self.cwd, parents=True)
        for path, content in (initial or {}).items():
            self[path] = content

    def resolve(self, path: str, cwd: str | None = None) -> str:
        """Return ``path`` absolute and normalised, without following links; ``~`` leads home."""
        absolute = posixpath.normpath(posixpath.join(cwd or self.cwd, _from_home(path)))
        return "/" + absolute.lstrip("/")

    def follow(self, path: str, cwd: str | None = None, *, last: bool = True) -> str:
        """Return ``path`` absolute, with its links followed as far as they lead; without ``last``, the last name may be a link."""
        if not self._unusual:
            return self.resolve(path, cwd)
        left = [part for part in posixpath.join(cwd or self.cwd, _from_home(path)).split("/") if part not in {"", "."}][::-1]
        place, links = "/", 0
        while left:
            part = left.pop()
            if part == "..":
                place = posixpath.dirname(place)
                continue
            step = posixpath.join(place, part)
            node = self._nodes.get(step)
            if node is None or node.kind != "link" or links == MOST_LINKS or not (left or last):
                place = step
                continue
            links += 1
            left += [name for name in node.target.split("/") if name not in {"", "."}][::-1]
            place = "/" if node.target.startswith("/") else place
        return place

    def _kind(self, path: str) -> str:
        node = self._nodes.get(self.follow(path))
        return node.kind if node is not None else ""

    def is_file(self, path: str) -> bool:
        """Return whether there is a file."""
        self.note_read(path)
        return self._kind(path) == "file"

    def is_dir(self, path: str) -> bool:
        """Return whether there is a directory."""
        return self._kind(path) == "directory"

    def exists(self, path: str) -> bool:
        """Return whether there is a file, a directory, or ``/dev/null``."""
        return self.is_file(path) or self.is_dir(path) or self.resolve(path) == NULL

    def read(self, path: str) -> bytes:
        """Return a file's bytes; ``/dev/null`` has none. Raises: FileNotFoundError, IsADirectoryError, NotADirectoryError."""
        self.note_read(path)
        return b"" if self.resolve(path) == NULL else self._found(path).data

    def _found(self, path: str) -> Node:
        absolute = self.follow(path)
        node = self._nodes.get(absolute)
        if node is None or node.kind != "file":
            raise self._error(errno.EISDIR if self.is_dir(absolute) else self._why_absent(absolute), absolute)
        return node

    def write(self, path: str, data: bytes, *, append: bool = False) -> None:
        """Write a file in an existing directory; ``/dev/null`` takes everything. Raises: FileNotFoundError, IsADirectoryError, NotADirectoryError."""
        absolute = self.follow(path)
        if absolute == NULL:
            return
        before = self._nodes.get(absolute)
        if before is not None and before.kind != "file":
            raise self._error(errno.EISDIR if before.kind == "directory" else errno.ELOOP, absolute)
        if not self.is_dir(posixpath.dirname(absolute)):
            raise self._error(self._why_absent(absolute), absolute)
        mode = before.mode if before else FILE_MODE
        self._take(absolute, "file", data=before.data + data if append and before else data, mode=mode)

    def make_directory(self, path: str, *, parents: bool = False) -> None:
        """Make a directory; with ``parents`` those above it, too, and no error when it is there.

        Raises: FileExistsError, FileNotFoundError, NotADirectoryError.
        """
        absolute = self.follow(path)
        there = self._nodes.get(absolute)
        if there is not None:
            if there.kind == "directory" and parents:
                return
            raise self._error(errno.EEXIST, absolute)
        above = posixpath.dirname(absolute)
        if self._kind(above) == "file":
            raise self._error(errno.ENOTDIR, absolute)
        if not self.is_dir(above):
            if not parents:
                raise self._error(self._why_absent(absolute), absolute)
            try:
                self.make_directory(above, parents=True)
            except FileExistsError:
                raise self._error(errno.ENOTDIR, absolute) from None
        self._take(absolute, "directory", mode=DIRECTORY_MODE)

    def remove(self, path: str) -> None:
        """Remove a file, or a link itself. Raises: FileNotFoundError, IsADirectoryError, NotADirectoryError."""
        absolute = self.follow(path, last=False)
        node = self._nodes.get(absolute)
        if node is None or node.kind == "directory":
            raise self._error(errno.EISDIR if node else self._why_absent(absolute), absolute)
        self._drop({absolute})

    def move(self, source: str, target: str) -> None:
        """Move a file, a link or a directory; an existing target file is replaced.

        Raises: FileNotFoundError, FileExistsError for a directory that is there, NotADirectoryError; a directory into itself →
        OSError.
        """
        old, new = self.follow(source, last=False), self.follow(target, last=False)
        self.note_read(old)
        moved = self._nodes.get(old)
        replaced = self._nodes.get(new)
        if moved is None:
            raise self._error(self._why_absent(old), old)
        if replaced is not None and replaced.kind == "directory":
            raise self._error(errno.EEXIST, new)
        if not self.is_dir(posixpath.dirname(new)):
            raise self._error(self._why_absent(new), new)
        below = _below(old)
        if moved.kind == "directory" and (replaced is not None or new.startswith(below)):
            raise self._error(errno.ENOTDIR if replaced is not None else errno.EINVAL, new)
        taken = {one: node for one, node in self._nodes.items() if one == old or one.startswith(below)}
        self._drop(set(taken))
        for one, node in taken.items():
            self._set(new + one[len(old) :], node)

    def list_directory(self, path: str) -> list[str]:
        """Return the sorted names in a directory. Raises: FileNotFoundError, NotADirectoryError."""
        absolute = self.follow(path)
        if self._kind(absolute) != "directory":
            raise self._error(errno.ENOTDIR if absolute in self._nodes else self._why_absent(absolute), absolute)
        below = _below(absolute)
        entries = (one[len(below) :] for one in self._nodes if one.startswith(below))
        return sorted((entry for entry in entries if entry and "/" not in entry), key=os.fsencode)

    def walk(self, path: str) -> list[str]:
        """Return the sorted absolute paths of all files below a directory; links are not followed."""
        below = _below(self.follow(path))
        return sorted(one for one, node in self._nodes.items() if node.kind == "file" and one.startswith(below))

    def changed_at(self, path: str) -> int:
        """Return when a file was last written, as a count of writes; 0 for a directory."""
        found = self._nodes.get(self.follow(path))
        return found.changed_at if found and found.kind == "file" else 0

    def written_by(self, path: str) -> str:
        """Return who wrote a file last. Raises: as `read`."""
        return self._found(path).writer

    def made_for(self, path: str) -> str:
        """Return the party that wrote a file last. Raises: as `read`."""
        return self._found(path).party

    @property
    def reads(self) -> tuple[FileRead, ...]:
        """The files that were read or looked for: the first read of each file by each party."""
        return tuple(self._reads.values())

    def note_read(self, path: str) -> None:
        """Note that the current party reads or looks for a file."""
        absolute = self.follow(path)
        held = self._nodes.get(absolute)
        if absolute != NULL and (absolute, self.party) not in self._reads and (held is None or held.kind == "file"):
            read = FileRead(path=absolute, reader=self.party, written_by=held.party if held else "")
            self._reads[absolute, self.party] = read

    # As a tree that is written out and read back

    @property
    def nodes(self) -> Mapping[str, Node]:
        """All paths, in no order. A node is replaced when anything about it changes."""
        return MappingProxyType(self._nodes)

    @property
    def is_plain(self) -> bool:
        """Whether there are only files and directories with the usual modes, which is all that the in-memory shell knows."""
        return not self._unusual

    def take_over(self, changed: Mapping[str, Node | None]) -> None:
        """Take over changes from outside; None removes. Who wrote a path stays known if it only got another name or mode.

        Everything else belongs to the current writer and party.
        """
        gone = {path: self._nodes[path] for path, node in changed.items() if node is None and path in self._nodes}
        moved = {(node.data, node.changed_ns): node for node in gone.values() if node.kind == "file"}
        self._drop(set(gone))
        for path, node in sorted(changed.items(), key=lambda item: item[1].changed_ns if item[1] else 0):
            if node is None:
                continue
            before = self._nodes.get(path) or moved.get((node.data, node.changed_ns))
            same = operator.attrgetter("kind", "data", "target", "changed_ns")
            if before is not None and same(before) == same(node):
                self._set(path, replace(before, mode=node.mode))
            else:
                self._take(path, node.kind, data=node.data, target=node.target, mode=node.mode, changed_ns=node.changed_ns)

    def copy(self) -> Files:
        """Return an independent tree with the same content, of which nothing was read."""
        other = copy.copy(self)
        other._reads, other._nodes = {}, dict(self._nodes)  # noqa: SLF001 - a Files as well
        return other

    def _take(self, path: str, kind: Literal["file", "directory", "link"], *, changed_ns: int = 0, **fields: Any) -> None:
        """Set a path to what the current writer makes of it now, or at ``changed_ns``."""
        self._changes += 1
        changed_ns = changed_ns or time.time_ns()
        node = Node(kind=kind, changed_ns=changed_ns, writer=self.writer, party=self.party, changed_at=self._changes, **fields)
        self._set(path, node)

    def _set(self, path: str, node: Node) -> None:
        self._nodes[path] = node
        usual = {"file": (FILE_MODE, EXECUTABLE_MODE), "directory": (FIRST_DIRECTORIES.get(path, DIRECTORY_MODE),), "link": ()}
        self._unusual = self._unusual - {path} if node.mode in usual[node.kind] else self._unusual | {path}

    def _drop(self, paths: set[str]) -> None:
        for path in paths:
            del self._nodes[path]
        self._unusual -= paths

    def _why_absent(self, absolute: str) -> int:
        """Return ENOTDIR if a parent path is a file, else ENOENT."""
        above = posixpath.dirname(absolute)
        while above != "/":
            if self._kind(above) == "file":
                return errno.ENOTDIR
            above = posixpath.dirname(above)
        return errno.ENOENT

    @staticmethod
    def _error(number: int, path: str) -> OSError:
        return OSError(number, os.strerror(number), path)

    # As a mapping

    def __getitem__(self, path: str) -> str:
        absolute = self.follow(path)
        data = self._file_at(path, absolute).data
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise NotText(
                f"{absolute} is not text: {error.reason} at byte {error.start}.\n"
                f"  seen      {shorten(repr(data))}\n"
                f"  fix       files.read({absolute!r}) returns its bytes"
            ) from None

    def __setitem__(self, path: str, content: str | bytes) -> None:
        if not isinstance(content, (str, bytes, bytearray)):
            raise UsageError(
                f"the content of a file must be text or bytes.\n  seen      {type(content).__name__} {shorten(repr(content))}\n"
                f"  fix       files[{path!r}] = {str(content)!r}"
            )
        absolute = self.follow(path)
        self.make_directory(posixpath.dirname(absolute), parents=True)
        self.write(absolute, content.encode(errors="surrogateescape") if isinstance(content, str) else bytes(content))

    def __delitem__(self, path: str) -> None:
        self._file_at(path, self.follow(path))
        self.remove(path)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(path for path, node in self._nodes.items() if node.kind == "file"))

    def __len__(self) -> int:
        return sum(node.kind == "file" for node in self._nodes.values())

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self._kind(path) == "file"

    def __repr__(self) -> str:
        return f"Files({{{', '.join(f'{path!r}: {self._nodes[path].data!r}' for path in self)}}})"

    def _file_at(self, path: str, absolute: str) -> Node:
        """Return a file. Raises: there is none → MissingFile, with the nearest ones."""
        node = self._nodes.get(absolute)
        if node is not None and node.kind == "file":
            return node
        nearest = difflib.get_close_matches(absolute, list(self), n=3, cutoff=0.4)
        same_name = [other for other in self if posixpath.basename(other) == posixpath.basename(absolute)]
        shown = list(dict.fromkeys([*same_name, *nearest]))[:3]
        if node is not None:
            seen = f"{absolute} is a {'directory' if node.kind == 'directory' else 'symbolic link to ' + node.target}"
        else:
            seen = f"nearest: {', '.join(shown)}" if shown else f"{len(self)} files: {shorten(', '.join(self) or 'none')}"
        raise MissingFile(f"there is no file {path!r} on this machine.\n  expected  {absolute}\n  seen      {seen}")


def _below(directory: str) -> str:
    return directory if directory == "/" else f"{directory}/"


def _from_home(path: str) -> str:
    return HOME + path[1:] if path == "~" or path.startswith("~/") else path
