"""Opens a separate sandbox for every rollout, and releases it.

hermes-agent 0.19 maps every task id to one shared session unless an override was registered for it first. `open_sandbox`
registers one, with a private working directory on the local backend; `close_sandbox` removes everything that a rollout can
leak: background processes, the terminal session, the override, the read cache, the directories.

Place in the flow: `HermesAgentLoop.run` and `ToolContext` open on first use; `ToolContext.cleanup` closes.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import logging
import os
import shlex
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tools import process_registry

from hermes_env_shared.abandoned import claim, is_gone, remove_abandoned_meanwhile, remove_tree
from hermes_env_shared.hermes_names import hermes_name
from hermes_env_shared.processes import (
    forget_background_processes,
    has_processes,
    kill_processes,
    mark_commands,
    now,
    tag_descendants,
)

logger = logging.getLogger(__name__)

_terminal = functools.partial(hermes_name, "tools.terminal_tool")


class SandboxLost(RuntimeError):
    """A command made the sandbox of its rollout unusable."""


@dataclass(kw_only=True)
class _Sandbox:
    """What this module holds for one task id, from its first tool call until its sandbox is closed.

    ``mark`` and ``opened`` identify its processes; ``directory`` is the working directory that was created for it, and ``release``
    gives up the claim to it; ``storage`` is where results go that are too long for the conversation; ``calls`` counts the tool
    calls that run. ``is_closing``: it was closed while one of them still ran. ``inode`` identifies the directory. ``lost``: why no
    command can run in the sandbox any more.
    """

    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    opened: float | None = None
    directory: str | None = None
    release: Callable[[], None] = lambda: None
    storage: str | None = None
    calls: int = 0
    has_run_commands: bool = False
    is_closing: bool = False
    inode: int | None = None
    lost: str = ""

    def raise_if_lost(self) -> None:
        """Raises: the sandbox was lost → SandboxLost."""
        if self.lost:
            raise SandboxLost(self.lost)

    def keep_directory(self) -> None:
        """Make the directory again if a command removed or moved it: hermes would go on in its parent, which is not the rollout's.

        After each call, so that it is what the rollout itself did. Raises: it cannot be made again → SandboxLost.
        """
        try:
            if self.directory is not None and not self.is_closing and is_gone(self.directory):
                remove_tree(self.directory, inode=self.inode)  # where it was moved to
                os.makedirs(self.directory, 0o700)
                self.inode = os.lstat(self.directory).st_ino
        except OSError as error:
            self.lost = f"its directory cannot be used any more: {error.strerror}"
        self.raise_if_lost()

    def remove(self) -> None:
        """Remove the directory, and give up the claim to it."""
        if self.directory is None:
            self.release()
        else:
            remove_tree(self.directory, inode=self.inode, then=self.release)


_sandboxes: dict[str, _Sandbox] = {}
_lock = threading.Lock()

PROCESSES_PER_ROLLOUT = 64
"""Background processes per open rollout that hermes remembers, including ended ones.

