"""``patch``: replace a text in a file, or apply a patch in the V4A format to several files.

How a text is found although its spaces differ, and what a V4A patch means, hermes' own pure functions decide; they are imported
when the first patch comes.

Source: hermes-agent 0.19, tools/file_tools.py (patch_tool), tools/file_operations.py (patch_replace), tools/fuzzy_match.py and
tools/patch_parser.py.
"""

from __future__ import annotations

import difflib
import posixpath
import re
from dataclasses import dataclass
from typing import Any

from pytest_hermes_env.sandbox.fake_tools import rules
from pytest_hermes_env.sandbox.fake_tools.linting import lint, lint_change
from pytest_hermes_env.sandbox.fake_tools.machine_state import MachineState
from pytest_hermes_env.sandbox.fake_tools.writing import BOM, Written, is_dos, put, text_of, with_dos_lines
from pytest_hermes_env.sandbox.hermes_modules import hermes_module
from pytest_hermes_env.sandbox.node import HOME

__all__ = ["patch"]

FAILURES_IN_A_ROW = 3
"""The failure, of those in a row on one file, from which hermes advises to stop."""
_HEADER = re.compile(r"^\*\*\*\s*(?:Update|Add|Delete)\s+File:\s*(.+)$", re.MULTILINE)
_MOVE = re.compile(r"^\*\*\*\s*Move\s+File:\s*(.+?)\s*->\s*(.+)$", re.MULTILINE)


def patch(machine: MachineState, arguments: dict[str, Any]) -> dict[str, Any]:
    """Answer ``patch``: ``mode`` replace (``path``, ``old_string``, ``new_string``, ``replace_all``) or patch (``patch``)."""
    mode, path, text = arguments.get("mode", "replace"), arguments.get("path"), arguments.get("patch")
    if path is not None and not isinstance(path, str):
        return {
            "error": f"[TOOL_ERROR] Tool execution failed: TypeError: argument of type '{type(path).__name__}' is not iterable"
        }
    paths = [path] if path else []
    if mode == "patch" and isinstance(text, str) and text:
        named = _paths_of(text)
        for name in named:
            if ".." in name.split("/"):
                return {"error": _traversal(name)}
        paths += named
    targets = {name: machine.resolve(name) for name in paths}
    for name, absolute in targets.items():
        if error := rules.sensitive_error(name, absolute):
            return {"error": error}
    warnings = [
        warning for name in targets if (warning := machine.reads.stale(targets[name], machine.files) or machine.outside(name))
    ]
    result = _apply(machine, arguments, mode, path, text)
    if set(result) == {"error"}:
        return result
    if warnings:
        result["_warning"] = " | ".join(warnings)
    if "error" not in result:
        modified = [targets[name] for name in paths]
        result["files_modified"] = modified
        if len(modified) == 1:
            result["resolved_path"] = modified[0]
        for absolute in modified:
            machine.reads.wrote(absolute, machine.files)
            machine.patch_failures.pop(absolute, None)
    elif "Could not find" in result["error"]:
        _add_hint(machine, result, path if mode == "replace" else None)
    return result


def _apply(machine: MachineState, arguments: dict[str, Any], mode: object, path: str | None, text: object) -> dict[str, Any]:
    if mode == "replace":
        old, new = arguments.get("old_string"), arguments.get("new_string")
        if not path:
            return {"error": "path required"}
        if old is None or new is None:
            return {"error": "old_string and new_string required"}
        return _replace(machine, path, old, new, replace_all=bool(arguments.get("replace_all", False)))
    if mode == "patch":
        return _apply_v4a(machine, text) if isinstance(text, str) and text else {"error": "patch content required"}
    return {"error": f"Unknown mode: {mode}"}


def _replace(machine: MachineState, path: str, old: object, new: object, *, replace_all: bool) -> dict[str, Any]:
    absolute = machine.resolve(path)
    if error := rules.protected_error(absolute, HOME):
        return {"success": False, "error": error}
    content = text_of(machine, absolute)
    if content is None:
        return {"success": False, "error": f"Failed to read file: {absolute}"}
    for value in (old, new):
        if not isinstance(value, str):
            return {"error": f"must be str, not {type(value).__name__}"}
    content = content.removeprefix(BOM)
    fuzzy = hermes_module("tools.fuzzy_match")
    replaced, count, _, error = fuzzy.fuzzy_find_and_replace(content, old, new, replace_all)
    if error or count == 0:
        error = error or f"Could not find match for old_string in {absolute}"
        return {"success": False, "error": error + fuzzy.format_no_match_hint(error, count, old, content)}
    if is_dos(content):
        replaced = with_dos_lines(replaced)
    written = put(machine, absolute, replaced)
    if written.error:
        return {"success": False, "error": f"Failed to write changes: {written.error}"}
    diff = "".join(
        difflib.unified_diff(
            content.splitlines(keepends=True), replaced.splitlines(keepends=True), f"a/{absolute}", f"b/{absolute}"
        )
    )
    result: dict[str, Any] = {"success": True}
    if diff:
        result["diff"] = diff
    return {**result, "files_modified": [absolute], "lint": lint_change(absolute, content, replaced)}


