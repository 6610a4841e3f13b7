"""``read_file``, ``write_file``, ``patch`` and ``search_files``: hermes' own functions, on the files of an in-memory machine.

A machine has a copy of hermes' module whose functions find this machine where hermes' own find the host: its files, its directory,
the times of its files, and the memory of what was read.

Source: hermes-agent 0.19, tools/file_tools.py, tools/file_state.py and tools/registry.py.
"""

from __future__ import annotations

import json
import os
import posixpath
import tempfile
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any

from pytest_hermes_env.sandbox.fake_tools.machine_state import MachineState
from pytest_hermes_env.sandbox.files import HOME
from pytest_hermes_env.sandbox.hermes_modules import hermes_module, with_names

MOST_CHARACTERS = 100_000
"""Most characters of one read, line numbers included: hermes' default."""
DOCUMENTS = frozenset({".ipynb", ".docx", ".xlsx"})
"""Files that hermes' own functions turn into text; they read them from a disk."""


class FileTools:
    """The file tools of one machine.

    ``task_id``: whose reads hermes remembers. It can be asked to forget those of a task (`reset_file_dedup`).
    """

    def __init__(self, machine: MachineState, task_id: str = "") -> None:
        self._machine = machine
        self._task_id = task_id or "default"
        memory: dict[str, Any] = {"_read_tracker": {}} if not task_id else {}
        self._names = with_names("tools.file_tools", {**self._seen(), **memory})
        states = with_names("tools.file_state", {"os": self._names["os"]})
        states["_registry"] = states["FileStateRegistry"]()
        self._names["file_state"] = SimpleNamespace(**states)
        self._names["_read_tracker"].pop(self._task_id, None)

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Answer a file tool as hermes' registry does."""
        path = arguments.get("path")
        try:
            if name == "read_file" and isinstance(path, str) and posixpath.splitext(path)[1].lower() in DOCUMENTS:
                return self._read_document(path, arguments)
            return str(self._names[f"_handle_{name}"](arguments, task_id=self._task_id))
        except Exception as error:  # noqa: BLE001 - whatever hermes' function raises is the model's result
            return json.dumps({"error": f"[TOOL_ERROR] Tool execution failed: {type(error).__name__}: {error}"})

    def other_tool(self) -> None:
        """Note a tool call between reads: a loop of reads is broken."""
        self._names["notify_other_tool_call"](self._task_id)

    def _read_document(self, path: str, arguments: dict[str, Any]) -> str:
        """Read a document from a disk, where it is for the time of the call."""
        machine, resolve = self._machine, self._names["_resolve_path_for_task"]
        place = machine.resolve(path)
        with tempfile.NamedTemporaryFile(suffix=posixpath.splitext(path)[1]) as file:
            if machine.files.is_file(place):
                file.write(machine.files.read(place))
                file.flush()
                self._names["_resolve_path_for_task"] = lambda *_: PurePosixPath(file.name)
            try:
                return str(self._names["_handle_read_file"](arguments, task_id=self._task_id))
            finally:
                self._names["_resolve_path_for_task"] = resolve

    def _seen(self) -> dict[str, Any]:
        """Return what hermes' functions see of this machine, by the names that they use."""
        machine = self._machine

        def changed_at(path: str) -> int:
            if not machine.files.exists(path):
                raise FileNotFoundError(path)
            return machine.files.changed_at(path)

        paths = {**vars(posixpath), "getmtime": changed_at, "realpath": machine.resolve}
        operations = hermes_module("pytest_hermes_env.sandbox.fake_tools.operations")
        return {
            "os": SimpleNamespace(**{**vars(os), "path": SimpleNamespace(**paths), "readlink": _no_link}),
            "_patch_failure_tracker": {},
            "_max_read_chars_cached": MOST_CHARACTERS,
            "_authoritative_workspace_root": lambda _: machine.session.cwd,
            "_check_cross_profile_path": lambda path, _: machine.resolve(path) and None,
            "_expand_tilde": lambda path: HOME + path[1:] if path == "~" or path.startswith("~/") else path,
            "_get_file_ops": lambda _: operations.MemoryFileOperations(machine),
            "_get_hermes_config_resolved": lambda: None,
            "_mark_verification_stale": lambda *_, **__: None,
            "_resolve_base_dir": lambda *_, **__: machine.session.cwd,
            "_resolve_path_for_task": lambda path, _="": PurePosixPath(machine.resolve(path)),
            "_uses_container_paths": lambda _: True,
            "get_read_block_error": operations.read_block_error,
            "normalize_read_pagination": operations.page_of,
            "redact_sensitive_text": lambda text, **_: text,
        }


def _no_link(path: str) -> str:
    """Say that a path is not a link: `MachineState.resolve` follows links."""
    raise OSError(path)
