"""``search_files``: contents by regular expression, or files by name, as on a machine that has ripgrep.

Source: hermes-agent 0.19, tools/file_tools.py (search_tool).
"""

from __future__ import annotations

import json
from typing import Any

from pytest_hermes_env.sandbox.fake_tools import rules
from pytest_hermes_env.sandbox.fake_tools.arguments import integer
from pytest_hermes_env.sandbox.fake_tools.machine_state import MachineState
from pytest_hermes_env.sandbox.fake_tools.read_tracker import WARN_AT
from pytest_hermes_env.sandbox.fake_tools.writing import operations_of

__all__ = ["search_files"]


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
    found = operations_of(machine).search(
        pattern=pattern,
        path=path,
        target=target,
        file_glob=str(arguments.get("file_glob") or ""),
        limit=limit,
        offset=offset,
        output_mode=arguments.get("output_mode", "content"),
        context=integer(arguments.get("context", 0), 0),
    )
    result: dict[str, Any] = found.to_dict(densify=True)
    if count == WARN_AT:
        result["_warning"] = (
            f"You have run this exact search {count} times consecutively. The results have not changed. "
            "Use the information you already have."
        )
    return result


def _page(arguments: dict[str, Any]) -> tuple[int, int]:
    """Return how many results are passed over, and how many are given at most."""
    return max(0, integer(arguments.get("offset", 0), 0)), max(1, integer(arguments.get("limit", 50), 50))
