"""The sandbox of a record: a machine with its files, and what a verifier did with them that is not stored.

Place in the flow: `rescoring` computes a reward on it.
"""

from __future__ import annotations

import posixpath
import time
from collections.abc import Collection, Iterator
from typing import Any

from hermes_env_shared.rollout_record import Record, World, blob_path
from pytest_hermes_env.errors import shorten
from pytest_hermes_env.play.tool_backend import SYSTEM_DIRECTORIES
from pytest_hermes_env.records.asked_in_texts import host_paths, may_read, read_by_text, set_in
from pytest_hermes_env.records.reading import Line
from pytest_hermes_env.records.unstored import Unstored

OF_FILES = frozenset({"terminal", "process", "read_file", "write_file", "patch", "search_files", "todo"})
"""Tools whose answer follows from the sandbox's files."""

_READING = frozenset({"read_file", "search_files"})


def restored(world: World, line: Line, unstored: Unstored) -> Any:
    """Return a machine with the files of a world: contents, modes and ages. What was not kept is there, empty, so that reads are seen."""
    from pytest_hermes_env.sandbox.fake import FakeSandbox  # noqa: PLC0415 - heavy
    from pytest_hermes_env.sandbox.files import Node  # noqa: PLC0415

    machine = FakeSandbox(cwd=world.directory or "/workspace", unscripted="not found", allow_leftovers=True)
    now = time.time_ns()
    has_files = line.files.is_dir() or all(file.kind != "file" for file in world.files)
    if not has_files:
        unstored.note("files of the sandbox:", f"there is no directory {line.files}: copy it with the records")
    for file in world.files:
        facts: dict[str, Any] = {
            "kind": file.kind,
            "mode": file.mode,
            "changed_ns": now - int(file.age_s * 1e9),
            "target": file.target,
        }
        if file.kind == "file":
            try:
                facts["data"] = blob_path(line.files, file.sha256).read_bytes()
            except OSError:
                if has_files:
                    unstored.note("file of the sandbox", f"{file.path}: {line.files} does not have it")
        machine.files.party = file.by
        machine.files.take_over({posixpath.join(machine.files.cwd, file.path): Node(**facts)})
    machine.files.party = "environment"
    machine.go_on(world.session_directory, world.variables)
    for missing in world.unkept:
        if missing.path and not machine.files.exists(missing.path):
            machine.files.take_over({posixpath.join(machine.files.cwd, missing.path): Node(kind="file", changed_ns=now)})
    return machine


class WatchedContext:
    """Made by `on`: a FakeToolContext that also notes what its verifier asks for and no record stores."""

    @staticmethod
    def on(machine: Any, record: Record, unstored: Unstored) -> Any:
        """Return the context of a restored machine."""
        from pytest_hermes_env.sandbox.context import FakeToolContext  # noqa: PLC0415 - heavy

        world = record.world

        class Watched(FakeToolContext):
            def _in_use(self, method: str, about: object = None) -> None:
                super()._in_use(method, about)
                if world is None:
                    unstored.note("sandbox", "which was not kept")
                elif whole := next((one.why for one in world.unkept if not one.path), ""):
                    unstored.note("sandbox", f": {whole}")
                if method in {"upload_file", "upload_dir"}:
                    unstored.note_host_file(str(about))

            def look(self) -> None:
                """Note what the verifier read and ran."""
                for what, name in _seen(machine, kept := world or World()):
                    if what != "environment variable" or name not in kept.variables:
                        unstored.note(what, name)

        return Watched(machine, task_id=record.id)


def _seen(machine: Any, world: World) -> Iterator[tuple[str, str]]:
    """Yield what the verifier of a machine used that is not stored: kind and name."""
    root = machine.files.cwd
    unkept = {posixpath.join(root, one.path): one.why for one in world.unkept if one.path}
    unkept |= dict.fromkeys(_links_out(world, root), "it is a link out of the sandbox")
    for read in machine.files.reads:
        if read.reader != "verifier":
            continue
        lost = next((path for path in unkept if read.path == path or read.path.startswith(f"{path}/")), None)
        if lost is not None and read.written_by != "verifier":
            yield "file of the sandbox", f"{read.path}, which was not kept: {unkept[lost]}"
        elif not read.written_by and not _is_inside(read.path, root) and not read.path.startswith(SYSTEM_DIRECTORIES):
            yield "file outside of the sandbox", read.path
    commands = []
    for call in machine.calls:
        if call.name not in OF_FILES:
            yield "tool", f"{call.name}, whose answer was not kept"
        path = str(call.arguments.get("path") or "") if call.name in _READING else ""
        if path.startswith("/") and not _is_inside(posixpath.normpath(path), root) and not machine.files.exists(path):
            yield "file outside of the sandbox", path
        if call.name == "terminal":
            command = str(call.arguments.get("command") or "")
            yield from _of_text(command, machine, is_shell=True)
            commands.append(command)
            if unkept and may_read(command, unkept):
                names = (posixpath.relpath(path, root) for path in unkept)
                yield "files of the sandbox", f"which were not kept, and a command may read: {shorten(', '.join(names))}"
    for line in machine.refused:
        yield "command", str(line)
    for path, node in machine.files.nodes.items():
        if node.kind == "file" and node.party == "verifier" and node.data and b"\0" not in node.data[:1000]:
            text = node.data.decode(errors="replace")
            is_shell = path.endswith((".sh", ".bash")) or text.startswith(("#!/bin/sh", "#!/bin/bash", "#!/usr/bin/env bash"))
            if is_shell or path.endswith((".py", ".js", ".rb", ".pl")):
                started = (command for command in commands if posixpath.basename(path) in command)
                given = set[str]().union(*map(set_in, started))  # a variable that any other command sets is not the program's
                yield from _of_text(text, machine, is_shell=is_shell, given=given)


def _links_out(world: World, root: str) -> Iterator[str]:
    """Yield the links that lead out of the sandbox, but for those to the system's own files."""
    for file in world.files:
        place = posixpath.join(root, file.path)
        to = posixpath.normpath(posixpath.join(posixpath.dirname(place), file.target))
        if file.kind == "link" and not _is_inside(to, root) and not to.startswith(SYSTEM_DIRECTORIES):
            yield place


def _of_text(text: str, machine: Any, *, is_shell: bool, given: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    yield from read_by_text(text, is_shell=is_shell, given=given)
    for path in host_paths(text):
        if path == ".." or not (_is_inside(path, machine.files.cwd) or machine.files.exists(path)):
            yield "file outside of the sandbox", path


def _is_inside(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}/")
