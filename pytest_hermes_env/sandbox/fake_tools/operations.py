"""hermes' own file operations on the in-memory tree: hermes decides and words the results; the commands that it sends are answered here.

Place in the flow: the file tools load this module with the first call of a process, since it loads hermes' module.

Source: hermes-agent 0.19, tools/file_operations.py (ShellFileOperations), agent/file_safety.py.
"""

from __future__ import annotations

import errno
import fnmatch
import getopt
import io
import json
import os
import posixpath
import re
import shlex
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any

from pytest_hermes_env.sandbox.cell import Limits
from pytest_hermes_env.sandbox.fake_tools.machine_state import MachineState
from pytest_hermes_env.sandbox.fake_tools.rules import SHELL, integer, numbered
from pytest_hermes_env.sandbox.files import HOME
from pytest_hermes_env.sandbox.hermes_modules import with_names
from pytest_hermes_env.sandbox.real_shell import Place
from pytest_hermes_env.sandbox.view import KIT, PYTHON, SYSTEM

LONGEST_NAME = 255
READ_ONLY = (*SYSTEM, "/dev", "/proc", "/sys", PYTHON, KIT)
"""What commands cannot write, because it is the machine's."""
SEARCH_S = 30
"""Seconds that a search may take, which hermes gives it."""
_COSTLY = re.compile(r"\)[*+?{]|\\[1-9]|(?:[*+}].*){3}")
"""Patterns on which Python's search may take longer than a test can wait, and holds all threads meanwhile."""
_SEARCH = """import json, re, sys
pattern, texts = json.load(sys.stdin)
wanted = re.compile(pattern)
lines = {path: text.removesuffix("\\n").split("\\n") if text else [] for path, text in texts.items()}
print(json.dumps({path: [at for at, line in enumerate(rows, 1) if wanted.search(line)] for path, rows in lines.items()}))
"""
MOST_LINES = 2000
"""Most lines of one read: hermes' default."""
_TEMPORARY = ".hermes-tmp.1"
_QUOTE = "'\\''"
_PATH = rf"'((?:[^']|{re.escape(_QUOTE)})*)'"
_COMMAND = re.compile(rf"(wc -[cl] <|head -c \d+|sed -n '\d+,\d+p'|cat|ls -1|mkdir -p|mv|test -[de]) {_PATH}(?: {_PATH})?")
_PIPE = re.compile(r"(?<!\|)\|(?!\|| head )")
FLAGS = ("line-number", "no-heading", "with-filename", "glob=", "files", "sortr=")
_filters = threading.Lock()
"""Held while a check changes the process's warning filters, which all threads share."""


def page_of(offset: object = 1, limit: object = 500) -> tuple[int, int]:
    """Return the first line and the number of lines of a read."""
    return max(1, integer(offset, 1)), max(1, min(integer(limit, 500), MOST_LINES))


class _MachinePath(PurePosixPath):
    """A path of the machine, as hermes' rules about files with secrets use it: absolute already, and nothing of the host."""

    def expanduser(self) -> _MachinePath:
        return self

    def resolve(self) -> _MachinePath:
        return self


def _hermes_home() -> _MachinePath:
    return _MachinePath(HOME, ".hermes")


_PATHS = {**vars(posixpath), "expanduser": lambda path: HOME if path == "~" else path, "realpath": posixpath.normpath}
_OS = SimpleNamespace(**{**vars(os), "path": SimpleNamespace(**_PATHS), "getenv": lambda _, default=None: default})
_OF_HOST = {"os": _OS, "Path": _MachinePath, "_hermes_home_path": _hermes_home, "_hermes_root_path": _hermes_home}
_safety = with_names("agent.file_safety", _OF_HOST)
read_block_error: Callable[[str], str | None] = _safety["get_read_block_error"]
"""Returns why hermes does not read a file, such as one that holds a project's secrets, or None."""
write_denied_error: Callable[..., str | None] = _safety["get_write_denied_error"]
"""Returns why hermes' file tools do not touch a file, or None."""

_SEEN = {"normalize_read_pagination": page_of, "get_write_denied_error": write_denied_error}
hermes = SimpleNamespace(**with_names("tools.file_operations", _SEEN))


