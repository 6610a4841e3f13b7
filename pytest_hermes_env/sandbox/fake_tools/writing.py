"""``write_file``, and how every file tool writes text to a file.

Source: hermes-agent 0.19, tools/file_tools.py (write_file_tool) and tools/file_operations.py (ShellFileOperations.write_file).
"""

from __future__ import annotations

import contextlib
import itertools
import posixpath
from dataclasses import dataclass
from typing import Any

from pytest_hermes_env.sandbox.fake_tools import rules
from pytest_hermes_env.sandbox.fake_tools.linting import lint_change, refusal
from pytest_hermes_env.sandbox.fake_tools.machine_state import MachineState
from pytest_hermes_env.sandbox.fake_tools.read_tracker import UNCHANGED
from pytest_hermes_env.sandbox.node import HOME

__all__ = ["BOM", "SHELL", "Written", "is_dos", "put", "text_of", "with_dos_lines", "write_file"]

BOM = "\ufeff"
SHELL = "/usr/bin/bash: line 3"
"""The prefix of bash's messages in hermes' terminal."""
_TEMPORARY = ".hermes-tmp.1"
_MOSTLY = 0.6


@dataclass(frozen=True, kw_only=True)
class Written:
    """The result of a write, or its error."""

    bytes_written: int = 0
    dirs_created: bool = False
    lint: dict[str, Any] | None = None
    error: str | None = None
    lsp_diagnostics: None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields of hermes' result."""
        fields = {
            "bytes_written": self.bytes_written,
            "dirs_created": self.dirs_created,
            "lint": self.lint,
            "error": self.error,
        }
        return {name: value for name, value in fields.items() if value is not None}


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
    if _is_display(content):
        return {
            "error": "Refusing to write internal read_file display text as file content. Strip read_file line-number prefixes or "
            "reconstruct the intended file contents before writing."
        }
    warning = machine.reads.stale(absolute, machine.files) or machine.outside(path)
    result = put(machine, absolute, content).as_dict()
    if warning:
        result["_warning"] = warning
    result["resolved_path"] = absolute
    if "error" not in result:
        result["files_modified"] = [absolute]
        machine.reads.wrote(absolute, machine.files)
    return result


def put(machine: MachineState, path: str, content: str) -> Written:
    """Write text as hermes' file tools do: line ends and a byte order mark stay as the file had them. ``path``: as shown."""
    absolute = machine.resolve(path)
    if refused := rules.protected_error(absolute, HOME) or refusal(path, content):
        return Written(error=refused)
    before = text_of(machine, absolute)
    if before is not None and is_dos(before):
        content = with_dos_lines(content)
    if before is not None and before.startswith(BOM) and not content.startswith(BOM):
        content = BOM + content
    data = content.encode(errors="surrogateescape")
    try:
        written = _store(machine, absolute, data)
    except OSError as error:
        place = posixpath.join(posixpath.dirname(path), _TEMPORARY)
        return Written(error=f"Failed to write file: {SHELL}: {place}: {error.strerror}\n")
    verdict = lint_change(path, before or None, content)
    return Written(bytes_written=written, dirs_created=bool(posixpath.dirname(path)), lint=verdict)


def text_of(machine: MachineState, absolute: str) -> str | None:
    """Return a file's text, undecodable bytes replaced as in hermes' terminal; None if there is no file."""
    return machine.files.read(absolute).decode(errors="replace") if machine.files.is_file(absolute) else None


def is_dos(text: str) -> bool:
    """Return whether the lines at the start of a file end in CR LF."""
    return "\r\n" in text[:4096]


def with_dos_lines(text: str) -> str:
    """Return text with every line end as CR LF."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")


def _store(machine: MachineState, absolute: str, data: bytes) -> int:
    """Write a file and return its size; if the path is a directory, hermes leaves its temporary file there."""
    if machine.files.is_dir(absolute):
        machine.files.write(posixpath.join(absolute, _TEMPORARY), data)
        return 0
    with contextlib.suppress(OSError):  # the write itself raises then
        machine.files.make_directory(posixpath.dirname(absolute), parents=True)
    machine.files.write(absolute, data)
    return len(data)


def _is_display(content: str) -> bool:
    """Return whether this is the output of ``read_file`` instead of a file's content."""
    stripped = content.strip()
    if UNCHANGED in stripped and len(stripped) <= 2 * len(UNCHANGED):
        return True
    lines = [line for line in content.splitlines() if line.strip()]
    prefixes = [line.lstrip().partition("|") for line in lines]
    numbers = [int(number) for number, bar, _ in prefixes if bar and number.isdigit()]
    if len(numbers) <= 1 or len(numbers) / len(lines) < _MOSTLY:
        return False
    in_order = sum(after == before + 1 for before, after in itertools.pairwise(numbers))
    return in_order >= len(numbers) - 1
