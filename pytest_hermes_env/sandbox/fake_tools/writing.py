"""``write_file``, and hermes' operations on the files of a machine.

Source: hermes-agent 0.19, tools/file_tools.py (write_file_tool).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_hermes_env.sandbox.fake_tools import rules
from pytest_hermes_env.sandbox.fake_tools.machine_state import MachineState
from pytest_hermes_env.sandbox.hermes_modules import hermes_module

if TYPE_CHECKING:
    from pytest_hermes_env.sandbox.fake_tools.operations import MemoryFileOperations

__all__ = ["operations_of", "write_file"]


def operations_of(machine: MachineState) -> MemoryFileOperations:
    """Return hermes' file operations on a machine."""
    hermes_module("tools.file_operations")
    loaded = hermes_module("pytest_hermes_env.sandbox.fake_tools.operations")
    operations: MemoryFileOperations = loaded.MemoryFileOperations(machine)
    return operations


def write_file(machine: MachineState, arguments: dict[str, Any]) -> dict[str, Any]:
    """Answer ``write_file``: ``path``, ``content``."""
    path, content = arguments.get("path"), arguments.get("content")
    if not path or not isinstance(path, str):
        fix = "Re-emit the tool call with both 'path' and 'content' set."
        return {"error": f"write_file: missing required field 'path'. {fix}"}
    if "content" not in arguments:
        return {
            "error": "write_file: missing required field 'content'. The tool call included a path but no content argument — this is "
            "almost always a dropped-arg bug under context pressure. Re-emit the tool call with the full content payload, or use "
            "execute_code with hermes_tools.write_file() for very large files."
        }
    if not isinstance(content, str):
        return {"error": f"write_file: 'content' must be a string, got {type(content).__name__}."}
    if "\0" in path:
        return {"error": "[TOOL_ERROR] Tool execution failed: ValueError: embedded null byte"}
    absolute = machine.resolve(path)
    if error := rules.sensitive_error(path, absolute):
        return {"error": error}
    if hermes_module("tools.file_tools")._is_internal_file_tool_content(content):  # noqa: SLF001 - hermes has no public name for it
        return {
            "error": "Refusing to write internal read_file display text as file content. Strip read_file line-number prefixes or "
            "reconstruct the intended file contents before writing."
        }
    warning = machine.reads.stale(absolute, machine.files) or machine.outside(path)
    result: dict[str, Any] = operations_of(machine).write_file(absolute, content).to_dict()
    if warning:
        result["_warning"] = warning
    result["resolved_path"] = absolute
    if "error" not in result:
        result["files_modified"] = [absolute]
        machine.reads.wrote(absolute, machine.files)
    return result