class MemoryFileOperations(hermes.ShellFileOperations):  # type: ignore[misc,name-defined]  # hermes ships no types
    """The file operations of one machine. Of the optional programs only ripgrep is installed."""

    def __init__(self, machine: MachineState) -> None:
        super().__init__(None, cwd=machine.session.cwd)
        self._machine = machine

    def delete_file(self, path: str) -> Any:
        """Delete a file."""
        denied = write_denied_error(self._expand_path(path), verb="Delete")
        if denied is None:
            self._machine.files.remove(self._machine.resolve(path))
        return hermes.WriteResult(error=denied)

    def _atomic_write(self, path: str, content: str) -> Any:
        """Write a file; in a directory of that name hermes leaves its temporary file."""
        files, place = self._machine.files, self._machine.resolve(path)
        try:
            _check_writable(place, sum(len(node.data) for node in files.nodes.values()) + len(content))
            files.write(f"{place}/{_TEMPORARY}" if files.is_dir(place) else place, content.encode(errors="surrogateescape"))
        except OSError as error:
            text = f"{SHELL}: {posixpath.join(posixpath.dirname(path), _TEMPORARY)}: {error.strerror}\n"
            return hermes.ExecuteResult(stdout=text, exit_code=1)
        return hermes.ExecuteResult()

    def _lsp_handles_extension(self, ext: str) -> bool:
        del ext
        return False

    def _expand_path(self, path: str) -> str:
        return HOME + path[1:] if path == "~" or path.startswith("~/") else path

    def _add_line_numbers(self, content: str, start_line: int = 1) -> str:
        return numbered(content, start_line)

    def _escape_shell_arg(self, arg: str) -> str:
        return "'" + arg.replace("'", _QUOTE) + "'"

    def _has_command(self, cmd: str) -> bool:
        return cmd == "rg"

    def _check_lint(self, path: str, content: str | None = None) -> Any:
        if content is not None and "\\" not in content:  # escapes are what Python warns about
            return super()._check_lint(path, content)
        with _filters, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return super()._check_lint(path, content)

    def _exec(self, command: str, cwd: str | None = None, timeout: int | None = None, stdin_data: str | None = None) -> Any:
        """Answer a command of hermes' file operations. A directory has no bytes."""
        del cwd, timeout, stdin_data
        if (search := command.removeprefix("set -o pipefail; ")).startswith("rg "):
            output, code = ripgrep(self._machine, search)
            return hermes.ExecuteResult(stdout=output, exit_code=code)
        found = _COMMAND.match(command)
        if found is None or _PIPE.search(command, found.end()):
            ran = self._machine.real.run(command, Place(cwd=self._machine.session.cwd), timeout=SEARCH_S)  # of a later hermes
            return hermes.ExecuteResult(stdout=ran.output.decode(errors="replace"), exit_code=ran.exit_code)
        name, *paths = (text.replace(_QUOTE, "'") for text in found.groups() if text is not None)
        try:
            return hermes.ExecuteResult(stdout=self._answer(name, *paths))
        except OSError as error:
            if name == "mv":
                return hermes.ExecuteResult(
                    stdout=f"mv: cannot move '{paths[0]}' to '{paths[1]}': {error.strerror}\n", exit_code=1
                )
            return hermes.ExecuteResult(stdout="0\n" if isinstance(error, IsADirectoryError) else "", exit_code=1)

    def _answer(self, name: str, path: str, target: str = "") -> str:
        files, place = self._machine.files, self._machine.resolve(path)
        if name == "test -e":
            return "exists" if files.exists(place) else "not_found"
        if name == "test -d":
            return "yes" if files.is_dir(place) else "no"
        if name == "ls -1":
            return "\n".join(one for one in files.list_directory(place) if not one.startswith("."))
        if name == "mkdir -p":
            _check_writable(place)
            files.make_directory(place, parents=True)
            return ""
        if name == "mv":
            goal = self._machine.resolve(target)
            _check_writable(goal)
            files.move(place, posixpath.join(goal, posixpath.basename(place)) if files.is_dir(goal) else goal)
            return ""
        data = files.read(place)
        if name.startswith("wc"):
            return str(len(data) if name == "wc -c <" else data.count(b"\n"))
        if page := re.fullmatch(r"sed -n '(\d+),(\d+)p'", name):
            return b"".join(io.BytesIO(data).readlines()[int(page[1]) - 1 : int(page[2])]).decode(errors="replace")
        return data[: int(name.rpartition(" ")[2]) if name != "cat" else None].decode(errors="replace")


