"""``process``: the background sessions of a machine, in a register of hermes' own.

The output of a command that ran in memory is complete at once, and the session has ended; a session whose answer is scripted with
``timed_out`` runs until it is killed. Waiting for these takes no time. A real process runs in the machine's cell.

Source: hermes-agent 0.19, tools/process_registry.py.
"""

from __future__ import annotations

import functools
import json
import os
import queue
import threading
import time
from types import SimpleNamespace
from typing import Any

from pytest_hermes_env.sandbox.hermes_modules import with_names
from pytest_hermes_env.sandbox.real_lines import RealProcess

__all__ = ["Processes"]

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
        handle = _handle(real)
        session = self._hermes["ProcessSession"](
            id=f"proc_{number + 1:012x}",
            command=command,
            pid=real.number if real else FIRST_PID + number,
            started_at=time.time(),
            env_ref=handle,
            exited=exit_code is not None,
            exit_code=exit_code,
            _pty=handle if pty else None,
            _completion_event=self._event(handle),
            **fields,
        )
        self._take(session)
        return session

    def kill_all(self) -> None:
        """End every session that runs."""
        for session in self._sessions:
            self._hermes["process_registry"].kill_process(session.id, source="kill_all")

    def call(self, arguments: dict[str, Any]) -> str:
        """Answer ``process``: ``action``, ``session_id``, and what the action takes."""
        try:
            return str(self._hermes["_handle_process"](arguments))
        except TypeError as error:  # an argument that is no number, as hermes' registry answers it
            return json.dumps({"error": f"[TOOL_ERROR] Tool execution failed: TypeError: {error}"})

    def _take(self, session: Any) -> None:
        self._sessions.append(session)
        registry = self._hermes["process_registry"]
        (registry._finished if session.exited else registry._running)[session.id] = session  # noqa: SLF001 - hermes' own names
        self._refreshed(session)

    def _refreshed(self, session: Any) -> Any:
        """Bring a session up to date, and return it; None is no session."""
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

    def _event(self, handle: SimpleNamespace) -> SimpleNamespace:
        """Return what hermes waits for, again and again until its time is over."""

        def wait(timeout: float) -> None:
            if handle.real is None:
                self._skipped_s += timeout
            else:
                time.sleep(min(timeout, POLL_S))

        return SimpleNamespace(wait=wait, set=lambda: None)


def _handle(real: RealProcess | None) -> SimpleNamespace:
    """Return what hermes writes to, and ends a session with. Without a real process nothing happens."""
    write = real.write if real is not None else lambda _: None
    kill = real.kill if real is not None else lambda: None
    return SimpleNamespace(
        real=real,
        write=write,
        sendeof=lambda: write(b""),
        terminate=lambda **_: kill(),
        execute=lambda *_, **__: kill(),
    )
