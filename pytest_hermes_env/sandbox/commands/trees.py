"""Commands that change or list the tree: ls, mkdir, rmdir, rm, cp, mv, touch, chmod, mktemp, stat, and names of paths."""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Iterator

from pytest_hermes_env.sandbox.commands.options import Options, read_options
from pytest_hermes_env.sandbox.commands.process import Process, Program, UnsupportedOption

__all__ = ["TREES"]

OWNER, MODIFIED = "root root", "Jan  1 00:00"
"""What ``ls -l`` shows: this machine has one user, and its clock stands still."""


def _operands(process: Process, options: Options) -> tuple[str, ...]:
    if not options.operands:
        raise UnsupportedOption(f"{process.name} without an operand")
    return options.operands


def ls(process: Process) -> int:
    """List directories, one name per line, sorted by bytes."""
    long = {"all": "a", "almost-all": "A", "recursive": "R", "directory": "d"}
    options = read_options(process.words, "laA1Rd", long)
    plain: list[tuple[str, str]] = []
    directories: list[tuple[str, str]] = []
    for name in options.operands or ["."]:
        path = process.path(name)
        if process.files.exists(path):
            (directories if process.files.is_dir(path) and "d" not in options else plain).append((name, path))
        else:
            process.complain(f"cannot access '{name}': No such file or directory", code=2)
    _rows(process, sorted(plain), options)
    separator = "\n" if plain else ""
    for directory in sorted(directories):
        for name, path in _below(process, *directory, options) if "R" in options else [directory]:
            if len(options.operands) > 1 or "R" in options:
                process.write(f"{separator}{name}:\n")
            separator = "\n"
            dots = [(".", path), ("..", posixpath.dirname(path))] if "a" in options else []
            _rows(process, [*dots, *_entries(process, path, options)], options, has_total="l" in options)
    return process.code


def _entries(process: Process, path: str, options: Options) -> list[tuple[str, str]]:
    """Return the names in a directory that are shown, with their paths."""
    names = process.files.list_directory(path)
    shows_hidden = "a" in options or "A" in options
    return [(name, posixpath.join(path, name)) for name in names if shows_hidden or not name.startswith(".")]


def _below(process: Process, name: str, path: str, options: Options) -> Iterator[tuple[str, str]]:
    yield name, path
    for entry, inner in _entries(process, path, options):
        if process.files.is_dir(inner):
            yield from _below(process, posixpath.join(name, entry), inner, options)


def _rows(process: Process, entries: list[tuple[str, str]], options: Options, *, has_total: bool = False) -> None:
    if "l" not in options:
        process.write("".join(f"{name}\n" for name, _ in entries))
        return
    files = process.files
    sizes = [4096 if files.is_dir(path) else len(files.read(path)) for _, path in entries]
    width = len(str(max(sizes, default=0)))
    if has_total:
        process.write(f"total {sum(-(-size // 4096) * 4 for size in sizes)}\n")
    for (name, path), size in zip(entries, sizes, strict=True):
        mode = "rwxr-xr-x" if files.is_dir(path) or files.is_executable(path) else "rw-r--r--"
        kind, links = ("d", 2) if files.is_dir(path) else ("-", 1)
        process.write(f"{kind}{mode} {links} {OWNER} {size:>{width}} {MODIFIED} {name}\n")


def mkdir(process: Process) -> int:
    """Make directories; ``-p`` with their parents, and content with those that exist."""
    options = read_options(process.words, "p", {"parents": "p"})
    for name in _operands(process, options):
        with process.complaining(f"cannot create directory '{name}'"):
            process.files.make_directory(process.path(name), parents="p" in options)
    return process.code


def rmdir(process: Process) -> int:
    """Remove empty directories."""
    for name in _operands(process, read_options(process.words, "")):
        with process.complaining(f"failed to remove '{name}'"):
            process.files.remove_directory(process.path(name))
    return process.code


