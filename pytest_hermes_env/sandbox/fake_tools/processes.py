"""``process``: the background sessions of a machine.

The output of a command that ran in memory is complete at once, and the session has ended; a session whose answer is scripted with
``timed_out`` runs until it is killed. Waiting for these takes no time. A real process runs in the machine's cell.

Source: hermes-agent 0.19, tools/process_registry.py.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_hermes_env.sandbox.fake_tools.arguments import integer
from pytest_hermes_env.sandbox.fake_tools.output import without_escapes
from pytest_hermes_env.sandbox.real_lines import RealProcess

__all__ = ["Process", "Processes"]

FIRST_PID = 4001
TERMINATED = -15
POLL_S = 0.02
END_OF_INPUT = ""
_ACTIONS = ("poll", "log", "wait", "kill", "write", "submit", "close")


@dataclass(kw_only=True)
class Process:
    """One background session. ``exit_code`` is None while it runs. ``real`` is the process of a real line."""

    identity: str
    pid: int
    command: str
    cwd: str
    output: str
    exit_code: int | None
    pty: bool = False
    notify_on_complete: bool = False
    watch_patterns: tuple[str, ...] = ()
    started_at: float = field(default_factory=time.time)
    completion_reason: str = "exited"
    termination_source: str = ""
    real: RealProcess | None = None

    def refresh(self) -> None:
        """Bring the session of a real process up to date."""
        if self.real is not None and self.exit_code is None:
            self.real.poll()
            self.output, self.exit_code = without_escapes(self.real.output), self.real.exit_code

    @property
    def status(self) -> str:
        """What hermes calls its state."""
        return "running" if self.exit_code is None else "exited"

    @property
    def is_real_and_runs(self) -> bool:
        """Whether a real process runs for it."""
        return self.real is not None and self.exit_code is None

    @property
    def end(self) -> dict[str, Any]:
        """How it ended."""
        return {
            "exit_code": self.exit_code,
            "completion_reason": self.completion_reason,
            "termination_source": self.termination_source,
        }


class Processes:
    """The background sessions of one machine."""

    def __init__(self) -> None:
        self._sessions: dict[str, Process] = {}

    def copy(self) -> Processes:
        """Return independent sessions in the same state, without real processes that run: another machine does not have them."""
        twin = Processes()
        held = {identity: session for identity, session in self._sessions.items() if not session.is_real_and_runs}
        twin._sessions = {identity: replace(session) for identity, session in held.items()}
        return twin

    def start(self, command: str, *, pid: int | None = None, **fields: Any) -> Process:
        """Take a session. ``pid``: of a real process; ``fields``: those of `Process` besides its names."""
        number = len(self._sessions)
        session = Process(identity=f"proc_{number + 1:012x}", pid=pid or FIRST_PID + number, command=command, **fields)
        self._sessions[session.identity] = session
        return session

    def kill_all(self) -> None:
        """End every session that runs."""
        for session in self._sessions.values():
            if session.exit_code is None:
                _kill(session, "kill_all")

    def call(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Answer ``process``: ``action``, ``session_id``, and what the action takes."""
        action = arguments.get("action", "")
        for one in self._sessions.values():
            one.refresh()
        if action == "list":
            ordered = sorted(self._sessions.values(), key=lambda session: session.exit_code is not None)
            return {"processes": [_entry(session) for session in ordered]}
        if action not in _ACTIONS:
            return {"error": f"Unknown process action: {action}. Use: list, poll, log, wait, kill, write, submit, close"}
        identity = arguments.get("session_id")
        if identity is None or identity == "":
            return {"error": f"session_id is required for {action}"}
        session = self._sessions.get(str(identity))
        if session is None:
            return {"status": "not_found", "error": f"No process with ID {identity}"}
        if action == "poll":
            return _poll(session)
        if action == "log":
            return _log(session, integer(arguments.get("offset", 0), 0), integer(arguments.get("limit", 200), 200))
        if action == "wait":
            return _wait(session, integer(arguments.get("timeout"), 0))
        if action == "kill":
            return _kill(session, "process.kill")
        return _feed(session, action, str(arguments.get("data", "")))


def _entry(session: Process) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "session_id": session.identity,
        "command": session.command[:200],
        "cwd": session.cwd,
        "pid": session.pid,
        "started_at": time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(session.started_at)),
        "uptime_seconds": int(time.time() - session.started_at),
        "status": session.status,
        "output_preview": session.output[-200:],
    }
    if session.watch_patterns:
        entry["watch_patterns"] = list(session.watch_patterns)
        entry["watch_hit"] = any(pattern in session.output for pattern in session.watch_patterns)
    if session.notify_on_complete:
        entry["notify_on_complete"] = True
    if session.exit_code is not None:
        entry["exit_code"] = session.exit_code
    return entry


def _poll(session: Process) -> dict[str, Any]:
    state = {
        "session_id": session.identity,
        "command": session.command,
        "status": session.status,
        "pid": session.pid,
        "uptime_seconds": int(time.time() - session.started_at),
        "output_preview": session.output[-1000:],
    }
    return state if session.exit_code is None else {**state, **session.end}


def _log(session: Process, offset: int, limit: int) -> dict[str, Any]:
    lines = session.output.splitlines()
    shown = lines[-limit:] if offset == 0 and limit > 0 else lines[offset : offset + limit]
    return {
        "session_id": session.identity,
        "command": session.command,
        "status": session.status,
        "output": "\n".join(shown),
        "total_lines": len(lines),
        "showing": f"{len(shown)} lines",
    }


def _wait(session: Process, timeout: int) -> dict[str, Any]:
    most = integer(os.environ.get("TERMINAL_TIMEOUT", "180"), 180)
    note = f"Requested wait of {timeout}s was clamped to configured limit of {most}s" if timeout > most else ""
    deadline = time.monotonic() + min(timeout or most, most)
    while session.is_real_and_runs and time.monotonic() < deadline:
        time.sleep(POLL_S)
        session.refresh()
    if session.exit_code is not None:
        result = {"status": "exited", "command": session.command, **session.end, "output": session.output[-2000:]}
        return {**result, "timeout_note": note} if note else result
    note = note or f"Waited {timeout or most}s, process still running"
    return {"status": "timeout", "command": session.command, "output": session.output[-1000:], "timeout_note": note}


def _kill(session: Process, source: str) -> dict[str, Any]:
    output = session.output[-2000:]
    if session.exit_code is not None:
        return {"status": "already_exited", "command": session.command, **session.end, "output": output}
    if session.real is not None:
        session.real.kill()
    session.exit_code, session.completion_reason, session.termination_source = TERMINATED, "killed", source
    return {
        "status": "killed",
        "session_id": session.identity,
        "completion_reason": session.completion_reason,
        "termination_source": session.termination_source,
        "output": output,
    }


def _feed(session: Process, action: str, data: str) -> dict[str, Any]:
    """Answer what is sent to a session; only a real process reads it."""
    if session.exit_code is not None:
        return {"status": "already_exited", "error": "Process has already finished"}
    if not session.pty:
        return {"status": "error", "error": "Process stdin not available (non-local backend or stdin closed)"}
    if session.real is not None:
        session.real.write(END_OF_INPUT if action == "close" else f"{data}\n" if action == "submit" else data)
    if action == "close":
        return {"status": "ok", "message": "EOF sent"}
    return {"status": "ok", "bytes_written": len(data) + (action == "submit")}
