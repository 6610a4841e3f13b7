"""Commands that change or list the tree: ls, find, mkdir, rm, mv, touch.

Source: GNU coreutils 9.1, findutils 4.9.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Sequence

from pytest_hermes_env.sandbox.bash.commands.disk import Disk
from pytest_hermes_env.sandbox.bash.commands.process import Process, Program, quoted
from pytest_hermes_env.sandbox.bash.state import NotExact

__all__ = ["TREE"]


def _operands(process: Process, letters: str) -> tuple[dict[str, str], Sequence[str]]:
    options, operands = process.options(letters)
    if not all(operands) or not (operands or "f" in options):
        raise NotExact(f"{process.name} without an operand")
    return options, operands


def ls(process: Process) -> int:
    """List files, or one directory (``-a``: with hidden names; ``-d``: itself), one name per line, sorted by bytes."""
    options, operands = process.options("a1d")
    files: list[str] = []
    names: list[str] = []
    for name in operands or ["."]:
        if process.disk.kind(name) == "directory" and "d" not in options:
            if len(operands) > 1:
                raise NotExact("ls of several directories")
            names = process.disk.names(name)
            names = [".", "..", *names] if "a" in options else [one for one in names if not one.startswith(".")]
        elif process.disk.kind(name):
            files.append(name)
        else:
            process.complain(f"cannot access {quoted(name)}: {_reason(process, name)}", code=2)
    files.sort(key=lambda name: name.encode(errors="surrogateescape"))
    process.write("".join([f"{name}\n" for name in files + names]))
    return process.code


def _reason(process: Process, name: str) -> str:
    """Return why there is nothing under a name."""
    try:
        process.disk.read(name)
    except OSError as error:
        return os.strerror(error.errno or 0)
    raise NotExact(name)


def find(process: Process) -> int:
    """Write the files below a directory, a null byte after each (``find DIRECTORY -type f -print0``).

    Only this form: the order is the file system's, so whoever asks for it sorts.
    """
    match process.arguments:
        case [start, "-type", "f", "-print0"] if start[:1] != "-" and process.disk.kind(start) == "directory":
            process.write("".join(f"{path}\0" for path in _files_below(process.disk, start)))
            return 0
    raise NotExact("this find")


def _files_below(disk: Disk, directory: str) -> Iterator[str]:
    for name in disk.names(directory):
        path = f"{directory.rstrip('/')}/{name}"
        if disk.files.is_dir(disk.path(path)):
            yield from _files_below(disk, path)
        else:
            yield path


def mkdir(process: Process) -> int:
    """Make directories; ``-p`` with their parents, and content with those that exist."""
    options, operands = _operands(process, "p")
    for name in operands:
        try:
            process.disk.make_directory(name, parents="p" in options)
        except OSError:
            raise NotExact(f"mkdir of {name}") from None
    return 0


def rm(process: Process) -> int:
    """Remove files; ``-r`` also directories, ``-f`` without a word about what is not there."""
    options, operands = _operands(process, "rRf")
    disk = process.disk
    for name in operands:
        is_directory = disk.kind(name) == "directory"
        is_known = name.rstrip("/").rpartition("/")[2] not in {"", ".", ".."} and not name.startswith("/dev/")
        if not is_known or (is_directory and not {"r", "R"} & options.keys()):
            raise NotExact(f"rm of {name}")
        if is_directory or disk.kind(name) == "file":
            disk.remove(name)
        elif "f" not in options or _reason(process, name) != "No such file or directory":
            raise NotExact(f"rm of {name}, which is not there")
    return 0


def mv(process: Process) -> int:
    """Move one file, in place of another one or of none."""
    _, operands = _operands(process, "f")
    disk = process.disk
    match [(name, disk.kind(name)) for name in operands]:
        case [(source, "file"), (target, "file" | "")] if disk.path(source) != disk.path(target) and not target.endswith("/"):
            if disk.kind(posixpath.dirname(target) or ".") == "directory":
                if disk.kind(target):
                    disk.remove(target)
                disk.move(source, target)
                return 0
    raise NotExact("this mv")


def touch(process: Process) -> int:
    """Make empty files, or mark existing ones as changed."""
    for name in _operands(process, "")[1]:
        if process.disk.kind(name) == "directory":
            continue
        try:
            process.disk.write(name, b"", append=True)
        except OSError:
            raise NotExact(f"touch of {name}") from None
    return 0


TREE: dict[str, Program] = {
    "find": find,
    "ls": ls,
    "mkdir": mkdir,
    "mv": mv,
    "rm": rm,
    "touch": touch,
}
"""Name → program."""
