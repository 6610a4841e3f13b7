"""Finds and kills the processes of a local sandbox, including those that detached themselves from their command.

A process belongs to a sandbox if it works in its directory, was started with its mark in the environment, or descends from such a
process: a new session, another directory, closed streams and a double fork change none of the three. A daemon that emptied its
environment as well is a *stray*. Strays are recognized by a resource limit without effect, which every process inherits from the
test process.

Linux only: elsewhere only processes that hermes tracks are killed.

Place in the flow: `sessions` calls `kill_all` at the end of a rollout, and `LocalSandbox` at the end of the sandbox.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from dataclasses import dataclass

__all__ = ["kill_all", "now", "tag_descendants"]

RLIMIT_LOCKS = 10
"""A limit that Linux has not enforced since 2.4.25. It survives ``exec``, and an emptied environment."""

TICK_S = 0.01
"""Resolution of the start times of processes, in seconds."""

KILL_GRACE_S = 2.0
"""Seconds that killed processes may take to end."""

_PID_SHIFT = 32
"""The limit's value is the id of the process that runs the rollouts, shifted by so many bits, plus a random number."""


@dataclass(frozen=True, kw_only=True)
class _Process:
    pid: int
    parent: int
    started: float

    @property
    def directory(self) -> str:
        """Its working directory, or an empty text if it has ended or belongs to another user."""
        with contextlib.suppress(OSError):
            return os.readlink(f"/proc/{self.pid}/cwd")
        return ""

    @property
    def environment(self) -> frozenset[bytes] | None:
        """The variables with which it was started, or None if it has ended or belongs to another user."""
        with contextlib.suppress(OSError), open(f"/proc/{self.pid}/environ", "rb") as file:
            return frozenset(file.read().split(b"\0"))
        return None


def tag_descendants() -> None:
    """Make all processes that start from now on recognizable as descendants of this process."""
    if _tag() is not None or not os.path.isdir("/proc/self"):
        return
    import resource  # noqa: PLC0415 - does not exist on every system

    tag = (os.getpid() << _PID_SHIFT) + secrets.randbits(_PID_SHIFT)
    with contextlib.suppress(OSError, ValueError):  # a lower hard limit: then strays are not found
        resource.setrlimit(RLIMIT_LOCKS, (tag, resource.getrlimit(RLIMIT_LOCKS)[1]))


def now() -> float:
    """Return the time as in the start times of processes: seconds since the machine started."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else 0.0


def kill_all(directory: str, *, mark: str = "", strays_since: float = float("inf")) -> None:
    """Kill every process that works in ``directory`` or has the variable ``mark`` (``NAME=value``), and wait for their end.

    ``strays_since``: also kill strays that started at this time, in terms of `now`, or later.
    """
    deadline = time.monotonic() + KILL_GRACE_S
    while (found := _belonging(directory, mark.encode(), strays_since)) and time.monotonic() < deadline:
        for process in found:
            with contextlib.suppress(OSError):  # it ended meanwhile
                os.kill(process, signal.SIGKILL)
        time.sleep(0.005)


def _belonging(directory: str, mark: bytes, strays_since: float) -> set[int]:
    table = _processes()
    own: set[int] = set()
    for process in table.values():
        environment = process.environment
        if environment is None:
            continue
        may_be_stray = process.started + TICK_S >= strays_since
        is_inside = bool(directory) and f"{process.directory}/".startswith(f"{directory}/")
        if is_inside or (mark and mark in environment) or (may_be_stray and _is_stray(process, environment, table)):
            own.add(process.pid)
    return {pid for pid in table if _has_ancestor(pid, table, own)} if own else own


def _is_stray(process: _Process, environment: frozenset[bytes], table: dict[int, _Process]) -> bool:
    """Whether a descendant of this process is a daemon whose environment is not ours."""
    names = {entry.partition(b"=")[0] for entry in environment}
    ours = {os.fsencode(name) for name in os.environ}
    if len(names & ours) >= len(ours) / 2:
        return False
    return _has_tag(process.pid) and not _has_ancestor(process.pid, table, {os.getpid()})


def _tag() -> int | None:
    """Return this process's value of the limit; None if it has none, or only that of the process that started it."""
    if not os.path.isdir("/proc/self"):
        return None
    import resource  # noqa: PLC0415 - does not exist on every system

    value = resource.getrlimit(RLIMIT_LOCKS)[0]
    return value if value >> _PID_SHIFT == os.getpid() else None


def _has_tag(pid: int) -> bool:
    tag = _tag()
    with contextlib.suppress(OSError), open(f"/proc/{pid}/limits", encoding="ascii") as file:
        return tag is not None and any(line.split()[3:4] == [str(tag)] for line in file if line.startswith("Max file locks"))
    return False


def _has_ancestor(pid: int, table: dict[int, _Process], wanted: set[int]) -> bool:
    """Whether a process or one of its ancestors is wanted."""
    while pid not in wanted:
        if pid not in table:
            return False
        pid = table[pid].parent
    return True


def _processes() -> dict[int, _Process]:
    """Return the other processes that run, by their ids."""
    table = {}
    for entry in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if entry.isdecimal() and int(entry) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", "rb") as file:
                state, parent, *others = file.read().rpartition(b")")[2].split()
                started = int(others[17]) / os.sysconf("SC_CLK_TCK")
                if state != b"Z":  # it has ended
                    table[int(entry)] = _Process(pid=int(entry), parent=int(parent), started=started)
    return table
