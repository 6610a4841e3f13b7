"""A tool context for tests of a reward function: the methods of the real one on any sandbox, without thread or process.

Place in the flow: a test passes it as ``ctx`` to ``compute_reward``; the fixture ``tool_context`` creates and verifies one.

Source: the interface and the results are those of ``environments.tool_context``.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import tempfile
import time
from pathlib import Path
from typing import Any, cast

from hermes_env_shared import trees
from pytest_hermes_env.errors import CleanupFailed, UsageError, UseAfterCleanup, shorten
from pytest_hermes_env.failures import Problem, combined_error
from pytest_hermes_env.sandbox.fake_tools.rules import numbered
from pytest_hermes_env.sandbox.hermes_modules import hermes_name
from pytest_hermes_env.sandbox.machine import FILE_TIMEOUT_S, MAX_BYTES, NOT_REGULAR, Machine, NotReadable

DIRECTORY_TIMEOUT_S = 600
"""Seconds that downloading a directory may take, unless the caller says otherwise."""

BEGIN = "hermes-command-begins"
"""Printed before the output of a command that runs in the background."""

LOG_LINES = 1_000_000
"""Requested lines of a background process's output: all that hermes has."""

MOST_LINES = 2000
"""Lines that one call of ``read_file`` gives at most."""
EMPTY = {"content": "", "total_lines": 0, "file_size": 0, "truncated": False, "is_binary": False, "is_image": False}
"""An empty read; hermes' answers to failed reads have these keys, too."""

ABOUT_A_PAGE = frozenset({"hint", "_hint", "next_offset", "truncated_by"})
"""Keys of a result that only hold for one page of a file."""

NOT_TEXT: dict[str, frozenset[str]] = {
    "terminal": frozenset({"background", "timeout", "pty", "notify_on_complete", "watch_patterns"}),
    "process": frozenset({"timeout", "offset", "limit"}),
    "read_file": frozenset({"offset", "limit"}),
    "write_file": frozenset({"cross_profile"}),
    "patch": frozenset({"replace_all", "cross_profile"}),
    "search_files": frozenset({"limit", "offset", "context"}),
    "web_search": frozenset({"limit"}),
    "web_extract": frozenset({"urls", "char_limit"}),
    "browser_snapshot": frozenset({"full"}),
}
"""The arguments that are not text, of the tools that a fake sandbox answers: hermes is loaded only if one of them may be wrong."""
LISTS = frozenset({"urls", "watch_patterns"})

_NUMBERED_LINE = re.compile(r"^ *\d+\|", re.MULTILINE)


class _ForVerifier:
    """A machine whose files attribute reads and writes to the verifier."""

    def __init__(self, machine: Any) -> None:
        self._machine = machine

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._machine, name)
        if not callable(value):
            return value

        def as_verifier(*arguments: Any) -> Any:
            with self._machine.acting_as("verifier"):
                return value(*arguments)

        return as_verifier


