"""The tools that a reward function can use, in the same sandbox as the agent.

Place in the flow: `HermesAgentBaseEnv` opens one `ToolContext` per rollout, passes it to ``compute_reward`` and then cleans it
up. An environment that runs the loop itself (in ``evaluate``) does the same, with ``cleanup`` in a ``finally``.

Source: the interface is that of hermes-agent's former ``environments.tool_context``.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import json
import re
import time
from collections.abc import Callable
from typing import Any, TypeVar

from environments import agent_loop  # first: explains shadowed modules
from environments.loop.messages import multimodal_text
from environments.sandbox import file_transfer, nonblocking_calls
from environments.sandbox.isolation import close_sandbox, has_run_commands, in_sandbox, open_sandbox, run_uncut
from hermes_env_shared.hermes_names import hermes_name, tool_name

# isort: split
from agent.redact import redact_sensitive_text
from model_tools import handle_function_call
from tools.tool_output_limits import get_max_line_length

__all__ = ["ContextClosedError", "ToolContext"]

T = TypeVar("T")

_NUMBERED_LINE = re.compile(r"^ *\d+\|", re.MULTILINE)
_MASK = re.compile(r"\*\*\*|\.\.\.|…|redacted", re.IGNORECASE)
"""Hermes' replacement for secrets and for the rest of a long line, or text in a file that looks the same."""
LOG_LINES = 1_000_000
"""Number of output lines to request from a background process: all that hermes stores."""
BEGIN = "hermes-command-begins"
"""Printed before a command that is run as a background process."""

READ_PAGE_LINES = 2000
"""Number of lines per read; hermes' own upper limit."""
ABOUT_A_PAGE = frozenset({"hint", "_hint", "next_offset", "truncated_by"})
"""Keys of a result that only hold for one page of a file."""


def _run_in_thread(call: Callable[[], T]) -> T:
    """Run one blocking call once from synchronous code and return its result; its exceptions propagate.

    Inside a bridged coroutine (every ``compute_reward``) the event loop continues meanwhile. On an event loop without a bridge
    the call runs in the tool pool and the loop waits; without a loop it runs in the calling thread. The only time limit
    is the call's own.
    """
    if nonblocking_calls.is_bridged():
        return nonblocking_calls.wait_for(agent_loop.run_in_tool_pool(call))
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return call()
    context = contextvars.copy_context()
    return agent_loop._tool_executor.submit(context.run, call).result()


def _run_tool_in_thread(tool_name: str, arguments: dict[str, Any], task_id: str) -> str:
    """Run one tool in the sandbox of ``task_id`` and return its result as text; see `_run_in_thread`."""

    def call() -> str:
        with in_sandbox(task_id):
            answer = handle_function_call(tool_name, arguments, task_id=task_id)
        return answer if isinstance(answer, str) else multimodal_text(answer)

    return _run_in_thread(call)


class ContextClosedError(RuntimeError):
    """The ToolContext of an ``agent_rollout`` was used after its block."""