Beyond its limit, which covers all sessions together, hermes forgets the one that ended first: its rollout would lose its output.
"""


@atexit.register
def _remove_leaked_rollouts() -> None:
    """Kill the daemons of rollouts that were never cleaned up, and remove their directories, when the process ends."""
    for task_id, held in list(_sandboxes.items()):
        _attempt(_kill_detached, task_id)
        held.remove()


def open_sandbox(task_id: str) -> None:
    """Register a separate session for ``task_id``, unless the environment already registered one (a Docker image, say).

    Idempotent. On the local backend the session starts in a new, empty directory. An override by the environment that lacks the
    keys that make hermes isolate a session (with only a working directory, say) is completed.
    """
    with _lock:
        held = _sandboxes.setdefault(task_id, _Sandbox())
        if held.opened is None:
            tag_descendants()
            held.opened = now()
            process_registry.MAX_PROCESSES = PROCESSES_PER_ROLLOUT * len(_sandboxes)
        given = _terminal("_task_env_overrides").get(task_id, {})
        backend = os.environ.get("TERMINAL_ENV", "local")
        has_its_place = backend != "local" or "cwd" in given
        if given and has_its_place and _terminal("_resolve_container_task_id")(task_id) == task_id:
            return
        overrides = {"env_type": backend, **given}
        if backend == "local" and "cwd" not in overrides:
            overrides["cwd"] = held.directory = _make_directory(task_id)
            held.inode = os.lstat(held.directory).st_ino
            remove_abandoned_meanwhile()
            held.release = claim(held.directory, held.mark)
        _terminal("register_task_env_overrides")(task_id, overrides)


def _make_directory(task_id: str) -> str:
    """Return a new, empty directory: in TERMINAL_SANDBOX_DIR if it is set, else a temporary one."""
    place = os.environ.get("TERMINAL_SANDBOX_DIR") or None
    if place is not None:
        os.makedirs(place, exist_ok=True)
    return os.path.realpath(tempfile.mkdtemp(prefix=f"hermes-{_plain(task_id)}-", dir=place))


def sandbox_directory(task_id: str) -> str | None:
    """Return the working directory created for ``task_id``, or None on backends with files elsewhere."""
    return held.directory if (held := _sandboxes.get(task_id)) is not None else None


def result_storage(task_id: str, sandbox: Any) -> Any:
    """Return the sandbox that hermes gets to store long results of ``task_id``, or None when it has none yet.

    It has a temporary directory of its own, which `close_sandbox` removes: hermes names the file after the tool call's id, in one
    directory for all rollouts, and ids of concurrent rollouts may be equal.
    """
    if sandbox is None:
        return None
    with _lock:
        held = _sandboxes.setdefault(task_id, _Sandbox())
        if held.storage is None:
            temporary = sandbox.get_temp_dir() if hasattr(sandbox, "get_temp_dir") else "/tmp"  # noqa: S108 - in the sandbox
            held.storage = f"{str(temporary).rstrip('/')}/hermes-{_plain(task_id)}-{uuid.uuid4().hex[:12]}"
        directory = held.storage
    return SimpleNamespace(get_temp_dir=lambda: directory, execute=sandbox.execute)


def has_run_commands(task_id: str) -> bool:
    """Whether hermes has had an environment for the open sandbox of ``task_id``: it makes one for the first command or file."""
    return (held := _sandboxes.get(task_id)) is not None and held.has_run_commands


def _environment(task_id: str) -> Any:
    """Return hermes' environment of ``task_id``; None without one."""
    is_own = _terminal("_resolve_container_task_id")(task_id) == task_id
    return _terminal("get_active_env")(task_id) if is_own else None


def session_of(task_id: str) -> tuple[str, str, bool]:
    """Return what the next command of ``task_id`` finds: its directory, what the session exports as bash prints it, and whether a process still runs."""
    sandbox, held = _environment(task_id), _sandboxes.get(task_id)
    if sandbox is None or held is None or held.opened is None:
        return "", "", False
    exported = ""
    with contextlib.suppress(OSError, TypeError):
        exported = Path(getattr(sandbox, "_snapshot_path", "")).read_text(encoding="utf-8", errors="replace")
    return str(getattr(sandbox, "cwd", "") or ""), exported, has_processes(held.mark, held.directory, held.opened)


def run_uncut(task_id: str, command: str, timeout: int) -> str | None:
    """Run a command in hermes' environment of ``task_id`` and return its whole output; None if it fails or there is none yet.

    hermes' terminal tool cuts output; its environments, on every backend, do not.
    """
    sandbox = _environment(task_id)
    if sandbox is None:
        return None
    with in_sandbox(task_id):
        result = sandbox.execute(command, timeout=timeout)
    return str(result["output"]) if result.get("returncode") == 0 else None


def is_open(task_id: str) -> bool:
    """Return whether ``task_id`` has a sandbox that nobody has asked to close."""
    with _lock:
        held = _sandboxes.get(task_id)
        return held is not None and held.opened is not None and not held.is_closing


