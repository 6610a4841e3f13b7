"""Gives every rollout a sandbox of its own, and takes it away again.

hermes-agent 0.19 maps every task id to one shared session unless an override was registered for it first. `open_sandbox`
registers one, with a private working directory on the local backend; `close_sandbox` undoes everything a rollout can leave:
background processes, the terminal session, the override, the read cache, the directory.

Place in the flow: `HermesAgentLoop.run` and `ToolContext` open on first use; `ToolContext.cleanup` closes.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Callable

__all__ = ["close_sandbox", "open_sandbox", "sandbox_directory"]

logger = logging.getLogger(__name__)

_directories: dict[str, str] = {}
"""task_id -> working directory that this module made for it."""
_lock = threading.Lock()


@atexit.register
def _remove_what_was_left() -> None:
    """Remove the directories of rollouts that nobody cleaned up, at the latest when the process ends."""
    for directory in list(_directories.values()):
        shutil.rmtree(directory, ignore_errors=True)


def open_sandbox(task_id: str) -> None:
    """Register a session of its own for ``task_id``, unless the environment already registered one (a Docker image, say).

    Idempotent. On the local backend the session starts in a fresh, empty directory.
    """
    from tools.terminal_tool import _task_env_overrides, register_task_env_overrides  # noqa: PLC0415 - hermes is heavy

    with _lock:
        if task_id in _task_env_overrides:
            return
        backend = os.environ.get("TERMINAL_ENV", "local")
        overrides = {"env_type": backend}
        if backend == "local":
            directory = os.path.realpath(tempfile.mkdtemp(prefix=f"hermes-{_plain(task_id)}-"))
            overrides["cwd"] = _directories[task_id] = directory
        register_task_env_overrides(task_id, overrides)


def sandbox_directory(task_id: str) -> str | None:
    """Return the working directory made for ``task_id``, or None on backends whose files are not on this machine."""
    return _directories.get(task_id)


def close_sandbox(task_id: str) -> None:
    """Release all that ``task_id`` holds. Idempotent, never raises; what fails is logged and the rest still happens."""
    for step in (_kill_processes, _close_browser, _close_terminal, _forget_reads):
        _attempt(step, task_id)
    with _lock:
        directory = _directories.pop(task_id, None)
    if directory is not None:
        shutil.rmtree(directory, ignore_errors=True)


def _attempt(step: Callable[[str], None], task_id: str) -> None:
    try:
        step(task_id)
    except Exception:  # noqa: BLE001 - one failing part must not keep the others from being released
        logger.warning("Cleaning up %s failed in %s", task_id, step.__name__, exc_info=True)


def _kill_processes(task_id: str) -> None:
    from tools.process_registry import process_registry  # noqa: PLC0415

    process_registry.kill_all(task_id)


def _close_browser(task_id: str) -> None:
    from tools import browser_tool  # noqa: PLC0415

    if any(key.split("::")[0] == task_id for key in list(browser_tool._active_sessions)):  # noqa: SLF001
        browser_tool.cleanup_browser(task_id)


def _close_terminal(task_id: str) -> None:
    from tools.terminal_tool import cleanup_vm, clear_task_env_overrides  # noqa: PLC0415

    try:
        cleanup_vm(task_id, force_remove=True)
    finally:
        clear_task_env_overrides(task_id)


def _forget_reads(task_id: str) -> None:
    from tools import file_tools  # noqa: PLC0415

    file_tools.reset_file_dedup(task_id)
    trackers = getattr(file_tools, "_read_tracker", None)
    if isinstance(trackers, dict):
        trackers.pop(task_id, None)


def _plain(task_id: str) -> str:
    """Return up to eight characters of ``task_id`` that are safe in a file name."""
    return "".join(letter for letter in task_id if letter.isalnum())[:8]
