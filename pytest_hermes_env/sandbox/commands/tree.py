"""Commands that change or list the tree: ls, mkdir, rmdir, rm, cp, mv, touch, chmod.

Source: GNU coreutils 9.1.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from pytest_hermes_env.sandbox.commands.process import Options, Process, Program, quoted
from pytest_hermes_env.sandbox.not_exact import NotExact

__all__ = ["TREE"]

MISSING = "No such file or directory"


def _operands(process: Process, options: Options) -> Sequence[str]:
    if not options.operands or not all(options.operands):
        raise NotExact(f"{process.name} without an operand")
    return options.operands


def ls(process: Process) -> int:
    """List directories, one name per line, sorted by bytes."""
    options = process.options("aA1d", {"all": "a", "almost-all": "A"})
    plain: list[str] = []
    directories: list[str] = []
    for name in options.operands or ["."]:
        if process.disk.is_directory(name) and "d" not in options:
            directories.append(name)
        elif process.disk.exists(name):
            plain.append(name)
        else:
            reason = "Not a directory" if _is_through_file(process, name) else MISSING
            process.complain(f"cannot access {quoted(name)}: {reason}", code=2)
    _write_names(process, sorted(plain, key=_bytes))
    separator = "\n" if plain else ""
    for directory in sorted(directories, key=_bytes):
        if len(options.operands) > 1:
            if not re.fullmatch(r"[ -~]+", directory):
                raise NotExact("a heading with special letters")
            process.write(f"{separator}{directory}:\n")
        separator = "\n"
        names = process.disk.names(directory)
        if not {"a", "A"} & options.given.keys():
            names = [name for name in names if not name.startswith(".")]
        _write_names(process, [".", "..", *names] if "a" in options else names)
    return process.code


def _bytes(name: str) -> bytes:
    return name.encode(errors="surrogateescape")


def _is_through_file(process: Process, name: str) -> bool:
    try:
        process.disk.read(name)
    except NotADirectoryError:
        return True
    except OSError:
        return False
    return False


def _write_names(process: Process, names: Sequence[str]) -> None:
    process.write("".join([f"{name}\n" for name in names]))


def mkdir(process: Process) -> int:
    """Make directories; ``-p`` with their parents, and content with those that exist."""
    options = process.options("p", {"parents": "p"})
    for name in _operands(process, options):
        if "p" in options and not process.disk.is_directory(name.rstrip("/")) and _is_through_file(process, name):
            raise NotExact("mkdir -p through a file")
        with process.complaining(f"cannot create directory {process.locale_quoted(name)}"):
            process.disk.make_directory(name, parents="p" in options)
    return process.code


def rmdir(process: Process) -> int:
    """Remove empty directories."""
    for name in _operands(process, process.options("")):
        with process.complaining(f"failed to remove {quoted(name)}"):
            process.disk.remove_directory(name)
    return process.code


def rm(process: Process) -> int:
    """Remove files; ``-r`` also directories, ``-f`` without a word about what is not there."""
    options = process.options("rRf", {"recursive": "r", "force": "f"})
    disk = process.disk
    if any(not name for name in options.operands):
        raise NotExact("rm of an empty name")
    for name in options.operands if "f" in options else _operands(process, options):
        if posixpath.basename(name.rstrip("/")) in {".", "..", ""}:
            raise NotExact(f"rm of {name}")
        if disk.is_directory(name):
            if not {"r", "R"} & options.given.keys():
                process.complain(f"cannot remove {quoted(name)}: Is a directory")
                continue
        elif not disk.is_file(name):
            if name.startswith("/dev/"):
                raise NotExact(f"rm of {name}")
            if _is_through_file(process, name):
                raise NotExact("rm through a file")
            if "f" not in options:
                process.complain(f"cannot remove {quoted(name)}: {MISSING}")
            continue
        disk.remove(name)
    return process.code


def cp(process: Process) -> int:
    """Copy files; ``-r`` also directories."""
    options = process.options("rRaf", {"recursive": "r", "archive": "a", "force": "f"})
    for source, target in _each_to_target(process, options):
        if not process.disk.is_directory(source):
            _copy(process, source, target)
        elif not {"r", "R", "a"} & options.given.keys():
            process.complain(f"-r not specified; omitting directory {quoted(source)}")
        else:
            _copy(process, source, target)
    return process.code


def _copy(process: Process, source: str, target: str) -> None:
    disk = process.disk
    if disk.is_directory(source):
        if not disk.is_directory(target):
            disk.make_directory(target)
        for entry in disk.names(source):
            inner, place = f"{source}/{entry}", f"{target}/{entry}"
            if disk.exists(place) and disk.is_directory(place) != disk.is_directory(inner):
                raise NotExact("cp of a directory onto a file")
            _copy(process, inner, place)
        return
    is_new = not disk.is_file(target)
    disk.write(target, disk.read(source))
    if is_new and disk.is_executable(source):
        disk.files.set_executable(disk.path(target), True)


def mv(process: Process) -> int:
    """Move files and directories."""
    options = process.options("f", {"force": "f"})
    for source, target in _each_to_target(process, options):
        if process.disk.is_directory(target):
            raise NotExact("mv onto a directory")
        if process.disk.is_file(target):
            process.disk.remove(target)
        process.disk.move(source, target)
    return process.code


def _each_to_target(process: Process, options: Options) -> Iterator[tuple[str, str]]:
    """Yield every source that exists with its target; a directory as target takes the sources in.

    Raises: a source would end in or on itself, or a directory where a file is → NotExact.
    """
    *names, target_name = _operands(process, options)
    disk = process.disk
    into = disk.is_directory(target_name)
    if not names or (not into and (len(names) > 1 or target_name.endswith("/"))):
        raise NotExact(f"{process.name} to {target_name}")
    if not into and not disk.is_directory(posixpath.dirname(target_name) or "."):
        raise NotExact(f"{process.name} into a directory that is not there")
    places = set()
    for name in names:
        base = posixpath.basename(name.rstrip("/"))
        target = f"{target_name.rstrip('/')}/{base}" if into else target_name
        if base in {"", ".", ".."} or disk.path(target) in places or name.startswith("/dev/"):
            raise NotExact(f"{process.name} of {name}")
        if not disk.exists(name):
            if _is_through_file(process, name):
                raise NotExact(f"{process.name} through a file")
            process.complain(f"cannot stat {quoted(name)}: {MISSING}")
            continue
        source, place = disk.path(name), disk.path(target)
        places.add(place)
        if f"{place}/".startswith(f"{source}/") or (
            disk.exists(target) and disk.is_directory(target) != disk.is_directory(name)
        ):
            raise NotExact(f"{process.name} of {name} to {target}")
        if disk.is_directory(target) and disk.files.list_directory(place) and process.name == "mv":
            raise NotExact(f"mv of {name} to {target}")
        yield name, target


def touch(process: Process) -> int:
    """Make empty files, or mark existing ones as changed."""
    for name in _operands(process, process.options("")):
        if not process.disk.is_directory(name):
            with process.complaining(f"cannot touch {quoted(name)}"):
                process.disk.write(name, b"", append=True)
    return process.code


def chmod(process: Process) -> int:
    """Make files executable; other modes do not exist here."""
    mode, *names = process.arguments or ("",)
    if mode not in {"+x", "a+x", "755"} or not names or not all(process.disk.is_file(name) for name in names):
        raise NotExact(f"chmod {mode}")
    for name in names:
        path = process.disk.path(name)
        process.disk.changing(path, adds_or_removes=False)
        process.disk.files.set_executable(path, True)
    return 0


TREE: dict[str, Program] = {
    "chmod": chmod,
    "cp": cp,
    "ls": ls,
    "mkdir": mkdir,
    "mv": mv,
    "rm": rm,
    "rmdir": rmdir,
    "touch": touch,
}
"""Name → program."""
