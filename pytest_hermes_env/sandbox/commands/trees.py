"""Commands that change or list the tree: ls, mkdir, rmdir, rm, cp, mv, touch, chmod, mktemp, stat, and names of paths."""

from __future__ import annotations

import posixpath
import re

from pytest_hermes_env.sandbox.commands.inputs import reason
from pytest_hermes_env.sandbox.commands.options import Options, read_options
from pytest_hermes_env.sandbox.commands.process import Process, UnsupportedOption

__all__ = ["TREES"]

OWNER, MODIFIED = "root root", "Jan  1 00:00"
"""What ``ls -l`` shows: this machine has one user, and its clock stands still."""


def ls(process: Process) -> int:
    """List directories, one name per line, sorted by bytes."""
    long = {"all": "a", "almost-all": "A", "recursive": "R", "directory": "d", "classify": "F", "human-readable": "h"}
    options = read_options(process, "laA1RdFhrt", long)
    files, code, directories = process.files, 0, []
    plain: list[str] = []
    for name in options.operands or ["."]:
        path = process.path(name)
        if not files.exists(path):
            process.complain(f"cannot access '{name}': No such file or directory")
            code = 2
        elif files.is_dir(path) and "d" not in options:
            directories.append(name)
        else:
            plain.append(name)
    plain = _sorted(plain, options)
    _rows(process, [(name, process.path(name)) for name in plain], options, has_total=False)
    has_names = len(options.operands) > 1 or "R" in options
    is_first = not plain
    for name in sorted(directories) if "t" not in options else directories:
        for shown, path in _below(process, name, options):
            if has_names:
                process.write(f"{'' if is_first else chr(10)}{shown}:\n")
            is_first = False
            names = [entry for entry in files.list_directory(path) if "a" in options or "A" in options or entry[0] != "."]
            entries = [(entry, posixpath.join(path, entry)) for entry in _sorted(names, options)]
            if "a" in options:
                dots = [(".", path), ("..", posixpath.dirname(path))]
                entries = [*entries, *reversed(dots)] if "r" in options else [*dots, *entries]
            _rows(process, entries, options, has_total="l" in options)
    return code


def _sorted(names: list[str], options: Options) -> list[str]:
    if "t" in options:
        raise UnsupportedOption("ls -t")
    return sorted(names, reverse="r" in options)


def _below(process: Process, name: str, options: Options) -> list[tuple[str, str]]:
    found = [(name, process.path(name))]
    if "R" in options:
        for entry in _sorted(process.files.list_directory(found[0][1]), options):
            shown = posixpath.join(name, entry)
            if process.files.is_dir(process.path(shown)) and (entry[0] != "." or "a" in options or "A" in options):
                found += _below(process, shown, options)
    return found