def _apply_v4a(machine: MachineState, text: str) -> dict[str, Any]:
    parser = hermes_module("tools.patch_parser")
    operations, error = parser.parse_v4a_patch(text)
    if error:
        return {"success": False, "error": f"Failed to parse patch: {error}"}
    hermes_module("tools.file_operations")  # where the parser takes the shape of its result from
    result: dict[str, Any] = parser.apply_v4a_operations(operations, _FileOperations(machine)).to_dict()
    return result


def _add_hint(machine: MachineState, result: dict[str, Any], path: str | None) -> None:
    failures = 0
    if path:
        absolute = machine.resolve(path)
        failures = machine.patch_failures[absolute] = machine.patch_failures.get(absolute, 0) + 1
    if failures >= FAILURES_IN_A_ROW:
        result["_hint"] = (
            f"This is failure #{failures} patching {path!r}. Stop retrying with variations of the same old_string. Either: "
            "(1) re-read the file fresh to verify current content, (2) use a longer / more unique old_string with surrounding "
            "context lines, or (3) use write_file to replace the entire file if the targeted region is hard to anchor."
        )
    elif "Did you mean one of these sections?" not in result["error"]:
        result["_hint"] = (
            "old_string not found. Use read_file to verify the current content, or search_files to locate the text."
        )


def _paths_of(text: str) -> list[str]:
    """Return the paths that the headers of a patch name."""
    moves = [name.strip() for move in _MOVE.finditer(text) for name in move.groups()]
    return [header[1].strip() for header in _HEADER.finditer(text)] + moves


def _traversal(path: str) -> str:
    return (
        f"V4A patch header contains '..' traversal: {path!r}. Use the agent's cwd-relative path (no '..') or an absolute path in "
        "'*** Update File:' / '*** Add File:' / '*** Delete File:' / '*** Move File:' headers."
    )


@dataclass(frozen=True, kw_only=True)
class _Content:
    """A file's text for hermes' patch functions, or why there is none."""

    content: str = ""
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class _Verdict:
    """A syntax check's result for hermes' patch functions."""

    verdict: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return self.verdict


class _FileOperations:
    """The machine's files as hermes' patch functions want them."""

    def __init__(self, machine: MachineState) -> None:
        self._machine = machine

    def read_file_raw(self, path: str) -> _Content:
        text = text_of(self._machine, self._machine.resolve(path))
        return _Content(error=f"File not found: {path}") if text is None else _Content(content=text.removeprefix(BOM))

    def write_file(self, path: str, content: str) -> Written:
        return put(self._machine, path, content)

    def delete_file(self, path: str) -> Written:
        absolute = self._machine.resolve(path)
        if error := rules.protected_error(absolute, HOME, verb="Delete"):
            return Written(error=error)
        self._machine.files.remove(absolute)
        return Written()

    def move_file(self, source: str, target: str) -> Written:
        origin, goal = self._machine.resolve(source), self._machine.resolve(target)
        for absolute in (origin, goal):
            if error := rules.protected_error(absolute, HOME, verb="Move"):
                return Written(error=error)
        if self._machine.files.is_dir(goal):
            goal = posixpath.join(goal, posixpath.basename(origin))
        try:
            self._machine.files.move(origin, goal)
        except OSError as error:
            reason = f"mv: cannot move '{source}' to '{target}': {error.strerror}\n"
            return Written(error=f"Failed to move {source} -> {target}: {reason}")
        return Written()

    def _check_lint(self, path: str) -> _Verdict:
        text = text_of(self._machine, self._machine.resolve(path))
        if text is None and lint(path, "")["status"] != "skipped":
            return _Verdict(verdict={"status": "skipped", "message": f"Failed to read {path} for lint"})
        return _Verdict(verdict=lint(path, text or ""))