def rm(process: Process) -> int:
    """Remove files; ``-r`` also directories, ``-f`` without a word about what is not there."""
    options = read_options(process.words, "rRfv", {"recursive": "r", "force": "f", "verbose": "v"})
    files = process.files
    for name in options.operands if "f" in options else _operands(process, options):
        path = process.path(name)
        if posixpath.basename(name.rstrip("/")) in {".", ".."}:
            process.complain(f"refusing to remove '.' or '..' directory: skipping '{name}'")
        elif files.is_dir(path) and not {"r", "R"} & set(options.letters):
            process.complain(f"cannot remove '{name}': Is a directory")
        elif files.exists(path):
            (files.remove_tree if files.is_dir(path) else files.remove)(path)
            process.write(f"removed '{name}'\n" if "v" in options else "")
        elif "f" not in options:
            process.complain(f"cannot remove '{name}': No such file or directory")
    return process.code


def cp(process: Process) -> int:
    """Copy files; ``-r`` also directories."""
    options = read_options(process.words, "rRafpv", {"recursive": "r", "archive": "a", "force": "f", "verbose": "v"})
    for source, target, name, shown in _each_to_target(process, options):
        if process.files.is_dir(source) and not {"r", "R", "a"} & set(options.letters):
            process.complain(f"-r not specified; omitting directory '{name}'")
            continue
        with process.complaining(f"cannot create regular file '{shown}'"):
            _copy(process, source, target)
            process.write(f"'{name}' -> '{shown}'\n" if "v" in options else "")
    return process.code


def _copy(process: Process, source: str, target: str) -> None:
    files = process.files
    if not files.is_dir(source):
        files.write(target, files.read(source))
        if files.is_executable(source):
            files.set_executable(target, True)
        return
    files.make_directory(target, parents=True)
    for entry in files.list_directory(source):
        _copy(process, posixpath.join(source, entry), posixpath.join(target, entry))


def mv(process: Process) -> int:
    """Move files and directories."""
    options = read_options(process.words, "fnv", {"force": "f", "no-clobber": "n", "verbose": "v"})
    for source, target, name, shown in _each_to_target(process, options):
        if "n" in options and process.files.exists(target):
            continue
        with process.complaining(f"cannot move '{name}' to '{shown}'"):
            if process.files.is_file(target):
                process.files.remove(target)
            process.files.move(source, target)
            process.write(f"renamed '{name}' -> '{shown}'\n" if "v" in options else "")
    return process.code


def _each_to_target(process: Process, options: Options) -> Iterator[tuple[str, str, str, str]]:
    """Yield every source with its target, as paths and as they are named; a directory as target takes the sources in.

    Raises: a source that would end in or on itself, or a directory where a file is → UnsupportedOption.
    """
    *names, target_name = _operands(process, options)
    target, files = process.path(target_name), process.files
    if not names or (not files.is_dir(target) and (len(names) > 1 or target_name.endswith("/"))):
        raise UnsupportedOption(f"{process.name} to {target_name}, which is no directory")
    for name in names:
        source = process.path(name)
        into = files.is_dir(target)
        place = posixpath.join(target, posixpath.basename(source)) if into else target
        shown = posixpath.join(target_name, posixpath.basename(source)) if into else target_name
        if not files.exists(source):
            process.complain(f"cannot stat '{name}': No such file or directory")
        elif f"{place}/".startswith(f"{source}/") or (files.exists(place) and files.is_dir(place) != files.is_dir(source)):
            raise UnsupportedOption(f"{process.name} of '{name}' to '{shown}'")
        else:
            yield source, place, name, shown


def touch(process: Process) -> int:
    """Make empty files, or mark existing ones as changed."""
    options = read_options(process.words, "c", {"no-create": "c"})
    files = process.files
    for name in _operands(process, options):
        path = process.path(name)
        if not files.is_dir(path) and (files.exists(path) or "c" not in options):
            with process.complaining(f"cannot touch '{name}'"):
                files.write(path, files.read(path) if files.is_file(path) else b"")
    return process.code