def _rows(process: Process, entries: list[tuple[str, str]], options: Options, *, has_total: bool) -> None:
    files = process.files
    if "l" not in options:
        process.write("".join(f"{name}{'/' if 'F' in options and files.is_dir(path) else ''}\n" for name, path in entries))
        return
    sizes = [4096 if files.is_dir(path) else len(files.read(path)) for _, path in entries]
    texts = [_human(size) if "h" in options else str(size) for size in sizes]
    width = max(map(len, texts), default=1)
    if has_total:
        blocks = sum(-(-size // 4096) * 4 for size in sizes)
        process.write(f"total {_human(blocks * 1024) if 'h' in options and blocks else blocks}\n")
    for (name, path), size in zip(entries, texts, strict=True):
        links = 2 if files.is_dir(path) else 1
        process.write(f"{mode_of(process, path)} {links} {OWNER} {size:>{width}} {MODIFIED} {name}\n")


def mode_of(process: Process, path: str) -> str:
    """Return permissions as ``ls -l`` shows them."""
    if process.files.is_dir(path):
        return "drwxr-xr-x"
    return "-rwxr-xr-x" if process.files.is_executable(path) else "-rw-r--r--"


def _human(size: int) -> str:
    amount, units = float(size), "BKMGT"
    unit = 0
    while amount >= 1024 and unit < len(units) - 1:  # noqa: PLR2004 - bytes per kilobyte
        amount, unit = amount / 1024, unit + 1
    if unit == 0:
        return str(size)
    return f"{-(-amount * 10 // 1) / 10:.1f}{units[unit]}" if amount < 10 else f"{int(-(-amount // 1))}{units[unit]}"  # noqa: PLR2004


def mkdir(process: Process) -> int:
    """Make directories; ``-p`` with their parents, and content with those that exist."""
    options = read_options(process, "pvm:", {"parents": "p", "verbose": "v", "mode": "m:"})
    code = 0
    if not options.operands:
        return _no_operand(process)
    for name in options.operands:
        path = process.path(name)
        try:
            existed = process.files.is_dir(path)
            process.files.make_directory(path, parents="p" in options)
        except OSError as error:
            process.complain(f"cannot create directory '{name}': {reason(error)}")
            code = 1
        else:
            if "v" in options and not existed:
                process.write(f"mkdir: created directory '{name}'\n")
    return code


def _no_operand(process: Process) -> int:
    process.complain("missing operand")
    process.err += f"Try '{process.name} --help' for more information.\n".encode()
    return 1


def rmdir(process: Process) -> int:
    """Remove empty directories."""
    options = read_options(process, "")
    code = 0
    if not options.operands:
        return _no_operand(process)
    for name in options.operands:
        try:
            process.files.remove_directory(process.path(name))
        except OSError as error:
            process.complain(f"failed to remove '{name}': {reason(error)}")
            code = 1
    return code


def rm(process: Process) -> int:
    """Remove files; ``-r`` also directories, ``-f`` without a word about what is not there."""
    options = read_options(process, "rRfvd", {"recursive": "r", "force": "f", "verbose": "v", "dir": "d"})
    files, code = process.files, 0
    if not options.operands:
        return 0 if "f" in options else _no_operand(process)
    for name in options.operands:
        path = process.path(name)
        is_tree = "r" in options or "R" in options
        if posixpath.basename(name.rstrip("/")) in {".", ".."}:
            process.err += f"rm: refusing to remove '.' or '..' directory: skipping '{name}'\n".encode()
            code = 1
        elif not files.exists(path):
            if "f" not in options:
                process.complain(f"cannot remove '{name}': No such file or directory")
                code = 1
        elif files.is_dir(path) and not is_tree:
            process.complain(f"cannot remove '{name}': Is a directory")
            code = 1
        else:
            if files.is_dir(path):
                files.remove_tree(path)
            else:
                files.remove(path)
            if "v" in options:
                process.write(f"removed '{name}'\n")
    return code


def cp(process: Process) -> int:
    """Copy files; ``-r`` also directories."""
    options = read_options(process, "rRafpvt:", {"recursive": "r", "archive": "a", "force": "f", "verbose": "v"})
    is_tree = bool(options.values.keys() & {"r", "R", "a"})

    def one(source: str, target: str, shown: str, shown_target: str) -> int:
        files = process.files
        if not files.is_dir(source):
            files.write(target, files.read(source))
            if files.is_executable(source):
                files.set_executable(target, True)
        elif not is_tree:
            process.complain(f"-r not specified; omitting directory '{shown}'")
            return 1
        elif target == source or target.startswith(f"{source}/"):
            process.complain(f"cannot copy a directory, '{shown}', into itself, '{shown_target}'")
            return 1
        else:
            _copy_tree(process, source, target)
        if "v" in options:
            process.write(f"'{shown}' -> '{shown_target}'\n")
        return 0

    return _each_to_target(process, options, one, doing="copy")


def _copy_tree(process: Process, source: str, target: str) -> None:
    files = process.files
    files.make_directory(target, parents=True)
    for entry in files.list_directory(source):
        old, new = posixpath.join(source, entry), posixpath.join(target, entry)
        if files.is_dir(old):
            _copy_tree(process, old, new)
        else:
            files.write(new, files.read(old))
            if files.is_executable(old):
                files.set_executable(new, True)


def mv(process: Process) -> int:
    """Move files and directories."""
    options = read_options(process, "fnvt:", {"force": "f", "no-clobber": "n", "verbose": "v"})

    def one(source: str, target: str, shown: str, shown_target: str) -> int:
        files = process.files
        if "n" in options and files.exists(target):
            return 0
        if target == source:
            process.complain(f"'{shown}' and '{shown_target}' are the same file")
            return 1
        if target.startswith(f"{source}/"):
            process.complain(f"cannot move '{shown}' to a subdirectory of itself, '{shown_target}'")
            return 1
        if files.is_dir(target) and not files.is_dir(source):
            process.complain(f"cannot overwrite directory '{shown_target}' with non-directory")
            return 1
        if files.is_file(target) and files.is_dir(source):
            process.complain(f"cannot overwrite non-directory '{shown_target}' with directory '{shown}'")
            return 1
        if files.is_file(target):
            files.remove(target)
        files.move(source, target)
        if "v" in options:
            process.write(f"renamed '{shown}' -> '{shown_target}'\n")
        return 0

    return _each_to_target(process, options, one, doing="move")


def _each_to_target(process: Process, options: Options, one: object, *, doing: str) -> int:
    """Call ``one(source, target, shown source, shown target)`` for every source; a directory as target takes them in."""
    names = list(options.operands)
    if not names:
        process.complain("missing file operand")
    elif len(names) == 1 and "t" not in options:
        process.complain(f"missing destination file operand after '{names[0]}'")
    if len(names) < (1 if "t" in options else 2):
        process.err += f"Try '{process.name} --help' for more information.\n".encode()
        return 1
    target_name = options.get("t") or names.pop()
    target, files, code = process.path(target_name), process.files, 0
    if (len(names) > 1 or target_name.endswith("/")) and not files.is_dir(target):
        if len(names) > 1:
            process.err += f"{process.name}: target '{target_name}': {_why_no_directory(process, target)}\n".encode()
            return 1
        if not files.is_dir(process.path(names[0])):
            verb = "create regular file" if doing == "copy" else "move"
            text = (
                f"cannot create regular file '{target_name}'"
                if doing == "copy"
                else f"cannot {verb} '{names[0]}' to '{target_name}'"
            )
            process.complain(f"{text}: Not a directory")
            return 1
    for name in names:
        source = process.path(name)
        into = files.is_dir(target)
        place = posixpath.join(target, posixpath.basename(source)) if into else target
        shown = posixpath.join(target_name, posixpath.basename(source)) if into else target_name
        if not files.exists(source):
            process.complain(f"cannot stat '{name}': No such file or directory")
            code = 1
            continue
        if doing == "copy" and place == source:
            process.complain(f"'{name}' and '{shown}' are the same file")
            code = 1
            continue
        try:
            code = one(source, place, name, shown) or code  # type: ignore[operator]
        except OSError as error:
            text = f"cannot create regular file '{shown}'" if doing == "copy" else f"cannot move '{name}' to '{shown}'"
            process.complain(f"{text}: {reason(error)}")
            code = 1
    return code


def _why_no_directory(process: Process, path: str) -> str:
    return "Not a directory" if process.files.exists(path) else "No such file or directory"


def touch(process: Process) -> int:
    """Make empty files, or mark existing ones as changed."""
    options = read_options(process, "c", {"no-create": "c"})
    files, code = process.files, 0
    for name in options.operands:
        path = process.path(name)
        if files.is_dir(path) or ("c" in options and not files.exists(path)):
            continue
        try:
            files.write(path, files.read(path) if files.is_file(path) else b"")
        except OSError as error:
            process.complain(f"cannot touch '{name}': {reason(error)}")
            code = 1
    return code


def chmod(process: Process) -> int:
    """Set whether files are executable; other permissions do not exist here."""
    words = [word for word in process.arguments if word not in {"-R", "-v", "--"}]
    if not words or words[0].startswith("--"):
        raise UnsupportedOption(f"chmod {' '.join(process.arguments)}")
    mode, names = words[0], words[1:]
    if re.fullmatch(r"[0-7]{3,4}", mode):
        is_executable: bool | None = bool(int(mode, 8) & 0o111)
    elif re.fullmatch(r"[ugoa]*[-+=][rwx]+(,[ugoa]*[-+=][rwx]+)*", mode):
        found = re.search(r"([-+=])[rw]*x", mode)
        is_executable = None if found is None else found[1] != "-"
    else:
        raise UnsupportedOption(f"chmod {mode}")
    code = 0
    for name in names:
        path = process.path(name)
        if not process.files.exists(path):
            process.complain(f"cannot access '{name}': No such file or directory")
            code = 1
        elif process.files.is_file(path) and is_executable is not None:
            process.files.set_executable(path, is_executable)
    return code


def mktemp(process: Process) -> int:
    """Make an empty file, or directory (``-d``), under a name that was free."""
    options = read_options(process, "dt", {"directory": "d"})
    template = options.operands[0] if options.operands else "/tmp/tmp.XXXXXXXXXX"  # noqa: S108 - of the in-memory machine
    found = re.search(r"X{3,}", template)
    if not found:
        process.complain(f"too few X's in template '{template}'")
        return 1
    number = 0
    while True:
        number += 1
        name = template[: found.start()] + str(number).zfill(len(found.group())) + template[found.end() :]
        path = process.path(name)
        if not process.files.exists(path):
            break
    if "d" in options:
        process.files.make_directory(path, parents=True)
    else:
        process.files.write(path, b"")
    process.write(f"{name}\n")
    return 0


def stat(process: Process) -> int:
    """Write facts about files in a format: %s size, %n name, %F kind, %a mode."""
    options = read_options(process, "c:", {"format": "c:", "printf": "p:"})
    form = options.get("c")
    if form is None:
        raise UnsupportedOption("stat without -c")
    code = 0
    for name in options.operands:
        path, files = process.path(name), process.files
        if not files.exists(path):
            process.err += f"stat: cannot statx '{name}': No such file or directory\n".encode()
            code = 1
            continue
        is_dir = files.is_dir(path)
        size = 4096 if is_dir else len(files.read(path))
        kind = "directory" if is_dir else "regular file" if size else "regular empty file"
        facts = {"s": str(size), "n": name, "F": kind, "a": "755" if is_dir or files.is_executable(path) else "644", "%": "%"}
        unknown = [letter for letter in re.findall(r"%(.)", form) if letter not in facts]
        if unknown:
            raise UnsupportedOption(f"stat -c %{unknown[0]}")
        process.write("".join(facts[part[1]] if part[:1] == "%" else part for part in re.split(r"(%.)", form)) + "\n")
    return code


def basename(process: Process) -> int:
    """Write the last part of a path, without a suffix when one is given."""
    options = read_options(process, "as:", {"suffix": "s:", "multiple": "a"})
    names, suffix = list(options.operands), options.get("s", "") or ""
    if not names:
        return _no_operand(process)
    if "a" not in options and "s" not in options and len(names) == 2:  # noqa: PLR2004 - name and suffix
        suffix = names.pop()
    for name in names:
        base = posixpath.basename(name.rstrip("/")) or "/"
        process.write((base.removesuffix(suffix) if base != suffix else base) + "\n")
    return 0


def dirname(process: Process) -> int:
    """Write a path without its last part."""
    options = read_options(process, "")
    if not options.operands:
        return _no_operand(process)
    for name in options.operands:
        process.write((posixpath.dirname(name.rstrip("/")) or ("/" if name.startswith("/") else ".")) + "\n")
    return 0


def realpath(process: Process) -> int:
    """Write the absolute path of what exists, or of what could exist in an existing directory."""
    options = read_options(process, "emsqf", {"canonicalize-existing": "e", "canonicalize": "f", "canonicalize-missing": "m"})
    code = 0
    for name in options.operands:
        path = process.path(name)
        is_found = process.files.exists(path) or ("e" not in options and process.files.is_dir(posixpath.dirname(path)))
        if is_found or "m" in options:
            process.write(f"{path}\n")
        else:
            if process.name == "realpath":
                process.complain(f"{name}: No such file or directory")
            code = 1
    return code


def readlink(process: Process) -> int:
    """Write the canonical path (``-f``); there are no links here."""
    options = read_options(process, "fem")
    if not options.values:
        return 1
    return realpath(process)


TREES = {
    "basename": basename,
    "chmod": chmod,
    "cp": cp,
    "dirname": dirname,
    "ls": ls,
    "mkdir": mkdir,
    "mktemp": mktemp,
    "mv": mv,
    "readlink": readlink,
    "realpath": realpath,
    "rm": rm,
    "rmdir": rmdir,
    "stat": stat,
    "touch": touch,
}
"""Name → program."""
