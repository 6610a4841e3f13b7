r"""``search_files``: contents by regular expression, or files by name, as on a machine that has ripgrep.

Patterns are Python's, whose everyday part (``\w+``, ``a|b``, ``^def``) means what it means to ripgrep; without ripgrep hermes uses
grep, to which ``a|b`` is plain text. Results are in the order of their paths, files found by name with the last changed first.

Source: hermes-agent 0.19, tools/file_tools.py (search_tool) and tools/file_operations.py (_search_with_rg, _search_files_rg).
"""

from __future__ import annotations

import fnmatch
import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pytest_hermes_env.sandbox.fake_tools import rules
from pytest_hermes_env.sandbox.fake_tools.arguments import integer
from pytest_hermes_env.sandbox.fake_tools.machine_state import MachineState
from pytest_hermes_env.sandbox.fake_tools.read_tracker import WARN_AT
from pytest_hermes_env.sandbox.fake_tools.writing import text_of
from pytest_hermes_env.sandbox.hermes_modules import hermes_module

__all__ = ["search_files"]

LONGEST = 500
"""Characters of a matching line that are given."""
MORE_FOR_CONTEXT = 200
"""Rows that are collected beyond the wanted ones when there are lines of context."""
LISTED = 20
"""Names of a directory that are looked at for similar ones."""


def search_files(machine: MachineState, arguments: dict[str, Any]) -> dict[str, Any] | str:
    """Answer ``search_files``. A truncated result is text: hermes writes a hint after the JSON."""
    result = _search(machine, arguments)
    if not result.get("truncated"):
        return result
    offset, limit = _page(arguments)
    hint = f"Use offset={offset + limit} to see more, or narrow with a more specific pattern or file_glob."
    return f"{json.dumps(result, ensure_ascii=False)}\n\n[Hint: Results truncated. {hint}]"


def _search(machine: MachineState, arguments: dict[str, Any]) -> dict[str, Any]:
    pattern, path = arguments.get("pattern", ""), arguments.get("path", ".")
    target = {"grep": "content", "find": "files"}.get(arguments.get("target", "content"), arguments.get("target", "content"))
    offset, limit = _page(arguments)
    if not isinstance(path, str):
        return {"error": f"argument of type '{type(path).__name__}' is not iterable"}
    if not isinstance(pattern, str):
        return {"error": f"'{type(pattern).__name__}' object has no attribute 'replace'"}
    count = machine.reads.searched((pattern, target, path, arguments.get("file_glob") or "", limit, offset))
    if count > WARN_AT:
        return {
            "error": f"BLOCKED: You have run this exact search {count} times in a row. The results have NOT changed. You already "
            "have this information. STOP re-searching and proceed with your task.",
            "pattern": pattern,
            "already_searched": count,
        }
    absolute = machine.resolve(path)
    if error := rules.secret_error(absolute):
        return {"error": error}
    if not machine.files.exists(absolute):
        return _result(error=_not_found(machine, path))
    if target == "files":
        result = _by_name(machine, pattern, path, offset, limit)
    else:
        result = _by_content(machine, pattern, path, arguments, offset, limit)
    if count == WARN_AT:
        result["_warning"] = (
            f"You have run this exact search {count} times consecutively. The results have not changed. "
            "Use the information you already have."
        )
    return result


def _page(arguments: dict[str, Any]) -> tuple[int, int]:
    """Return how many results are passed over, and how many are given at most."""
    return max(0, integer(arguments.get("offset", 0), 0)), max(1, integer(arguments.get("limit", 50), 50))


def _by_name(machine: MachineState, pattern: str, path: str, offset: int, limit: int) -> dict[str, Any]:
    last = pattern.rsplit("/", 1)[-1]
    glob = last if last.startswith("*") else f"*{last}"
    names = [(shown, absolute) for shown, absolute in _visible(machine, path) if _fits(absolute, glob)]
    names.sort(key=lambda pair: -machine.files.changed_at(pair[1]))
    found = [shown for shown, _ in names[: offset + limit]]
    return _result(files=found[offset:], total_count=len(found), truncated=len(found) >= offset + limit)