def chmod(process: Process) -> int:
    """Set whether files are executable; other permissions do not exist here."""
    mode, *names = process.arguments or ("",)
    if re.fullmatch(r"[0-7]{3,4}", mode):
        is_executable = bool(int(mode, 8) & 0o111)
    elif found := re.fullmatch(r"[ugoa]*([-+])[rw]*x", mode):
        is_executable = found[1] == "+"
    else:
        raise UnsupportedOption(f"chmod {mode}")
    for name in names:
        path = process.path(name)
        if not process.files.exists(path):
            process.complain(f"cannot access '{name}': No such file or directory")
        elif process.files.is_file(path):
            process.files.set_executable(path, is_executable)
    return process.code


def mktemp(process: Process) -> int:
    """Make an empty file, or directory (``-d``), under a name that was free."""
    options = read_options(process.words, "d", {"directory": "d"})
    template = options.operands[0] if options.operands else "/tmp/tmp.XXXXXXXXXX"  # noqa: S108 - of the in-memory machine
    found = re.search(r"X{3,}", template)
    if not found:
        raise UnsupportedOption(f"mktemp {template}")
    names = (
        template[: found.start()] + f"{number:0{len(found[0])}}" + template[found.end() :] for number in itertools.count(1)
    )
    name = next(name for name in names if not process.files.exists(process.path(name)))
    if "d" in options:
        process.files.make_directory(process.path(name), parents=True)
    else:
        process.files.write(process.path(name), b"")
    process.write(f"{name}\n")
    return 0


def stat(process: Process) -> int:
    """Write facts about files in a format: %s size, %n name, %F kind, %a mode."""
    options = read_options(process.words, "c:", {"format": "c:"})
    form = options.get("c")
    unknown = [letter for letter in re.findall(r"%(.?)", form) if letter not in {"s", "n", "F", "a", "%"}]
    if not form or unknown:
        raise UnsupportedOption(f"stat -c %{unknown[0]}" if unknown else "stat without -c")
    files = process.files
    for name in options.operands:
        path = process.path(name)
        if not files.exists(path):
            process.complain(f"cannot statx '{name}': No such file or directory")
            continue
        is_dir = files.is_dir(path)
        size = 4096 if is_dir else len(files.read(path))
        kind = "directory" if is_dir else "regular file" if size else "regular empty file"
        facts = {"s": str(size), "n": name, "F": kind, "a": "755" if is_dir or files.is_executable(path) else "644", "%": "%"}
        process.write(re.sub("%(.)", lambda found, facts=facts: facts[found[1]], form) + "\n")  # type: ignore[misc]
    return process.code


def basename(process: Process) -> int:
    """Write the last part of a path, without a suffix when one is given."""
    names = _operands(process, read_options(process.words, ""))
    if len(names) > 2:  # noqa: PLR2004 - the path and a suffix
        raise UnsupportedOption("basename of several paths")
    base = posixpath.basename(names[0].rstrip("/")) or "/"
    process.write(f"{base if base == names[-1] else base.removesuffix(names[1] if names[1:] else '')}\n")
    return 0


def dirname(process: Process) -> int:
    """Write paths without their last part."""
    for name in _operands(process, read_options(process.words, "")):
        process.write((posixpath.dirname(name.rstrip("/")) or ("/" if name.startswith("/") else ".")) + "\n")
    return 0


def realpath(process: Process) -> int:
    """Write the absolute path of what exists, or of what could exist in an existing directory; there are no links here."""
    options = read_options(process.words, "f" if process.name.endswith("readlink") else "")
    if process.name.endswith("readlink") and "f" not in options:
        raise UnsupportedOption("readlink without -f")
    for name in _operands(process, options):
        path = process.path(name)
        if process.files.exists(path) or process.files.is_dir(posixpath.dirname(path)):
            process.write(f"{path}\n")
        elif process.name.endswith("readlink"):
            process.code = 1
        else:
            process.complain(f"{name}: No such file or directory")
    return process.code


TREES: dict[str, Program] = {
    "basename": basename,
    "chmod": chmod,
    "cp": cp,
    "dirname": dirname,
    "ls": ls,
    "mkdir": mkdir,
    "mktemp": mktemp,
    "mv": mv,
    "readlink": realpath,
    "realpath": realpath,
    "rm": rm,
    "rmdir": rmdir,
    "stat": stat,
    "touch": touch,
}
"""Name → program."""
