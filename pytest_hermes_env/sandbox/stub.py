"""Answers for tools that must not really run during a contract check: outward ones, and all of them off the local backend.

The answers have hermes' own result shapes and say nothing: an empty terminal, an empty search, a page without text.
"""

from __future__ import annotations

import json
from typing import Any, Literal, Self

__all__ = ["LOCAL_TOOLS", "StubSandbox"]

Confinement = Literal["local", "stub"]

LOCAL_TOOLS = frozenset({"terminal", "process", "read_file", "write_file", "patch", "search_files", "todo"})
"""Tools of the ``terminal`` and ``file`` toolsets: on the local backend they work in the rollout's own directory."""

_TERMINAL = {"output": "", "exit_code": 0, "error": None}
_ANSWERS: dict[str, dict[str, Any]] = {
    "terminal": _TERMINAL,
    "process": {"processes": []},
    "read_file": {"content": "", "total_lines": 0, "file_size": 0, "truncated": False, "is_binary": False, "is_image": False},
    "write_file": {"bytes_written": 0, "dirs_created": True, "lint": {"status": "skipped", "message": "stub"}},
    "patch": {"success": True, "diff": "", "files_modified": []},
    "search_files": {"total_count": 0},
    "execute_code": {"status": "success", "output": "", "tool_calls_made": 0, "duration_seconds": 0.0},
    "web_search": {"success": True, "data": {"web": []}},
    "web_extract": {"results": []},
}


class StubSandbox:
    """Decides per tool whether the real one may run, and answers for the others."""

    def __init__(self, confinement: Confinement) -> None:
        """``local`` lets the terminal and file tools run for real; ``stub`` lets none."""
        self.confinement = confinement

    backend = "local"

    def sandbox_of(self, task_id: str) -> Self:
        del task_id
        return self

    def call(self, name: str, arguments: dict[str, Any]) -> str | None:
        """Return the stub's result as JSON text, or None where the real tool may answer."""
        del arguments
        if self.confinement == "local" and name in LOCAL_TOOLS:
            return None
        return json.dumps(_ANSWERS.get(name, {"success": True, "output": ""}))
