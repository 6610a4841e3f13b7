"""Finds and kills the processes of a local sandbox, including those that detached themselves from their command.

A process belongs to a sandbox if it works in its directory, was started with its mark in the environment, or descends from such a
process: a new session, another directory, closed streams and a double fork change none of the three. A daemon that emptied its
environment as well is a *stray*. On Linux strays are recognized by a resource limit without effect, which every process inherits
from the test process.

Place in the flow: `sessions` calls `kill_all` at the end of a rollout, and `LocalSandbox` at the end of the sandbox.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time

import psutil

__all__ = ["kill_all", "tag_descendants"]

RLIMIT_LOCKS = 10
"""A limit that Linux has not enforced since 2.4.25. It survives ``exec``, and an emptied environment."""

KILL_GRACE_S = 2.0
"""Seconds that killed processes may take to end."""


def tag_descendants() -> int:
    """Give this process, and all that it starts from now on, a value of the limit that no other has; 0 where that is impossible.

    It begins with the process's id: the environment layer then takes it for its own, and does not change it.
    """
    tag = (os.getpid() << 32) + secrets.randbits(32)
    try:
        own = psutil.Process()
        own.rlimit(RLIMIT_LOCKS, (tag, own.rlimit(RLIMIT_LOCKS)[1]))
    except (AttributeError, OSError, ValueError, psutil.Error):  # not Linux, or a lower hard limit
        return 0
    return tag


def kill_all(directory: str, *, mark: str = "", tag: int = 0) -> None:
    """Kill every process that works in ``directory`` or has the variable ``mark`` (``NAME=value``), and wait for their end.

    ``tag``: also kill the strays that have this value of `tag_descendants`.
    """
    deadline = time.monotonic() + KILL_GRACE_S
    while (found := _belonging(directory, mark, tag)) and time.monotonic() < deadline:
        for process in found:
            with contextlib.suppress(psutil.Error):  # it ended meanwhile
                process.kill()
        time.sleep(0.005)


def _belonging(directory: str, mark: str, tag: int) -> list[psutil.Process]:
    facts = psutil.process_iter(["pid", "ppid", "status", "cwd", "environ"])
    table = {one.pid: one for one in facts if one.pid != os.getpid() and one.info["status"] != psutil.STATUS_ZOMBIE}
    own = {pid for pid, process in table.items() if _is_own(process, table, directory, mark, tag)}
    return [process for pid, process in table.items() if own and _has_ancestor(pid, table, own)]


def _is_own(process: psutil.Process, table: dict[int, psutil.Process], directory: str, mark: str, tag: int) -> bool:
    variables = process.info["environ"]
    if variables is None:  # of another user
        return False
    name, _, value = mark.partition("=")
    if (mark and variables.get(name) == value) or (directory and f"{process.info['cwd']}/".startswith(f"{directory}/")):
        return True
    is_ours = (
        len(variables.keys() & os.environ.keys()) >= len(os.environ) / 2
    )  # what the tests themselves left in the background
    return bool(tag) and not is_ours and _has_tag(process, tag) and not _has_ancestor(process.pid, table, {os.getpid()})


def _has_tag(process: psutil.Process, tag: int) -> bool:
    with contextlib.suppress(psutil.Error):
        return bool(process.rlimit(RLIMIT_LOCKS)[0] == tag)
    return False


def _has_ancestor(pid: int, table: dict[int, psutil.Process], wanted: set[int]) -> bool:
    """Whether a process or one of its ancestors is wanted."""
    while pid not in wanted:
        if pid not in table:
            return False
        pid = table[pid].info["ppid"]
    return True