def _by_content(
    machine: MachineState, pattern: str, path: str, arguments: dict[str, Any], offset: int, limit: int
) -> dict[str, Any]:
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        caret = " " * (4 + (error.pos or 0)) + "^"
        text = f"rg: regex parse error:\n    {pattern}\n{caret}\nerror: {error.msg}"
        return _result(pattern, error=f"Search failed: {text}")
    glob, context = arguments.get("file_glob"), max(0, integer(arguments.get("context", 0), 0))
    texts = (
        (shown, text)
        for shown, absolute in _visible(machine, path)
        if (not glob or _fits(absolute, str(glob))) and (text := text_of(machine, absolute) or "") and "\0" not in text
    )
    mode = arguments.get("output_mode", "content")
    if mode in {"files_only", "count"}:
        counts = {shown: count for shown, text in texts if (count := sum(1 for line in _lines(text) if wanted.search(line)))}
        collected = dict(list(counts.items())[: offset + limit])
        if mode == "count":
            return _result(pattern, counts=collected, total_count=sum(collected.values()))
        return _result(pattern, files=list(collected)[offset:], total_count=len(collected))
    most = offset + limit + (MORE_FOR_CONTEXT if context else 0)
    rows = list(_rows(texts, wanted, context, most))
    page = rows[offset : offset + limit]
    return _result(pattern, page, total_count=len(rows), truncated=len(rows) > offset + limit)


def _result(pattern: str = "", rows: Sequence[tuple[str, int, str]] = (), **fields: Any) -> dict[str, Any]:
    """Return a result in hermes' form; an empty one has a note if ``pattern`` would match line breaks."""
    hermes = hermes_module("tools.file_operations")
    matches = [hermes.SearchMatch(path=path, line_number=number, content=text) for path, number, text in rows]
    found = hermes._maybe_warn_line_oriented_newline_pattern(hermes.SearchResult(matches=matches, **fields), pattern)  # noqa: SLF001
    return dict(found.to_dict(densify=True))


def _rows(texts: Iterator[tuple[str, str]], wanted: re.Pattern[str], context: int, most: int) -> Iterator[tuple[str, int, str]]:
    """Yield matching lines with their neighbours, as (path, line, text): ``most`` rows, separators counted as one each."""
    written = 0
    for shown, text in texts:
        lines = _lines(text)
        last = 0
        hits = [number for number, line in enumerate(lines, 1) if wanted.search(line)]
        chosen = sorted({near for hit in hits for near in range(hit - context, hit + context + 1) if 1 <= near <= len(lines)})
        for number in chosen:
            if context and written and number != last + 1:
                written += 1
            if written >= most:
                return
            written, last = written + 1, number
            yield shown, number, lines[number - 1][:LONGEST]


def _visible(machine: MachineState, path: str) -> Iterator[tuple[str, str]]:
    """Yield the files below ``path`` that are not hidden, as (path as ripgrep shows it, absolute path)."""
    root = machine.resolve(path)
    start = root if path.startswith(("~", *machine.aliases)) else path
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


def _not_found(machine: MachineState, path: str) -> str:
    text = f"Path not found: {path}"
    parent, wanted = posixpath.dirname(path) or ".", posixpath.basename(path).lower()
    place = machine.resolve(parent)
    if not wanted or not machine.files.is_dir(place):
        return text
    names = [name for name in machine.files.list_directory(place) if not name.startswith(".")][:LISTED]
    similar = [
        name for name in names if wanted in name.lower() or name.lower() in wanted or name.lower().startswith(wanted[:3])
    ]
    return f"{text}. Similar paths: {', '.join(posixpath.join(parent, name) for name in similar[:5])}" if similar else text


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines
