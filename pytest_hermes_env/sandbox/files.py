"""The files of an in-memory machine: absolute POSIX paths, bytes, directories; no links, one user.

Place in the flow: `FakeSandbox` has one tree per rollout; its shell, its commands and its file tools work on it.
"""

from __future__ import annotations

import difflib
import errno
import os
import posixpath
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace

from pytest_hermes_env.errors import MissingFile, NotText, UsageError, shorten

__all__ = ["FileRead", "Files"]

HOME = "/root"
NULL = "/dev/null"
FIRST_DIRECTORIES = ("/", HOME, "/tmp")  # noqa: S108 - of the in-memory machine


@dataclass(frozen=True, kw_only=True)
class _File:
    """One file's content, who wrote it last, and when, as a count of changes."""

    data: bytes
    writer: str
    party: str
    changed_at: int
    is_executable: bool = False


@dataclass(frozen=True, kw_only=True)
class FileRead:
    """A file that was read or looked for. ``reader`` and ``written_by`` are parties; ``written_by`` is empty for a missing file."""

    path: str
    reader: str
    written_by: str = ""


class Files(MutableMapping[str, str]):
    """A tree of files, and a mapping from paths to texts; relative paths begin at ``cwd``.

    ``writer`` is the current writer, such as a tool; `written_by` returns a file's last one. ``party`` is the current party:
    ``environment`` (the code that prepares the machine), ``agent`` or ``verifier``; `made_for` returns a file's last one, and `reads`
    lists who read what.
    """

    def __init__(self, initial: Mapping[str, str | bytes] | None = None, *, cwd: str = "/workspace") -> None:
        self.cwd = posixpath.normpath(posixpath.join("/", cwd))
        self.writer = self.party = "environment"
        self._reads: dict[tuple[str, str], FileRead] = {}
        self._files: dict[str, _File] = {}
        self._directories: set[str] = set(FIRST_DIRECTORIES)
        self._changes = 0
        self.make_directory(self.cwd, parents=True)
        for path, content in (initial or {}).items():
            self[path] = content

    # As a mapping of texts

    def __getitem__(self, path: str) -> str:
        absolute = self.resolve(path)
        if absolute not in self._files:
            raise MissingFile(self._missing(path, absolute))
        data = self._files[absolute].data
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
        absolute = self.resolve(path)
        self.make_directory(posixpath.dirname(absolute), parents=True)
        self.write(absolute, content.encode(errors="surrogateescape") if isinstance(content, str) else bytes(content))

    def __delitem__(self, path: str) -> None:
        absolute = self.resolve(path)
        if absolute not in self._files:
            raise MissingFile(self._missing(path, absolute))
        self.remove(absolute)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._files))

    def __len__(self) -> int:
        return len(self._files)

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self.resolve(path) in self._files

    def __repr__(self) -> str:
        return f"Files({{{', '.join(f'{path!r}: {self._files[path].data!r}' for path in self)}}})"

    def _missing(self, path: str, absolute: str) -> str:
        nearest = difflib.get_close_matches(absolute, list(self), n=3, cutoff=0.4)
        same_name = [other for other in self if posixpath.basename(other) == posixpath.basename(absolute)]
        shown = list(dict.fromkeys([*same_name, *nearest]))[:3]
        if self.is_dir(absolute):
            seen = f"{absolute} is a directory"
        else:
            seen = f"nearest: {', '.join(shown)}" if shown else f"{len(self)} files: {shorten(', '.join(self) or 'none')}"
        return f"there is no file {path!r} on this machine.\n  expected  {absolute}\n  seen      {seen}"

    # As a file system: paths are absolute or begin at cwd

    def resolve(self, path: str, cwd: str | None = None) -> str:
        """Return ``path`` absolute and normalised; ``~`` leads home."""
        if path == "~" or path.startswith("~/"):
            path = HOME + path[1:]
        absolute = posixpath.normpath(posixpath.join(cwd or self.cwd, path))
        return "/" + absolute.lstrip("/")

    def is_file(self, path: str) -> bool:
        """Return whether there is a file."""
        self._note_read(path)
        return self.resolve(path) in self._files

    def is_dir(self, path: str) -> bool:
        """Return whether there is a directory."""
        return self.resolve(path) in self._directories

    def exists(self, path: str) -> bool:
        """Return whether there is a file, a directory, or ``/dev/null``."""
        return self.is_file(path) or self.is_dir(path) or self.resolve(path) == NULL

    def read(self, path: str) -> bytes:
        """Return a file's bytes; ``/dev/null`` has none. Raises: FileNotFoundError, IsADirectoryError, NotADirectoryError."""
        self._note_read(path)
        return b"" if self.resolve(path) == NULL else self._found(path).data

    def _found(self, path: str) -> _File:
        absolute = self.resolve(path)
        if absolute not in self._files:
            raise self._error(errno.EISDIR if absolute in self._directories else self._why_absent(absolute), absolute)
        return self._files[absolute]

    def write(self, path: str, data: bytes, *, append: bool = False) -> None:
        """Write a file in an existing directory; ``/dev/null`` takes everything. Raises: FileNotFoundError, IsADirectoryError, NotADirectoryError."""
        absolute = self.resolve(path)
        if absolute == NULL:
            return
        if absolute in self._directories:
            raise self._error(errno.EISDIR, absolute)
        if posixpath.dirname(absolute) not in self._directories:
            raise self._error(self._why_absent(absolute), absolute)
        before = self._files.get(absolute)
        self._changes += 1
        self._files[absolute] = _File(
            data=before.data + data if append and before else data,
            writer=self.writer,
            party=self.party,
            changed_at=self._changes,
            is_executable=before.is_executable if before else False,
        )

    def make_directory(self, path: str, *, parents: bool = False) -> None:
        """Make a directory; with ``parents`` those above it, too, and no error when it is there.

        Raises: FileExistsError, FileNotFoundError, NotADirectoryError.
        """
        absolute = self.resolve(path)
        if absolute in self._directories:
            if not parents:
                raise self._error(errno.EEXIST, absolute)
            return
        if absolute in self._files:
            raise self._error(errno.EEXIST, absolute)
        above = posixpath.dirname(absolute)
        if above in self._files:
            raise self._error(errno.ENOTDIR, absolute)
        if above not in self._directories:
            if not parents:
                raise self._error(self._why_absent(absolute), absolute)
            try:
                self.make_directory(above, parents=True)
            except FileExistsError:
                raise self._error(errno.ENOTDIR, absolute) from None
        self._directories.add(absolute)

    def remove(self, path: str) -> None:
        """Remove a file. Raises: FileNotFoundError, IsADirectoryError, NotADirectoryError."""
        self._found(path)
        del self._files[self.resolve(path)]

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory. Raises: OSError when it is not empty, no directory, or not there."""
        absolute = self.resolve(path)
        if absolute in self._files:
            raise self._error(errno.ENOTDIR, absolute)
        if self.list_directory(absolute):
            raise self._error(errno.ENOTEMPTY, absolute)
        self._directories.discard(absolute)

    def remove_tree(self, path: str) -> None:
        """Remove a directory with all below it. Raises: FileNotFoundError, NotADirectoryError."""
        absolute = self.resolve(path)
        self.list_directory(absolute)
        for file in self.walk(absolute):
            del self._files[file]
        below = _below(absolute)
        self._directories -= {one for one in self._directories if one == absolute or one.startswith(below)} - {"/"}

    def move(self, source: str, target: str) -> None:
        """Move a file or a directory; an existing target file is replaced.

        Raises: FileNotFoundError, FileExistsError for a directory that is there, NotADirectoryError; a directory into itself →
        OSError.
        """
        old, new = self.resolve(source), self.resolve(target)
        if not self.exists(old):
            raise self._error(self._why_absent(old), old)
        if new in self._directories:
            raise self._error(errno.EEXIST, new)
        if posixpath.dirname(new) not in self._directories:
            raise self._error(self._why_absent(new), new)
        if old in self._files:
            self._files[new] = self._files.pop(old)
            return
        below = _below(old)
        if new in self._files or new.startswith(below):
            raise self._error(errno.ENOTDIR if new in self._files else errno.EINVAL, new)
        for file in self.walk(old):
            self._files[new + file[len(old) :]] = self._files.pop(file)
        moved = {one for one in self._directories if one == old or one.startswith(below)}
        self._directories -= moved
        self._directories |= {new + one[len(old) :] for one in moved}

    def list_directory(self, path: str) -> list[str]:
        """Return the sorted names in a directory. Raises: FileNotFoundError, NotADirectoryError."""
        absolute = self.resolve(path)
        if absolute not in self._directories:
            raise self._error(errno.ENOTDIR if absolute in self._files else self._why_absent(absolute), absolute)
        below = _below(absolute)
        entries = (one[len(below) :] for one in (*self._files, *self._directories) if one.startswith(below) and one != below)
        return sorted({entry for entry in entries if entry and "/" not in entry}, key=os.fsencode)

    def walk(self, path: str) -> list[str]:
        """Return the sorted absolute paths of all files below a directory."""
        below = _below(self.resolve(path))
        return sorted(file for file in self._files if file.startswith(below))

    def is_executable(self, path: str) -> bool:
        """Return whether a file may be executed. Raises: as `read`."""
        return self._found(path).is_executable

    def set_executable(self, path: str, is_executable: bool) -> None:
        """Set whether a file may be executed. Raises: as `read`."""
        self._files[self.resolve(path)] = replace(self._found(path), is_executable=is_executable)

    def changed_at(self, path: str) -> int:
        """Return when a file was last written, as a count of writes; 0 for a directory."""
        found = self._files.get(self.resolve(path))
        return found.changed_at if found else 0

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

    def _note_read(self, path: str) -> None:
        absolute = self.resolve(path)
        if absolute != NULL and absolute not in self._directories and (absolute, self.party) not in self._reads:
            held = self._files.get(absolute)
            read = FileRead(path=absolute, reader=self.party, written_by=held.party if held else "")
            self._reads[absolute, self.party] = read

    def copy(self) -> Files:
        """Return an independent tree with the same content."""
        other = Files.__new__(Files)
        other.cwd = self.cwd
        other.party = self.party
        other._reads = {}  # noqa: SLF001 - a Files as well
        other.restore(self)
        return other

    def restore(self, earlier: Files) -> None:
        """Take the content of ``earlier``, such as a copy made before a command, to undo the command."""
        self.writer, self._changes = earlier.writer, earlier._changes
        self._files, self._directories = dict(earlier._files), set(earlier._directories)

    def _why_absent(self, absolute: str) -> int:
        """Return ENOTDIR if a parent path is a file, else ENOENT."""
        above = posixpath.dirname(absolute)
        while above != "/":
            if above in self._files:
                return errno.ENOTDIR
            above = posixpath.dirname(above)
        return errno.ENOENT

    @staticmethod
    def _error(number: int, path: str) -> OSError:
        return OSError(number, os.strerror(number), path)


def _below(directory: str) -> str:
    return directory if directory == "/" else f"{directory}/"
