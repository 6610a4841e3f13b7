"""The files of the in-memory machine, as commands see them by relative paths.

Paths that the tree cannot represent, such as those of the system, raise `NotExact`; so does a path that is open.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
from typing import Literal

from pytest_hermes_env.sandbox.bash.state import NotExact
from pytest_hermes_env.sandbox.files import Files

__all__ = ["Disk"]

SYSTEM = re.compile(r"/(?:bin|boot|dev|etc|lib\w*|proc|run|sbin|sys|usr|var)(?:/|$)")
"""Directories with files of which the tree knows nothing."""
HOSTS = re.compile(r"(/(?:home|media|mnt|opt|srv))(?:/|$)")
"""Directories that the tree knows whole, or not at all."""
INDIRECT = re.compile(r"(?:^|/)\.\.?(?:/|$)|//|/$")
LONGEST = 255


class Disk:
    """The tree as seen from the directory ``cwd``.

    ``uses`` and ``writes`` count how often a path was looked up and changed. ``opened`` are the paths of open redirections.
    """

    def __init__(self, files: Files, cwd: str) -> None:
        self.files = files
        self.cwd = cwd
        self.uses = self.writes = 0
        self.opened: list[str] = []

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
        if absolute in self.opened:
            raise NotExact("a file that is open")
        self.uses += 1
        return absolute

    def _check_steps(self, whole: str, absolute: str) -> None:
        """Raise NotExact for a path with ``..`` or a slash at the end through what is no directory."""
        steps = whole.split("/")
        above = ["/".join(steps[:number]) or "/" for number, step in enumerate(steps) if number and step != "."]
        if not all(self.files.is_dir(place) for place in above) or (
            whole.endswith(("/", "/.")) and not self.files.is_dir(absolute)
        ):
            raise NotExact(f"the path {whole}")

    # Reading

    def kind(self, name: str) -> Literal["directory", "file", "device", ""]:
        """Return what there is; ``""`` for nothing."""
        try:
            path = self.path(name)
        except OSError:
            return ""
        if path == "/dev/null":
            return "device"
        return "directory" if self.files.is_dir(path) else "file" if self.files.is_file(path) else ""

    def read(self, name: str) -> bytes:
        """Return a file's content. Raises: OSError."""
        return self.files.read(self.path(name))

    def names(self, name: str) -> list[str]:
        """Return the sorted names in a directory. Raises: OSError."""
        path = self.path(name)
        if path == "/":
            raise NotExact("the names in /")
        return self.files.list_directory(path)

    # Writing

    def write(self, name: str, data: bytes, *, append: bool = False) -> None:
        """Write a file. Raises: OSError."""
        self.writes += 1
        self.files.write(self.path(name), data, append=append)

    def make_directory(self, name: str, *, parents: bool = False) -> None:
        """Make a directory. Raises: OSError."""
        self.writes += 1
        self.files.make_directory(self.path(name.rstrip("/") or "/"), parents=parents)

    def remove(self, name: str) -> None:
        """Remove a file, or a directory with all in it. Raises: OSError."""
        path = self.path(name)
        if any(f"{one}/".startswith(f"{path}/") for one in (self.cwd, *self.opened)):
            raise NotExact("removing a directory that is in use")
        self.writes += 1
        if self.files.is_dir(path):
            self.files.remove_tree(path)
        else:
            self.files.remove(path)

    def move(self, name: str, target: str) -> None:
        """Move a file. Raises: OSError."""
        self.writes += 1
        self.files.move(self.path(name), self.path(target))
