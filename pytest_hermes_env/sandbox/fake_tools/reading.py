"""``read_file``: numbered lines of a text file, in pages.

Source: hermes-agent 0.19, tools/file_tools.py (read_file_tool), tools/file_operations.py (ShellFileOperations.read_file) and
tools/read_extract.py.
"""

from __future__ import annotations

import posixpath
import tempfile
from typing import Any

from pytest_hermes_env.sandbox.fake_tools import rules
from pytest_hermes_env.sandbox.fake_tools.arguments import integer
from pytest_hermes_env.sandbox.fake_tools.machine_state import MachineState
from pytest_hermes_env.sandbox.fake_tools.read_tracker import WARN_AT
from pytest_hermes_env.sandbox.fake_tools.writing import operations_of
from pytest_hermes_env.sandbox.hermes_modules import hermes_module

__all__ = ["EMPTY", "MOST_LINES", "numbered", "read_file"]

MOST_LINES = 2000
"""Most lines of one read."""
MOST_CHARACTERS = 100_000
"""Most characters of one read, line numbers included."""
LONGEST_LINE = 2000
"""Characters of a line that are shown."""
LARGE = 512_000
"""Bytes from which a truncated read of more than NARROW lines advises to read less."""
NARROW = 200
SAMPLE = 1000
"""Bytes that are checked for binary content."""
MOST_CONTROL = 0.30
"""The part of control characters from which a file counts as binary."""

DOCUMENTS = frozenset({".ipynb", ".docx", ".xlsx"})
"""Files that hermes' own functions turn into text."""

EMPTY: dict[str, Any] = {
    "content": "",
    "total_lines": 0,
    "file_size": 0,
    "truncated": False,
    "is_binary": False,
    "is_image": False,
}
"""An empty read; hermes' answers to failed reads have these keys, too."""


def read_file(machine: MachineState, arguments: dict[str, Any]) -> dict[str, Any]:
    """Answer ``read_file``: ``path``, ``offset`` (a line, from 1), ``limit`` (lines)."""
    path = arguments.get("path", "")
    if not isinstance(path, str):
        return {"error": f"expected str, bytes or os.PathLike object, not {type(path).__name__}"}
    if "\0" in path:
        return {"error": "embedded null byte"}
    offset = max(1, integer(arguments.get("offset", 1), 1))
    limit = max(1, min(integer(arguments.get("limit", 500), 500), MOST_LINES))
    absolute = machine.resolve(path)
    if error := rules.device_error(path, absolute):
        return {"error": error}
    data = machine.files.read(absolute) if machine.files.is_file(absolute) else b""
    if data and (document := _document_text(absolute, data)) is not None:
        return _document_page(document, offset, limit, size=len(data))
    if error := rules.binary_error(path, absolute) or rules.secret_error(absolute):
        return {"error": error}
    repeated = machine.reads.repeated(path, absolute, offset, limit, machine.files)
    if repeated is not None:
        return repeated
    result = _read(machine, path, absolute, offset, limit)
    partial = offset > 1 or bool(result["truncated"])
    count = machine.reads.read(path, absolute, offset, limit, machine.files, partial=partial)
    if count > WARN_AT:
        return {
            "error": f"BLOCKED: You have read this exact file region {count} times in a row. The content has NOT changed. "
            "You already have this information. STOP re-reading and proceed with your task.",
            "path": path,
            "already_read": count,
        }
    if count == WARN_AT:
        result["_warning"] = (
            f"You have read this exact file region {count} times consecutively. The content has not changed since your last read. "
            "Use the information you already have. If you are stuck in a loop, stop reading and proceed with writing or responding."
        )
    return result


def page_of(data: bytes, offset: int, limit: int) -> dict[str, Any]:
    """Return what hermes shows of a text file's bytes: ``limit`` lines from line ``offset``."""
    end = offset + limit - 1
    total = data.count(b"\n")
    lines = data.split(b"\n")
    shown = b"\n".join(lines[offset - 1 : end]) + (b"\n" if len(lines) > end else b"")
    text = shown.decode(errors="replace")
    content = numbered(text.removeprefix("\ufeff") if offset == 1 else text, offset)
    result: dict[str, Any] = {
        "content": content,
        "total_lines": total,
        "file_size": len(data),
        "truncated": total > end,
    }
    if total > end:
        result["hint"] = f"Use offset={end + 1} to continue reading (showing {offset}-{end} of {total} lines)"
    result |= {"is_binary": False, "is_image": False}  # in hermes' order, which a model sees
    return _within_budget(result, offset, limit)


def numbered(text: str, first: int = 1) -> str:
    """Return text with hermes' line numbers, ``12|text``, long lines cut."""
    lines = (line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}... [truncated]" for line in text.split("\n"))
    return "\n".join(f"{number}|{line}" for number, line in enumerate(lines, first))


def _read(machine: MachineState, path: str, absolute: str, offset: int, limit: int) -> dict[str, Any]:
    if not path or not machine.files.is_file(absolute):
        return operations_of(machine).missing(path)
    data = machine.files.read(absolute)
    sample = data[:SAMPLE].decode(errors="replace")
    control = sum(ord(letter) < ord(" ") and letter not in "\n\r\t" for letter in sample)
    if sample and control / len(sample) > MOST_CONTROL:
        error = "Binary file - cannot display as text. Use appropriate tools to handle this file type."
        return {**EMPTY, "file_size": len(data), "is_binary": True, "error": error}
    return page_of(data, offset, limit)


def _within_budget(result: dict[str, Any], offset: int, limit: int) -> dict[str, Any]:
    """Cut a page to the characters that hermes gives at most, at the end of a line."""
    content = result["content"]
    if len(content) > MOST_CHARACTERS:
        kept = content[: content.rfind("\n", 0, MOST_CHARACTERS + 1)]
        lines = kept.count("\n") + 1
        result |= {"content": kept, "truncated": True, "truncated_by": "bytes", "next_offset": offset + lines}
        result["hint"] = (
            f"Output truncated at the {MOST_CHARACTERS:,}-char read budget after {lines} line(s) (showing lines {offset}-"
            f"{offset + lines - 1} of {result['total_lines']}). Use offset={offset + lines} to continue."
        )
    if result["file_size"] > LARGE and limit > NARROW and result["truncated"]:
        result["_hint"] = (
            f"This file is large ({result['file_size']:,} bytes). Consider reading only the section you need with offset and limit "
            "to keep context usage efficient."
        )
    return result


def _document_text(path: str, data: bytes) -> str | None:
    """Return the text of a document, or None if the file is none, or cannot be shown as one."""
    extension = posixpath.splitext(path)[1].lower()
    if extension not in DOCUMENTS:
        return None
    hermes = hermes_module("tools.read_extract")
    with tempfile.NamedTemporaryFile(suffix=extension) as file:
        file.write(data)
        file.flush()
        try:
            return str(hermes.extract_document_text(file.name))
        except hermes.ExtractionError:
            return None


def _document_page(text: str, offset: int, limit: int, *, size: int) -> dict[str, Any]:
    """Return a page of a document that was turned into text."""
    lines = text.splitlines()
    total, end = len(lines), offset + limit - 1
    page = "\n".join(lines[offset - 1 : end])
    result: dict[str, Any] = {
        "content": numbered(page, offset) if page else "",
        "total_lines": total,
        "file_size": size,
        "truncated": total > end,
        "extracted_document": True,
    }
    if result["truncated"]:
        result["hint"] = f"Use offset={end + 1} to continue reading (showing {offset}-{min(end, total)} of {total} lines)"
    return result