class ToolContext:
    """Unrestricted access to a rollout's tools, for the code that verifies the rollout.

    All calls share the rollout's session: its files, working directory, background processes. Results are dicts; a result
    that is not JSON becomes ``{"exit_code": -1, "output": text}`` (terminal) or ``{"error": text}`` (the other tools).
    """

    _is_closed = False
    """Whether calls are refused, which would open a new, empty sandbox that nobody releases. ``cleanup`` still works."""

    def __init__(self, task_id: str) -> None:
        """Attach to the sandbox of ``task_id``; no process is started before the first call."""
        self.task_id = task_id

    def terminal(self, command: str, timeout: int = 180) -> dict[str, Any]:
        """Run a shell command; ``timeout`` in seconds, without an upper limit.

        Returns ``{"exit_code": int, "output": str, ...}``.
        """
        if timeout > hermes_name("tools.terminal_tool", "FOREGROUND_MAX_TIMEOUT"):
            return self._terminal_in_background(command, timeout)
        return self._as_dict(self.call_tool("terminal", {"command": command, "timeout": timeout}), of_terminal=True)

    def read_file(
        self, path: str, *, max_bytes: int = file_transfer.MAX_BYTES, timeout: int = file_transfer.FILE_TIMEOUT_S
    ) -> dict[str, Any]:
        """Read a whole text file: ``content`` is the file's own text, ``numbered_content`` hermes' view of it.

        A verifier may read a file any number of times. Returns ``{"error": ...}`` when it cannot be read: because it does not exist,
        is not a regular file, is larger than ``max_bytes``, or takes longer than ``timeout`` seconds.
        """
        path = _no_option(path)
        read = functools.partial(file_transfer.read_bytes, self, path, max_bytes=max_bytes, timeout=timeout)
        try:
            data = (
                read() if has_run_commands(self.task_id) else None
            )  # without a command of the agent, nothing can stall hermes
        except file_transfer.NotReadable as error:
            return {"error": str(error)}
        except file_transfer.TransferError:
            data = None
        hermes_name("tools.file_tools", "reset_file_dedup")(
            self.task_id
        )  # else hermes answers "unchanged" or "BLOCKED" to a second read
        hermes_name("tools.file_tools", "notify_other_tool_call")(self.task_id)
        page = self._as_dict(self.call_tool("read_file", {"path": path, "offset": 1, "limit": READ_PAGE_LINES}))
        numbered = page.get("content")
        if not isinstance(numbered, str) or page.get("error"):
            return page
        text = _NUMBERED_LINE.sub("", numbered)
        if data is None and not _is_whole(page, text):
            try:
                data = read()
            except file_transfer.TransferError as error:
                if page.get("truncated") or isinstance(error, file_transfer.NotReadable):
                    return {"error": str(error)}
        if data is None:
            return {**page, "content": text, "numbered_content": numbered}
        return {**_whole(page, data), "content": data.decode(errors="replace")}

    def write_file(self, path: str, content: str) -> dict[str, Any]:
        """Write a text file; missing directories are created."""
        return self._as_dict(self.call_tool("write_file", {"path": _no_option(path), "content": content}))

    upload_file = file_transfer.upload_file
    upload_dir = file_transfer.upload_dir
    download_file = file_transfer.download_file
    download_dir = file_transfer.download_dir

    def search(self, query: str, path: str = ".") -> dict[str, Any]:
        """Search file contents by regular expression."""
        path = _no_option(path)
        if path == ".":  # without ripgrep, hermes 0.19 excludes hidden names, and this is one
            self._check_open("search_files")
            open_sandbox(self.task_id)
            path = hermes_name("tools.terminal_tool", "get_session_cwd")(self.task_id) or path
        return self._as_dict(self.call_tool("search_files", {"pattern": query, "path": path}))

    def web_search(self, query: str) -> dict[str, Any]:
        """Search the web."""
        return self._as_dict(self.call_tool("web_search", {"query": query}))

    def web_extract(self, urls: list[str]) -> dict[str, Any]:
        """Fetch pages as text."""
        return self._as_dict(self.call_tool("web_extract", {"urls": urls}))

    def browser_navigate(self, url: str) -> dict[str, Any]:
        """Open a page in the rollout's browser."""
        return self._as_dict(self.call_tool("browser_navigate", {"url": url}))

    def browser_snapshot(self) -> dict[str, Any]:
        """Return the current page as an accessibility tree."""
        return self._as_dict(self.call_tool("browser_snapshot", {}))

    def call_tool(self, tool_name: str, arguments: dict[str, Any]) -> str:
        """Run any registered tool and return its result as text, as the agent would see it."""
        self._check_open(tool_name)
        return _run_tool_in_thread(tool_name, arguments, self.task_id)

    def _check_open(self, tool_name: str) -> None:
        if self._is_closed:
            raise ContextClosedError(
                f"ctx of rollout {self.task_id} was used (tool {tool_name!r}) after its agent_rollout block, which released the "
                "sandbox and its files. Use rollout.ctx inside the block: compute the reward there, and keep the result"
            )

    def cleanup(self) -> None:
        """Release the rollout's processes, sessions and files. Idempotent, never raises."""
        if nonblocking_calls.is_bridged():
            nonblocking_calls.wait_for(asyncio.to_thread(close_sandbox, self.task_id))
        else:
            close_sandbox(self.task_id)

    def _as_dict(self, text: str, *, of_terminal: bool = False) -> dict[str, Any]:
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if isinstance(value, dict):
            return value
        return {"exit_code": -1, "output": text} if of_terminal else {"error": text}

    def _uncut(self, command: str, timeout: int) -> str | None:
        """Run a command in hermes' environment of the rollout, if there is one, and return its whole output, or None."""
        self._check_open("terminal")
        if not has_run_commands(self.task_id):
            return None
        return _run_in_thread(lambda: run_uncut(self.task_id, command, timeout))

    def _terminal_in_background(self, command: str, timeout: int) -> dict[str, Any]:
        """Run a command for longer than hermes' foreground limit: as a background process, and wait for it.

        It runs in a subshell, because on ``exit`` hermes' login shell would add "logout" to the output. Messages of that
        shell before the command begins ("no job control in this shell") are cut off at a marker line.
        """
        arguments = {"command": f"echo {BEGIN}; (\n{command}\n)", "background": True}
        started = self._as_dict(self.call_tool("terminal", arguments), of_terminal=True)
        session = started.get("session_id")
        if not session:
            return started
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            waiting = {"action": "wait", "session_id": session, "timeout": max(1, int(left))}
            state = self._as_dict(self.call_tool(tool_name("process"), waiting))
            if state.get("status") != "timeout":
                output = self._whole_output(session, state.get("output") or "")
                return {"output": output, "exit_code": state.get("exit_code", -1), "error": state.get("error")}
        self.call_tool(tool_name("process"), {"action": "kill", "session_id": session})
        return {"exit_code": 124, "output": "", "error": f"Command timed out after {timeout} seconds"}

    def _whole_output(self, session: str, end: str) -> str:
        """Return a background process's whole output; waiting for it only returns the end."""
        log = self._as_dict(self.call_tool(tool_name("process"), {"action": "log", "session_id": session, "limit": LOG_LINES}))
        output = log.get("output")
        whole = output if isinstance(output, str) and len(output) >= len(end.strip()) else end
        _, begun, after = whole.partition(f"{BEGIN}\n")
        return after if begun else whole.removesuffix(BEGIN)


def _is_whole(page: dict[str, Any], text: str) -> bool:
    """Whether the text of hermes' view is the file's: the view alters long lines and secrets, and may end early."""
    size = page.get("file_size")
    same = not isinstance(size, int) or (size == len(text.encode(errors="replace")) and not _MASK.search(text))
    return same and not page.get("truncated")


def _whole(page: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Return the result for a whole file, from that for its first page; the view of the rest is made as hermes does."""
    if not page.get("truncated"):
        return {**page, "numbered_content": page["content"]}
    longest = get_max_line_length()
    lines = data.decode(errors="replace").removeprefix("\ufeff").split("\n")
    shown = (line if len(line) <= longest else f"{line[:longest]}... [truncated]" for line in lines)
    view = "\n".join(f"{number}|{line}" for number, line in enumerate(shown, 1))
    kept = {name: value for name, value in page.items() if name not in ABOUT_A_PAGE}
    return {**kept, "truncated": False, "numbered_content": redact_sensitive_text(view, file_read=True)}


def _no_option(path: str) -> str:
    """Return ``path`` in a form that no command parses as an option; hermes quotes paths but keeps a leading dash."""
    return f"./{path}" if path.startswith("-") else path
