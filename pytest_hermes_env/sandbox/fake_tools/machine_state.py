"""The state that the tools of one fake sandbox share: files, the session, background processes, and what each tool remembers.

``process`` answers from a register of hermes' own. The output of a command that ran in memory is complete at once, and the session has ended; a session whose answer is scripted with
``timed_out`` runs until it is killed. Waiting for these takes no time. A real process runs in the machine's cell.

Source: hermes-agent 0.19, tools/process_registry.py.
"""

from __future__ import annotations

import functools
import json
import os
import posixpath
import queue
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from pytest_hermes_env.sandbox.files import Files
from pytest_hermes_env.sandbox.hermes_modules import with_names
from pytest_hermes_env.sandbox.real_lines import RealLines, RealProcess
from pytest_hermes_env.sandbox.simple_commands import FIRST_VARIABLES

FIRST_PID = 4001
POLL_S = 0.02


class Processes:
    """The background sessions of one machine. hermes' module is loaded with the first one."""

    def __init__(self) -> None:
        self._skipped_s = 0.0
        self._sessions: list[Any] = []

    @functools.cached_property
    def _hermes(self) -> dict[str, Any]:
        """hermes' module with a register of this machine, which knows nothing of the host's processes and disk."""
        names = with_names(
            "tools.process_registry",
            {
                "os": SimpleNamespace(getenv=os.getenv),
                "time": SimpleNamespace(**{**vars(time), "monotonic": lambda: time.monotonic() + self._skipped_s}),
                "_redact_process_result": lambda result: result,
            },
        )
        names["process_registry"] = registry = object.__new__(names["ProcessRegistry"])
        vars(registry).update(
            _running={},
            _finished={},
            _lock=threading.Lock(),
            _completion_consumed=set(),
            _poll_observed=set(),
            completion_queue=queue.Queue(),
            _refresh_detached_session=self._refreshed,
            _write_checkpoint=lambda: None,
        )
        return names

    def start(self, command: str, *, real: RealProcess | None, pty: bool, exit_code: int | None, **fields: Any) -> Any:
        """Take a session. ``exit_code``: None while it runs; ``fields``: others of hermes' ``ProcessSession``."""
        number = int(self._sessions[-1].id.removeprefix("proc_"), 16) if self._sessions else 0
        handle = self._handle(real)
        session = self._hermes["ProcessSession"](
            id=f"proc_{number + 1:012x}",
            command=command,
            pid=real.number if real else FIRST_PID + number,
            started_at=time.time(),
            env_ref=handle,
            exited=exit_code is not None,
            exit_code=exit_code,
            _pty=handle if pty else None,
            _completion_event=handle.event,
            **fields,
        )
        self._sessions.append(session)
        registry = self._hermes["process_registry"]
        (registry._finished if session.exited else registry._running)[session.id] = session  # noqa: SLF001 - hermes' own names
        return self._refreshed(session)

    def kill_all(self) -> None:
        """End every session that runs."""
        for session in self._sessions:
            self._hermes["process_registry"].kill_process(session.id, source="kill_all")

    def call(self, arguments: dict[str, Any]) -> str:
        """Answer ``process``: ``action``, ``session_id``, and what the action takes."""
        try:
            return str(self._hermes["_handle_process"](arguments))
        except TypeError as error:  # an argument that is not a number, as hermes' registry answers it
            return json.dumps({"error": f"[TOOL_ERROR] Tool execution failed: TypeError: {error}"})

    def _refreshed(self, session: Any) -> Any:
        """Bring a session up to date, and return it; None stands for none."""
        if session is None:
            return None
        real = session.env_ref.real
        if real is not None and not session.exited:
            real.poll()
            vars(session).update(output_buffer=real.output, exit_code=real.exit_code, exited=real.exit_code is not None)
            if session.exited:
                self._hermes["process_registry"]._move_to_finished(session)  # noqa: SLF001
        vars(session).update(_watch_hits=sum(pattern in session.output_buffer for pattern in session.watch_patterns))
        return session

    def _handle(self, real: RealProcess | None) -> SimpleNamespace:
        """Return what hermes writes to, waits for again and again until its time is over, and ends a session with.

        Without a real process nothing happens, and waiting takes no time.
        """
        write = real.write if real is not None else lambda _: None

        def wait(timeout: float) -> None:
            if real is None:
                self._skipped_s += timeout
            else:
                time.sleep(min(timeout, POLL_S))

        def kill(*_: object, **__: object) -> None:
            if real is not None:
                real.kill()

        event = SimpleNamespace(wait=wait, set=lambda: None)
        return SimpleNamespace(real=real, event=event, write=write, sendeof=lambda: write(b""), terminate=kill, execute=kill)


@dataclass(frozen=True, kw_only=True)
class Session:
    """What lasts from one command line to the next: the directory and the exported variables."""

    cwd: str
    variables: Mapping[str, str] = field(default_factory=lambda: FIRST_VARIABLES)


@dataclass(kw_only=True)
class MachineState:
    """The state of one in-memory machine.

    ``home`` is the initial directory of rollouts. ``real`` runs lines in real bash. ``aliases``: directories of the host that map to ``home``.
    ``todos``: the to-do list. ``page``: the address of the page that the browser shows.
    """

    files: Files
    session: Session
    home: str
    real: RealLines
    processes: Processes = field(default_factory=Processes)
    aliases: tuple[str, ...] = ()
    todos: list[dict[str, str]] = field(default_factory=list)
    page: str = ""

    def copy(self) -> MachineState:
        """Return an independent machine in the same state, without background sessions."""
        files, todos = self.files.copy(), [dict(item) for item in self.todos]
        return replace(self, files=files, real=self.real.copy(files), processes=Processes(), todos=todos)

    def alias(self, directory: str) -> None:
        """Map a directory of the host to ``home``."""
        self.aliases = (*self.aliases, directory)
        self.real.link(directory, self.home)

    def synchronize(self) -> None:
        """Exchange changes of files with processes that run in the background."""
        self.real.synchronize(self.session.cwd)

    def resolve(self, path: str) -> str:
        """Return the absolute path that a tool call's path leads to; relative and empty ones begin at the session's directory.

        Raises: a NUL in the path → ValueError.
        """
        if "\0" in path:
            raise ValueError("embedded null byte")
        return self.files.follow(self.translated(path) or ".", self.session.cwd)

    def translated(self, path: str) -> str:
        """Return ``path`` with an aliased directory at its beginning replaced by ``home``."""
        for alias in self.aliases:
            if path == alias or path.startswith(f"{alias}/"):
                return posixpath.normpath(self.home + path[len(alias) :])
        return path
