"""Finds and kills the processes of a sandbox on this machine, including those that detached themselves from their command.

A process belongs to a sandbox if it works in the sandbox's directory, was started with its mark in the environment, or descends
from such a process: a new session, another directory, closed streams and a double fork change none of the three. A daemon that
emptied its environment as well is a *stray*. On Linux, strays are recognized by a resource limit without effect, which every
process inherits from the one that runs the sandboxes.

What is read about other processes may be gone, unreadable or odd: such a process does not belong to the sandbox.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Iterator

__all__ = [
    "PATH_OF_MACHINE",
    "SESSION_VARIABLE",
    "forget_background_processes",
    "kill_processes",
    "mark_commands",
    "now",
    "tag_descendants",
]

SESSION_VARIABLE = "HERMES_UI_SESSION_ID"
"""The variable with a rollout's mark: hermes passes it from the context of a tool call to commands, and uses it for nothing here."""

RLIMIT_LOCKS = 10
"""A limit that Linux has not enforced since 2.4.25. It survives ``exec``, and an emptied environment."""

TICK_S = 0.01
"""Resolution of the start times of processes, in seconds."""

KILL_GRACE_S = 2.0
"""Seconds that killed processes may take to end."""

IS_LINUX = os.path.isdir("/proc/self")

PATH_OF_MACHINE = (
    'while IFS= read -r -d "" each; do case $each in PATH=*) printf %s "${each#PATH=}";; esac; done </proc/1/environ'
)
"""A script of the shell alone: PATH of the machine's first process, which the image sets and no agent can change."""

_PID_SHIFT = 32
"""The limit's value is the id of the process that runs the sandboxes, shifted by so many bits, plus a random number."""

_known: dict[str, tuple[int, float]] = {}
"""Process id -> inode of its directory in /proc, which no later process of that id shares, and start time."""


def tag_descendants() -> None:
    """Make all processes that start from now on recognizable as descendants of this process."""
    if _tag() is not None or not IS_LINUX:
        return
    import resource  # noqa: PLC0415 - does not exist on every system

    tag = (os.getpid() << _PID_SHIFT) + secrets.randbits(_PID_SHIFT)
    with contextlib.suppress(OSError, ValueError):  # a lower hard limit: then strays are not found
        resource.setrlimit(RLIMIT_LOCKS, (tag, resource.getrlimit(RLIMIT_LOCKS)[1]))


@contextlib.contextmanager
def mark_commands(mark: str) -> Iterator[None]:
    """Start the commands of tool calls in this context with ``mark`` in their environment."""
    from gateway.session_context import _VAR_MAP  # noqa: PLC0415 - hermes is heavy

    token = _VAR_MAP[SESSION_VARIABLE].set(mark)
    try:
        yield
    finally:
        _VAR_MAP[SESSION_VARIABLE].reset(token)


def forget_background_processes(task_id: str) -> None:
    """Remove a rollout's background processes, which were killed, from hermes' registries, which would keep them for half an hour.

    Their reader threads must have ended first, because these register the end again. A process that ended immediately may be in
    both registries: hermes may register its start after its end.
    """
    from tools.process_registry import process_registry as registry  # noqa: PLC0415 - hermes is heavy

    registers = (registry._running, registry._finished)  # noqa: SLF001 - hermes has no public name for them
    with registry._lock:  # noqa: SLF001
        sessions = [session for register in registers for session in register.values() if session.task_id == task_id]
    deadline = time.monotonic() + KILL_GRACE_S
    for session in sessions:
        if session.process is not None and session._reader_thread is not None:  # noqa: SLF001
            session._reader_thread.join(max(0.0, deadline - time.monotonic()))  # noqa: SLF001
    with registry._lock:  # noqa: SLF001
        for session in sessions:
            for register in registers:
                register.pop(session.id, None)
            registry._completion_consumed.discard(session.id)  # noqa: SLF001
            registry._poll_observed.discard(session.id)  # noqa: SLF001


