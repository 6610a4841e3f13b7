r"""ripgrep on an in-memory machine, as far as hermes' file operations call it.

Patterns are Python's, whose everyday part (``\w+``, ``a|b``, ``^def``) means what it means to ripgrep; without ripgrep hermes uses
grep, to which ``a|b`` is plain text. Results are in the order of their paths, files found by name with the last changed first.

Source: hermes-agent 0.19, tools/file_operations.py (_search_with_rg, _search_files_rg).
"""

from __future__ import annotations

import fnmatch
import getopt
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import islice

from pytest_hermes_env.sandbox.fake_tools.machine_state import MachineState

__all__ = ["ripgrep"]

FLAGS = ("line-number", "no-heading", "with-filename", "glob=", "files", "sortr=")


def ripgrep(machine: MachineState, command: str) -> tuple[str, int]:
    """Return the output and the exit code of ``rg OPTIONS [PATTERN] PATH | head -n LINES``."""
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
    if "--files" in given:
        found.sort(key=lambda pair: -machine.files.changed_at(pair[1]))
    rows = list(
        islice((shown for shown, _ in found) if "--files" in given else _rows(machine, found, wanted, given), int(most))
    )
    return "\n".join(rows), int(not rows)


def _rows(
    machine: MachineState, found: list[tuple[str, str]], wanted: re.Pattern[str], given: Mapping[str, str]
) -> Iterator[str]:
    """Yield what is written about each file that matches."""
    context, is_first = int(given.get("-C", 0)), True
    for shown, absolute in found:
        text = machine.files.read(absolute).decode(errors="replace")
        lines = text.removesuffix("\n").split("\n") if text else []
        hits = {number for number, line in enumerate(lines, 1) if wanted.search(line)}
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