class FakeToolContext:
    """Unrestricted access to one machine's tools for the code that verifies a rollout; works with and without an event loop.

    ``cleanups`` counts the clean-ups. Any other call after the first one raises, and `verify` raises again: a reward function may
    have swallowed the error.
    """

    def __init__(self, sandbox: Machine, task_id: str = "test-rollout") -> None:
        if not callable(getattr(sandbox, "call", None)):
            raise UsageError(
                "FakeToolContext requires a sandbox.\n"
                f"  seen      {type(sandbox).__name__} {shorten(repr(sandbox))}\n"
                "  fix       FakeToolContext(FakeSandbox()), or the fixture tool_context"
            )
        self.task_id = task_id
        self.cleanups = 0
        self._machine: Machine = sandbox if not hasattr(sandbox, "acting_as") else cast("Machine", _ForVerifier(sandbox))
        self._problems: list[Problem] = []

    def terminal(self, command: str, timeout: int = 180) -> dict[str, Any]:
        """Run a shell command; ``timeout`` is in seconds and has no upper limit.

        Returns ``{"exit_code": int, "output": str, ...}``.
        """
        self._in_use("terminal", command)
        if timeout > int(os.environ.get("TERMINAL_MAX_FOREGROUND_TIMEOUT") or 600):
            return self._terminal_in_background(command, timeout)
        return _as_dict(self._machine.call("terminal", {"command": command, "timeout": timeout}), of_terminal=True)

    def read_file(self, path: str, *, max_bytes: int = MAX_BYTES, timeout: int = FILE_TIMEOUT_S) -> dict[str, Any]:
        """Read a whole text file: ``content`` is its text, ``numbered_content`` hermes' view of it.

        A verifier may read a file any number of times. Returns ``{"error": ...}`` if it cannot be read: because it does not exist,
        is not a regular file, is larger than ``max_bytes``, or takes longer than ``timeout`` seconds.
        """
        self._in_use("read_file", path)
        path = _no_option(path)
        try:
            data: bytes | None = self._machine.read_bytes(path, max_bytes, timeout)
        except (IsADirectoryError, NotReadable) as error:
            return {"error": f"Cannot read {path}: {_reason(error)}"}
        except (OSError, ValueError):  # ValueError: a NUL in the path
            data = None
        page = _as_dict(self._machine.call("read_file", {"path": path, "offset": 1, "limit": MOST_LINES}))
        was_read_before = "already_read" in page or page.get("status") == "unchanged"
        if was_read_before and data is None:
            return {**EMPTY, "error": f"File not found: {path}"}
        if was_read_before and data is not None:
            page = {**EMPTY, "total_lines": data.count(b"\n"), "file_size": len(data), "truncated": True}
        elif not isinstance(page.get("content"), str) or page.get("error"):
            return page
        if data is None:  # a scripted read of a file that does not exist
            return {**page, "content": _NUMBERED_LINE.sub("", page["content"]), "numbered_content": page["content"]}
        return _whole(page, data.decode(errors="replace"))

    def write_file(self, path: str, content: str) -> dict[str, Any]:
        """Write a text file and create missing directories."""
        self._in_use("write_file", path)
        return _as_dict(self._machine.call("write_file", {"path": _no_option(path), "content": content}))

    def upload_file(self, local_path: str, remote_path: str) -> dict[str, Any]:
        """Copy a file of the host, byte for byte, into the sandbox.

        Returns ``{"exit_code": 0, "output": ..., "bytes": n}``, or an exit code other than 0 with the reason as output.
        """
        self._in_use("upload_file", local_path)
        return self._upload(Path(local_path), remote_path)

    def upload_dir(self, local_dir: str, remote_dir: str) -> list[dict[str, Any]]:
        """Copy every file below a directory of the host into the sandbox; one result per file."""
        self._in_use("upload_dir", local_dir)
        root = Path(local_dir)
        if not root.is_dir():
            return [{"exit_code": -1, "output": f"Local directory not found: {root}"}]
        targets = [(root / name, posixpath.join(remote_dir, Path(name).as_posix())) for name in trees.files(local_dir)]
        return [{"path": str(path), **self._upload(path, target)} for path, target in targets]

    def download_file(
        self, remote_path: str, local_path: str, *, max_bytes: int = MAX_BYTES, timeout: int = FILE_TIMEOUT_S
    ) -> dict[str, Any]:
        """Copy a regular file of the sandbox, byte for byte, to the host.

        Returns ``{"success": True, "bytes": n}`` or ``{"success": False, "error": reason}``; no partial file remains.
        ``max_bytes`` and ``timeout`` (seconds) limit the download.
        """
        self._in_use("download_file", remote_path)
        return self._download(remote_path, Path(local_path), max_bytes, timeout)

    def download_dir(
        self, remote_dir: str, local_dir: str, *, max_bytes: int = MAX_BYTES, timeout: int = DIRECTORY_TIMEOUT_S
    ) -> list[dict[str, Any]]:
        """Copy every file below a sandbox directory to the host; one result per file, never outside ``local_dir``.

        ``max_bytes`` and ``timeout`` (seconds) limit the download of all files together.
        """
        self._in_use("download_dir", remote_dir)
        try:
            names = self._machine.list_files(_no_option(remote_dir))
        except (OSError, ValueError) as error:
            return [{"success": False, "path": remote_dir, "error": f"Cannot list {remote_dir}: {_reason(error)}"}]
        root = Path(os.path.realpath(local_dir))
        root.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + timeout
        results: list[dict[str, Any]] = []
        for name in names:
            left = max_bytes - sum(result.get("bytes", 0) for result in results)
            seconds = max(0.0, deadline - time.monotonic())
            target = Path(os.path.realpath(root / name))
            if target.is_relative_to(root) and target != root:
                result = self._download(posixpath.join(remote_dir, name), target, left, seconds)
            else:
                result = {"success": False, "error": f"Refused: the listed name {name!r} leads outside {root}"}
            results.append({"path": name, **result})
        return results

    def search(self, query: str, path: str = ".") -> dict[str, Any]:
        """Search file contents by regular expression."""
        self._in_use("search", query)
        place = self._machine.cwd if path == "." else _no_option(path)
        return _as_dict(self._machine.call("search_files", {"pattern": query, "path": place}))

    def web_search(self, query: str) -> dict[str, Any]:
        """Search the web."""
        return self._tool("web_search", query=query)

    def web_extract(self, urls: list[str]) -> dict[str, Any]:
        """Fetch pages as text."""
        return self._tool("web_extract", urls=urls)

    def browser_navigate(self, url: str) -> dict[str, Any]:
        """Open a page in the rollout's browser."""
        return self._tool("browser_navigate", url=url)

    def browser_snapshot(self) -> dict[str, Any]:
        """Return the current page as an accessibility tree."""
        return self._tool("browser_snapshot")

    def call_tool(self, tool_name: str, arguments: dict[str, Any]) -> str:
        """Run any tool and return its result as text, as the agent would see it."""
        self._in_use("call_tool", tool_name)
        return self._machine.call(tool_name, coerced(tool_name, arguments))

    def cleanup(self) -> None:
        """Release the rollout's processes. Idempotent, never raises; what fails is raised by `verify`."""
        self.cleanups += 1
        if self.cleanups > 1:
            return
        try:
            self._machine.release()
        except Exception as error:  # noqa: BLE001 - a clean-up never raises
            text = (
                f"the sandbox of this tool context could not be released: {type(error).__name__}.\n"
                f"  seen      {shorten(str(error))}\n  fix       fix release() of the sandbox"
            )
            self._problems.append(Problem(error=CleanupFailed, text=text))

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems of this context so far."""
        return tuple(self._problems)

    def verify(self) -> None:
        """Raise the problems of this context in one error.

        Raises: used after its clean-up → UseAfterCleanup; its sandbox could not be released → CleanupFailed.
        """
        error = combined_error(self._problems, who="the tool context")
        if error is not None:
            raise error

    def _tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        self._in_use(name, *arguments.values())
        return _as_dict(self._machine.call(name, arguments))

    def _in_use(self, method: str, about: object = None) -> None:
        if not self.cleanups:
            return
        shown = "" if about is None else shorten(repr(about))
        problem = Problem(
            error=UseAfterCleanup,
            text=f"{method}({shown}) was called on a tool context that had been cleaned up.\n"
            f"  seen      {self.cleanups} {'cleanup' if self.cleanups == 1 else 'cleanups'} before; in a rollout, its sandbox no longer exists\n"
            "  fix       call cleanup() after the last use, for example in `finally`",
        )
        self._problems.append(problem)
        raise problem.exception()

    def _terminal_in_background(self, command: str, timeout: int) -> dict[str, Any]:
        """Run a command beyond hermes' foreground limit: start it in the background and wait for it.

        Where a login shell prints something before, it runs in a subshell after a marker line.
        """
        is_noisy = getattr(self._machine, "prints_at_login", False)
        text = f"echo {BEGIN}; (\n{command}\n)" if is_noisy else command
        started = _as_dict(self._machine.call("terminal", {"command": text, "background": True}), of_terminal=True)
        session = started.get("session_id")
        if not session:
            return started
        longest = int(os.environ.get("TERMINAL_TIMEOUT") or 180)
        left = float(timeout)
        while left > 0:
            before = time.monotonic()
            state = self._process("wait", session, timeout=max(1, int(left)))
            if state.get("status") != "timeout":
                output = str(self._process("log", session, limit=LOG_LINES).get("output") or state.get("output") or "")
                _, begun, after = output.partition(f"{BEGIN}\n")
                output = after if begun else output.removesuffix(BEGIN)
                return {"output": output.strip(), "exit_code": state.get("exit_code", -1), "error": state.get("error")}
            left -= max(time.monotonic() - before, longest)  # without a clock, a wait ends at once
        self._process("kill", session)
        return {"exit_code": 124, "output": "", "error": f"Command timed out after {timeout} seconds"}

    def _process(self, action: str, session: str, **arguments: Any) -> dict[str, Any]:
        return _as_dict(self._machine.call("process", {"action": action, "session_id": session, **arguments}))

    def _upload(self, local: Path, remote: str) -> dict[str, Any]:
        try:
            data = local.read_bytes()
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            return {"exit_code": -1, "output": f"Cannot read local file {local}: {error}"}
        try:
            self._machine.write_bytes(_no_option(remote), data)
        except (OSError, ValueError) as error:
            return {"exit_code": -1, "output": f"Cannot write {remote}: {_reason(error)}"}
        return {"exit_code": 0, "output": f"{len(data)} bytes to {remote}", "bytes": len(data)}

    def _download(self, remote: str, local: Path, max_bytes: int, timeout: float) -> dict[str, Any]:
        try:
            data = self._machine.read_bytes(_no_option(remote), max_bytes, timeout)
        except (OSError, ValueError) as error:
            return {"success": False, "error": f"Cannot read {remote}: {_reason(error)}"}
        try:
            _write_atomically(local, data)
        except (OSError, ValueError) as error:
            return {"success": False, "error": str(error)}
        return {"success": True, "bytes": len(data)}


def _whole(page: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the result for a whole file, from that for its first page."""
    if not page.get("truncated"):
        return {**page, "content": text, "numbered_content": page["content"]}
    kept = {name: value for name, value in page.items() if name not in ABOUT_A_PAGE}
    view = numbered(text.removeprefix("\ufeff"))
    return {**kept, "truncated": False, "content": text, "numbered_content": view}


def _as_dict(text: str, *, of_terminal: bool = False) -> dict[str, Any]:
    """Return any tool result as a dict."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, dict):
        return value
    return {"exit_code": -1, "output": text} if of_terminal else {"error": text}


def _no_option(path: str) -> str:
    """Return ``path`` in a form that no command parses as an option, like the real context."""
    return f"./{path}" if path.startswith("-") else path


def _reason(error: Exception) -> str:
    if isinstance(error, IsADirectoryError):
        return NOT_REGULAR
    return str(getattr(error, "strerror", None) or error)


def _write_atomically(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:32]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(partial).replace(path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


def coerced(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of the arguments with the types that ``tool`` declares, as hermes converts them before every call.

    Models write ``"10"`` for 10, and one URL for a list of URLs. What cannot be converted stays as it is.
    """
    copy = dict(arguments)
    given = {name: copy[name] for name in NOT_TEXT.get(tool, ()) if name in copy}
    if not any(isinstance(value, str) or (name in LISTS and not isinstance(value, list)) for name, value in given.items()):
        return copy
    converted: dict[str, Any] = hermes_name("model_tools", "coerce_tool_args")(tool, copy)
    return converted