def now() -> float:
    """Return the time as in the start times of processes: seconds since the machine started."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else 0.0


def has_processes(mark: str, directory: str | None, since: float) -> bool:
    """Return whether a process of a sandbox still runs; see `kill_processes`."""
    if IS_LINUX:
        return bool(_belonging(SESSION_VARIABLE, mark, directory, since, 0.0))
    return bool(_belonging_without_proc(SESSION_VARIABLE, mark, directory))


def kill_processes(
    *, mark: str, directory: str | None, variable: str = SESSION_VARIABLE, since: float = 0.0, strays_until: float = 0.0
) -> None:
    """Kill the processes of a sandbox, and return when they have ended.

    ``variable`` has the value ``mark`` in its commands. It began at ``since``, in terms of `now`; strays that started before
    ``strays_until`` are its own.
    """
    deadline = 0.0
    while not deadline or time.monotonic() < deadline:
        if IS_LINUX:
            found = _belonging(variable, mark, directory, since, strays_until)
        else:
            found = _belonging_without_proc(variable, mark, directory)
        if not found:
            return
        for process in found:
            with contextlib.suppress(OSError):  # it ended meanwhile, or belongs to another user
                os.kill(int(process), signal.SIGKILL)
        deadline = deadline or time.monotonic() + KILL_GRACE_S  # on a busy machine, looking takes as long
        time.sleep(0.005)


def _belonging(variable: str, mark: str, directory: str | None, since: float, strays_until: float) -> set[str]:
    entry = f"{variable}={mark}".encode()
    own: set[str] = set()
    for pid, started in _start_times().items():
        environment = _environment(pid) if started + TICK_S >= since else None
        if environment is None:
            continue
        is_inside = directory is not None and f"{_directory(pid)}/".startswith(f"{directory}/")
        may_be_stray = started < strays_until
        if is_inside or entry in environment or (may_be_stray and _is_stray(pid, environment, variable)):
            own.add(pid)
    if not own:
        return own
    parents = _parents()
    return {pid for pid in parents if _has_ancestor(pid, parents, own)}


def _belonging_without_proc(variable: str, mark: str, directory: str | None) -> set[str]:
    """As `_belonging` on other systems, where neither start times nor strays are known."""
    import psutil  # noqa: PLC0415 - needed on these systems only

    own: list[psutil.Process] = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            is_inside = directory is not None and f"{process.cwd()}/".startswith(f"{directory}/")
            is_other = process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE
            if is_other and (is_inside or process.environ().get(variable) == mark):
                own += [process, *process.children(recursive=True)]
    return {str(process.pid) for process in own}


def _directory(pid: str) -> str:
    """Return a process's working directory, or an empty text if it has ended, belongs to another user or has none that can be read."""
    for place in _places(pid):
        with contextlib.suppress(OSError):
            return os.readlink(f"{place}/cwd")
    return ""


def _environment(pid: str) -> frozenset[bytes] | None:
    """Return the variables with which a process was started, or None if it has ended or belongs to another user."""
    content: bytes | None = None
    for place in _places(pid):
        with contextlib.suppress(OSError), open(f"{place}/environ", "rb") as file:
            content = file.read()
        if content:
            break
    return None if content is None else frozenset(content.split(b"\0"))


def _places(pid: str) -> Iterator[str]:
    """Yield where /proc tells about a process: first as a whole; if its first thread has ended, only others know what it has."""
    yield f"/proc/{pid}"
    stat = _stat(pid)
    if stat and stat[0] == b"Z" and int(stat[17]) > 1:
        with contextlib.suppress(OSError):
            yield from (f"/proc/{pid}/task/{thread}" for thread in os.listdir(f"/proc/{pid}/task"))


def _is_stray(pid: str, environment: frozenset[bytes], variable: str) -> bool:
    """Whether a descendant of this process is a daemon whose environment is neither ours nor marked."""
    names = {entry.partition(b"=")[0] for entry in environment}
    ours = {os.fsencode(name) for name in os.environ}
    if variable.encode() in names or len(names & ours) >= len(ours) / 2:
        return False
    return _has_tag(pid) and not _has_ancestor(pid, _parents(), {str(os.getpid())})


def _tag() -> int | None:
    """Return this process's value of the limit; None if it has none, or only that of the process that started it."""
    if not IS_LINUX:
        return None
    import resource  # noqa: PLC0415 - does not exist on every system

    value = resource.getrlimit(RLIMIT_LOCKS)[0]
    return value if value >> _PID_SHIFT == os.getpid() else None


def _has_tag(pid: str) -> bool:
    tag = _tag()
    for place in _places(pid) if tag is not None else ():
        with contextlib.suppress(OSError), open(f"{place}/limits", encoding="ascii") as file:
            if any(line.split()[3:4] == [str(tag)] for line in file if line.startswith("Max file locks")):
                return True
    return False


def _has_ancestor(pid: str, parents: dict[str, str], wanted: set[str]) -> bool:
    """Whether a process or one of its ancestors is wanted."""
    while pid not in wanted:
        if pid not in parents:
            return False
        pid = parents[pid]
    return True


def _parents() -> dict[str, str]:
    """Return the other processes that run, each with its parent."""
    stats = {pid: _stat(pid) for pid in _inodes()}
    # a zombie has ended, unless only its first thread has
    return {pid: stat[1].decode() for pid, stat in stats.items() if stat and (stat[0] != b"Z" or int(stat[17]) > 1)}


def _start_times() -> dict[str, float]:
    """Return when the other processes started. Reads about those that it has not met: there may be thousands for each rollout."""
    global _known  # noqa: PLW0603 - replaced as a whole, by any thread
    known = _known
    met: dict[str, tuple[int, float]] = {}
    for pid, inode in _inodes().items():
        if pid in known and known[pid][0] == inode:
            met[pid] = known[pid]
        elif stat := _stat(pid):
            met[pid] = inode, int(stat[19]) / os.sysconf("SC_CLK_TCK")
    _known = met
    return {pid: started for pid, (_, started) in met.items()}


def _inodes() -> dict[str, int]:
    """Return the ids of the other processes, each with the inode of its directory in /proc."""
    return {
        entry.name: entry.inode() for entry in os.scandir("/proc") if entry.name.isdecimal() and entry.name != str(os.getpid())
    }


def _stat(pid: str) -> list[bytes]:
    """Return what /proc tells about a process, from its state on; empty if it has ended."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()
    return []
