"""``patch``: replace a text in a file, or apply a patch in the V4A format to several files.

Source: hermes-agent 0.19, tools/file_tools.py (patch_tool).
"""

from __future__ import annotations

import re
from typing import Any

from pytest_hermes_env.sandbox.fake_tools import rules
from pytest_hermes_env.sandbox.fake_tools.machine_state import MachineState
from pytest_hermes_env.sandbox.fake_tools.writing import operations_of
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
    hermes = operations_of(machine)
    if mode == "patch":
        return dict(hermes.patch_v4a(text).to_dict()) if text and isinstance(text, str) else {"error": "patch content required"}
    if mode != "replace":
        return {"error": f"Unknown mode: {mode}"}
    old, new = arguments.get("old_string"), arguments.get("new_string")
    if not path:
        return {"error": "path required"}
    if old is None or new is None:
        return {"error": "old_string and new_string required"}
    absolute = machine.resolve(path)
    if error := rules.protected_error(absolute, HOME):
        return {"success": False, "error": error}
    try:
        return dict(hermes.patch_replace(absolute, old, new, bool(arguments.get("replace_all", False))).to_dict())
    except TypeError as error:  # what a model sent is not text
        return {"error": str(error)}


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
