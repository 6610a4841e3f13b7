"""The files of the in-memory machine, as commands see them by relative paths.

Paths that the tree cannot represent, such as those of the system, raise `NotExact`; so does what depends on which of several
open descriptors or processes of a pipeline comes first.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re

from pytest_hermes_env.sandbox.files import Files
from pytest_hermes_env.sandbox.not_exact import NotExact

__all__ = ["Disk"]

SYSTEM = re.compile(r"/(?:bin|boot|dev|etc|lib\w*|proc|run|sbin|sys|usr|var)(?:/|$)")
"""Directories with files of which the tree knows nothing."""
HOSTS = re.compile(r"(/(?:home|media|mnt|opt|srv))(?:/|$)")
"""Directories that the tree knows whole, or not at all."""
INDIRECT = re.compile(r"(?:^|/)\.\.?(?:/|$)|//|/$")
LONGEST = 255


class Disk:
    """The tree as seen from the directory ``cwd``.

    ``reads`` and ``writes`` are the paths that were used since they were last emptied; a directory whose names were listed or
    changed has a slash at its end. ``being_read`` and ``being_written`` are the paths of open redirections.
    """

    def __init__(self, files: Files, cwd: str) -> None:
        self.files = files
        self.cwd = cwd
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self.being_read: list[str] = []
        self.being_written: list[str] = []

    def path(self, name: str) -> str:
        """Return a path absolute, as the kernel resolves it. Raises: OSError; the tree cannot represent it → NotExact."""
        if not name:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        if len(name) > LONGEST:
            raise NotExact("a long path")
        whole = name if name[0] == "/" else f"{self.cwd}/{name}"
        absolute = posixpath.normpath(whole) if INDIRECT.search(whole) else whole
        if absolute.startswith("//"):
            absolute = absolute[1:]
        if absolute == "/dev/null":
            return absolute
        if SYSTEM.match(absolute) and absolute not in self.files and not self.files.is_dir(absolute):
            raise NotExact(absolute)
        if (host := HOSTS.match(absolute)) and not self.files.is_dir(host[1]):
            raise NotExact(absolute)
        if absolute != whole:
            self._check_steps(whole, absolute)
        return absolute

    def _check_steps(self, whole: str, absolute: str) -> None:
        """Raise what the kernel raises for a path with ``..`` or a slash at the end through what is no directory."""
        place = "/"
        for step in whole.split("/"):
            if step and step != "." and not self.files.is_dir(place):
                raise self._error(place)
            place = posixpath.normpath(posixpath.join(place, step))
        if whole.endswith(("/", "/.")) and not self.files.is_dir(absolute):
            if self.files.exists(absolute):
                raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            raise NotExact("a slash behind the name of what is not there")

    def _error(self, path: str) -> OSError:
        number = errno.ENOTDIR if path in self.files else errno.ENOENT
        return OSError(number, os.strerror(number))

    # Reading

    def is_directory(self, name: str) -> bool:
        """Return whether there is a directory."""
        try:
            path = self.path(name)
        except OSError:
            return False
        self.reads.add(path)
        return self.files.is_dir(path)

    def is_file(self, name: str) -> bool:
        """Return whether there is a regular file."""
        try:
            path = self.path(name)
        except OSError:
            return False
        self.reads.add(path)
        return self.files.is_file(path)

    def exists(self, name: str) -> bool:
        """Return whether there is anything."""
        return self.is_directory(name) or self.is_file(name) or name == "/dev/null"

    def read(self, name: str) -> bytes:
        """Return a file's content. Raises: OSError."""
        path = self.path(name)
        if path in self.being_written:
            raise NotExact("a file that is read while it is written")
        self.reads.add(path)
        return self.files.read(path)

    def names(self, name: str) -> list[str]:
        """Return the sorted names in a directory. Raises: OSError."""
        path = self.path(name)
        if path == "/":
            raise NotExact("the names in /")
        self.reads.add(f"{path}/")
        return self.files.list_directory(path)

    def is_executable(self, name: str) -> bool:
        """Return whether a file may be executed."""
        return self.files.is_executable(self.path(name))

    # Writing

    def changing(self, path: str, *, adds_or_removes: bool) -> None:
        """Note that a path is about to change. Raises: it is open → NotExact."""
        below = f"{path}/"
        if any(one == path or one.startswith(below) for one in (*self.being_read, *self.being_written)):
            raise NotExact("a change of an open file")
        self.writes.add(path)
        above = posixpath.dirname(path)
        self.reads.add(above)
        if adds_or_removes:
            self.writes.add(f"{above.rstrip('/')}/")

    def write(self, name: str, data: bytes, *, append: bool = False) -> None:
        """Write a file. Raises: OSError."""
        path = self.path(name)
        is_new = path not in self.files
        self.changing(path, adds_or_removes=is_new)
        self.files.write(path, data, append=append)

    def make_directory(self, name: str, *, parents: bool = False) -> None:
        """Make a directory. Raises: OSError."""
        path = self.path(name.rstrip("/") or "/")
        if not self.files.is_dir(path):
            self.changing(path, adds_or_removes=True)
        self.files.make_directory(path, parents=parents)

    def remove(self, name: str) -> None:
        """Remove a file, or a directory with all in it. Raises: OSError."""
        path = self.path(name)
        if f"{self.cwd}/".startswith(f"{path}/"):
            raise NotExact("removing the working directory")
        self.changing(path, adds_or_removes=True)
        if self.files.is_dir(path):
            self.files.remove_tree(path)
        else:
            self.files.remove(path)

    def remove_directory(self, name: str) -> None:
        """Remove an empty directory. Raises: OSError."""
        path = self.path(name)
        if f"{self.cwd}/".startswith(f"{path}/"):
            raise NotExact("removing the working directory")
        self.changing(path, adds_or_removes=True)
        self.files.remove_directory(path)

    def move(self, name: str, target: str) -> None:
        """Move a file or a directory to a name that is free, or a file's. Raises: OSError."""
        source, place = self.path(name), self.path(target)
        self.changing(source, adds_or_removes=True)
        self.changing(place, adds_or_removes=True)
        if f"{self.cwd}/".startswith(f"{source}/"):
            raise NotExact("moving the working directory")
        self.files.move(source, place)