def _check_writable(place: str, size: int = 0) -> None:
    """Raises: no command of the machine could write there, or so many bytes → OSError. In its real bash are the machine's programs."""
    if any(len(os.fsencode(part)) > LONGEST_NAME for part in place.split("/")):
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    if any(f"{place}/".startswith(f"{directory}/") for directory in READ_ONLY):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))
    if size > Limits().disk_bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def ripgrep(machine: MachineState, command: str) -> tuple[str, int]:
    r"""Return the output and the exit code of ``rg OPTIONS [PATTERN] PATH | head -n LINES``.

    Patterns are Python's, whose everyday part (``\w+``, ``a|b``, ``^def``) means what it means to ripgrep. Results are in the order of
    their paths, files found by name with the last changed first.
    """
    called, _, most = command.rpartition(" | head -n ")
    try:
        options, operands = getopt.gnu_getopt(shlex.split(called.removesuffix(" 2>/dev/null"))[1:], "C:g:lc", [*FLAGS])
        wanted = re.compile(operands[0])
    except getopt.GetoptError as error:
        return f"rg: unrecognized flag -{error.opt}", 2
    except re.error as error:
        return f"rg: regex parse error:\n    {operands[0]}\n{' ' * (4 + (error.pos or 0))}^\nerror: {error.msg}", 2
    given = dict(options)
    glob = given.get("--glob", given.get("-g"))
    found = [pair for pair in _visible(machine, operands[-1]) if not glob or _fits(pair[1], glob)]
    try:
        hits = _hits_apart(machine, operands, found) if "--files" not in given and _COSTLY.search(operands[0]) else None
    except TimeoutError as error:
        return f"rg: {error}", 2
    if "--files" in given:
        found.sort(key=lambda pair: -machine.files.changed_at(pair[1]))
    rows = list(
        islice((shown for shown, _ in found) if "--files" in given else _rows(machine, found, wanted, hits, given), int(most))
    )
    return "\n".join(rows), int(not rows)


def _rows(
    machine: MachineState,
    found: list[tuple[str, str]],
    wanted: re.Pattern[str],
    known: Mapping[str, set[int]] | None,
    given: Mapping[str, str],
) -> Iterator[str]:
    """Yield what is written about each file that matches. ``known``: the numbers of the lines that match, by file, if they are known."""
    context, is_first = int(given.get("-C", 0)), True
    for shown, absolute in found:
        text = machine.files.read(absolute).decode(errors="replace")
        lines = text.removesuffix("\n").split("\n") if text else []
        if known is None:
            hits = {number for number, line in enumerate(lines, 1) if wanted.search(line)}
        else:
            hits = known.get(absolute, set())
        if not hits or "\0" in text:
            continue
        if "-l" in given or "-c" in given:
            yield shown if "-l" in given else f"{shown}:{len(hits)}"
            continue
        last = -1
        near = {number for hit in hits for number in range(hit - context, hit + context + 1)}
        for number in sorted(near & set(range(1, len(lines) + 1))):
            if context and not is_first and number != last + 1:
                yield "--"
            mark, last, is_first = ":" if number in hits else "-", number, False
            yield f"{shown}{mark}{number}{mark}{lines[number - 1]}"


def _hits_apart(machine: MachineState, operands: list[str], found: list[tuple[str, str]]) -> dict[str, set[int]]:
    """Return the numbers of the lines that match, by file. Raises: nothing finds out in time → TimeoutError.

    grep gives up where Python would not; without a cell for it, another process searches, which can be killed.
    """
    pattern, root = operands[0], machine.resolve(operands[-1])
    hits: dict[str, set[int]] = {}
    if machine.real.cells.refusal:
        texts = {absolute: machine.files.read(absolute).decode(errors="replace") for _, absolute in found}
        words, given = [sys.executable, "-I", "-S", "-c", _SEARCH], json.dumps([pattern, texts])
        try:
            ended = subprocess.run(words, input=given, capture_output=True, text=True, timeout=SEARCH_S, check=True)
        except subprocess.SubprocessError:
            raise TimeoutError(f"the pattern {pattern} takes too long") from None
        return {absolute: set(numbers) for absolute, numbers in json.loads(ended.stdout).items()}
    line = f"LC_ALL=C.UTF-8 grep -rnHZIP -e {shlex.quote(pattern)} -- {shlex.quote(root)} 2>/dev/null"
    ran = machine.real.run(line, Place(cwd="/"), timeout=SEARCH_S)
    if ran.timed_out or (ran.exit_code not in {0, 1} and not ran.output):
        raise TimeoutError(f"the pattern {pattern} takes too long")
    for row in ran.output.split(b"\n"):
        name, separator, rest = row.partition(b"\0")
        if separator:
            hits.setdefault(name.decode(errors="replace"), set()).add(int(rest.partition(b":")[0]))
    return hits


def _visible(machine: MachineState, path: str) -> Iterator[tuple[str, str]]:
    """Yield the files below ``path`` that are not hidden, as (path as ripgrep shows it, absolute path)."""
    root = machine.resolve(path)
    start = root if path.startswith(machine.aliases) else path
    if machine.files.is_file(root):
        yield start, root
        return
    for absolute in machine.files.walk(root):
        below = absolute[len(root) :].lstrip("/")
        if not any(part.startswith(".") for part in below.split("/")):
            yield f"{start.rstrip('/')}/{below}", absolute


def _fits(absolute: str, glob: str) -> bool:
    """Tell whether a file has a name like ``glob``; with a slash in it the end of its path counts."""
    if "/" in glob:
        return fnmatch.fnmatchcase(absolute, f"*/{glob.lstrip('/').removeprefix('**/')}")
    return fnmatch.fnmatchcase(posixpath.basename(absolute), glob)
