"""A machine in the local sandbox for use without a rollout: hermes' own tools, and the files as bytes.

Commands in the sandbox read and write the files: a link of the agent to a path outside cannot make the test process write there.

Place in the flow: `LocalSandbox.machine` creates it for a `FakeToolContext`.
"""

from __future__ import annotations

import errno
import json
import os
import posixpath
import signal
import subprocess
from pathlib import Path
from typing import Any, Protocol

from hermes_env_shared.processes import mark_commands
from pytest_hermes_env.sandbox.machine import FILE_TIMEOUT_S, MAX_BYTES, NOT_REGULAR, NotReadable, too_large

__all__ = ["LOCAL_TOOLS", "LocalMachine", "LocalRollout"]

LOCAL_TOOLS = frozenset({"terminal", "process", "read_file", "write_file", "patch", "search_files", "todo"})
"""Tools that hermes itself runs here: those of the toolsets ``terminal`` and ``file``, and the to-do list."""

_READ = f"""\
if [ -e "$1" ] && [ ! -f "$1" ] && [ ! -d "$1" ]; then echo '{NOT_REGULAR}' >&2; exit 1; fi
exec head -c "$2" < "$1"
"""

_NUMBERS = {os.strerror(number): number for number in errno.errorcode}


class _Sandbox(Protocol):
    """What a machine needs of its `LocalSandbox`."""

    @property
    def home(self) -> Path: ...

    @property
    def shell(self) -> Path: ...

    def open(self, task_id: str) -> str: ...

    def release(self, task_id: str) -> None: ...

    def answer_scripted(self, task_id: str, name: str, arguments: dict[str, Any]) -> str: ...


class LocalRollout:
    """One rollout's sandbox: hermes runs the terminal and file tools; scripted answers serve the others."""

    def __init__(self, sandbox: _Sandbox, task_id: str) -> None:
        self._sandbox = sandbox
        self.task_id = task_id

    def call(self, name: str, arguments: dict[str, Any]) -> str | None:
        """Return None for the terminal and file tools, which hermes runs, and the scripted result of any other tool."""
        if name in LOCAL_TOOLS:
            self._sandbox.open(self.task_id or "default")
            return None
        return self._sandbox.answer_scripted(self.task_id, name, arguments)


class LocalMachine(LocalRollout):
    """The machine of one task_id without a rollout: it calls hermes' own tools itself. It starts with the first call."""

    prints_at_login = True

    @property
    def directory(self) -> str:
        """The initial directory of the session, created on first use."""
        return self._sandbox.open(self.task_id)

    @property
    def cwd(self) -> str:
        """The session's directory: where relative paths lead."""
        from tools.terminal_tool import get_session_cwd  # noqa: PLC0415 - hermes is heavy

        directory = self.directory
        current = get_session_cwd(self.task_id)
        return current if current and os.path.isdir(current) else directory

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Return the result of one tool call as text. Raises: an unscripted tool → UnexpectedToolCall."""
        answer = super().call(name, arguments)
        if answer is not None:
            return answer
        from model_tools import handle_function_call  # noqa: PLC0415 - hermes is heavy

        with mark_commands(self.directory):
            result = handle_function_call(name, dict(arguments), task_id=self.task_id)
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)

    def read_bytes(self, path: str, max_bytes: int = MAX_BYTES, timeout: float = FILE_TIMEOUT_S) -> bytes:
        """Return a file's bytes. Raises: it does not exist → OSError; it is a FIFO, too large or too slow → NotReadable."""
        data = self._run(path, _READ, self._absolute(path), str(max_bytes + 1), timeout=timeout)
        if len(data) > max_bytes:
            raise too_large(path, max_bytes)
        return data

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file and create missing directories. Raises: it cannot be written → OSError."""
        place = self._absolute(path)
        self._run(path, 'mkdir -p -- "$2" && cat > "$1"', place, posixpath.dirname(place), given=data)

    def list_files(self, directory: str) -> list[str]:
        """Return the sorted names of all files below a directory, relative to it. Raises: the directory does not exist → OSError."""
        listing = self._run(directory, 'cd -- "$1" && find . -type f -print0', self._absolute(directory))
        return sorted(os.fsdecode(name).removeprefix("./") for name in listing.split(b"\0") if name)

    def release(self) -> None:
        """Kill the processes of the session, remove it from hermes, and remove its directory."""
        self._sandbox.release(self.task_id)

    def _absolute(self, path: str) -> str:
        """Return the absolute path: ``~`` is the home of commands, relative paths begin at the session's directory."""
        if path == "~" or path.startswith("~/"):
            path = f"{self._sandbox.home}{path[1:]}"
        return os.path.join(self.cwd, path)

    def _run(self, path: str, script: str, *arguments: str, given: bytes = b"", timeout: float = FILE_TIMEOUT_S) -> bytes:
        """Run a script in the sandbox and return its output. Raises: it failed → OSError with the command's reason."""
        words = [str(self._sandbox.shell), "-c", script, "bash", *arguments]
        with subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C"},
            cwd=self.directory,
            start_new_session=True,
        ) as process:
            try:
                output, errors = process.communicate(given, timeout)
            except subprocess.TimeoutExpired as error:
                os.killpg(process.pid, signal.SIGKILL)
                reason = f"it takes longer than {timeout:g} seconds; timeout= raises the limit"
                raise NotReadable(errno.ETIMEDOUT, reason, path) from error
        if process.returncode != 0:
            reason = os.fsdecode(errors).strip().rpartition(": ")[2]
            kind = NotReadable if reason == NOT_REGULAR else OSError
            raise kind(_NUMBERS.get(reason, errno.EIO), reason or "it could not be done", path)
        return output