def close_sandbox(task_id: str) -> None:
    """Release everything that ``task_id`` holds. Idempotent, never raises: a step that fails is logged, and the others still run.

    If a tool call of ``task_id`` still runs, because it ignores its interrupt, session and directory stay until it ends: it would
    otherwise open the session that hermes shares among all tasks.
    """
    if not task_id:
        return  # hermes reads "no task" as "every task"
    # first what is marked: hermes waits two seconds for each process that ignores SIGTERM, one after the other
    for step in (_kill_detached, _kill_processes, _close_browser, _remove_results, _close_terminal, _kill_detached):
        _attempt(step, task_id)
    with _lock:
        held = _sandboxes.get(task_id, _Sandbox())
        if held.calls:
            held.is_closing = True
            return
        _sandboxes.pop(task_id, None)
    _attempt(_forget_session, task_id)
    held.remove()
    _attempt(forget_background_processes, task_id)


def lose_sandbox(task_id: str, reason: str) -> None:
    """Fail the running tool call of ``task_id`` and all later ones: the backend says that its sandbox cannot be entered any more."""
    with _lock:
        if task_id in _sandboxes:
            _sandboxes[task_id].lost = reason


@contextlib.contextmanager
def in_sandbox(task_id: str) -> Iterator[None]:
    """Run a tool call of ``task_id``: in its sandbox, and with its mark on the commands. A sandbox closed meanwhile closes after it.

    Raises: the sandbox was lost, before the call or by it → SandboxLost.
    """
    with _lock:
        held = _sandboxes.setdefault(task_id, _Sandbox())
        held.calls += 1
    try:
        open_sandbox(task_id)
        if held.directory is not None and _is_gone_or_closed(held.directory) and len(_sandboxes) > 1:
            held.lost = "its directory was removed between two of its calls, while other rollouts ran"
        held.raise_if_lost()
        with mark_commands(held.mark):
            yield
        held.raise_if_lost()
        held.keep_directory()
    finally:
        has_environment = _environment(task_id) is not None
        with _lock:
            held.has_run_commands |= has_environment
            held.calls -= 1
            is_over = held.is_closing and not held.calls
        if is_over:
            close_sandbox(task_id)


def _is_gone_or_closed(directory: str) -> bool:
    try:
        return is_gone(directory)
    except OSError:
        return True


def _kill_detached(task_id: str) -> None:
    """Kill processes that hermes does not track, because they detached themselves from their command."""
    with _lock:
        held = _sandboxes.get(task_id)
        others = [other.opened for name, other in _sandboxes.items() if name != task_id and other.opened is not None]
    if held is not None and held.opened is not None:
        strays_until = min(others, default=float("inf"))
        kill_processes(mark=held.mark, directory=held.directory, since=held.opened, strays_until=strays_until)


def _attempt(step: Callable[[str], None], task_id: str) -> None:
    try:
        step(task_id)
    except Exception:
        logger.warning("Cleaning up %s failed in %s", task_id, step.__name__, exc_info=True)


def _kill_processes(task_id: str) -> None:
    process_registry.process_registry.kill_all(task_id)


def _close_browser(task_id: str) -> None:
    if any(key.split("::")[0] == task_id for key in list(hermes_name("tools.browser_tool", "_active_sessions"))):
        hermes_name("tools.browser_tool", "cleanup_browser")(task_id)


def _remove_results(task_id: str) -> None:
    with _lock:
        held = _sandboxes.get(task_id, _Sandbox())
        directory, held.storage = held.storage, None
    sandbox = _terminal("get_active_env")(task_id)
    if directory is not None and sandbox is not None:
        sandbox.execute(f"rm -r -- {shlex.quote(directory)}", timeout=30)


def _close_terminal(task_id: str) -> None:
    _terminal("cleanup_vm")(task_id, force_remove=True)


def _forget_session(task_id: str) -> None:
    _terminal("clear_task_env_overrides")(task_id)
    hermes_name("tools.file_tools", "reset_file_dedup")(task_id)
    hermes_name("tools.file_tools", "_read_tracker").pop(task_id, None)


def _plain(task_id: str) -> str:
    """Return up to eight characters of ``task_id`` that are safe in a file name."""
    return "".join(letter for letter in task_id if letter.isalnum())[:8]
