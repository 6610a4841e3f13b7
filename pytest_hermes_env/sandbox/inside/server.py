"""The first process of a cell: runs command lines that the test process asks for, and ends the cell when its input ends.

Requests come on standard input, one answer to each goes to standard output.

Place in the flow: `cell.Cell` starts it with `inside.init` or bubblewrap; `real_shell.RealShell` asks it. In the cell of a local
sandbox it has no requests: commands join that cell, and it keeps their limits.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import stat
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hermes_env_shared import trees

from . import kernel
from .messages import receive, send
from .tree import Tree

SCRATCH = "/run"
NOTICE = "/run/limit"
"""Where a limit that was hit is written: commands that joined the cell read it there."""
MOST_OUTPUT = 32 << 20
"""Most bytes of output of one line."""
MOST_DESCRIPTORS = 65536
GRACE_S = 1.0
"""Seconds between SIGTERM and SIGKILL, as hermes waits."""
CHECK_S = 0.02
"""Seconds between two checks of the limits while something runs."""
IDLE_S = 0.1
"""Seconds between two looks whether something runs."""
COUNT_S = 0.5
"""Seconds between two counts of the bytes in the sandbox's directory, at least."""
AT_START = frozenset({"BASH_ENV", "ENV", "IFS", "POSIXLY_CORRECT", "PS4"})
"""Exported variables that have another meaning in the environment of a bash that starts: hermes sets them after the start."""

THREADS_PER_PROCESS = 4
"""Threads of all processes together, for each process that is allowed. The kernel has the same limit, but not every kernel applies it to
root."""
MIN_FILES, BYTES_PER_FILE = 512, 2048
"""At least so many files are allowed, and one for so many bytes of the disk limit: as in a file system in memory."""

MOST_NOTED = 1 << 20
"""Most bytes that a line leaves for the next one."""


@dataclass(kw_only=True)
class Job:
    """A running shell, its output so far, and its exit code once it ended. ``given``: its standard input, -1 without one."""

    process: int
    output: int
    given: int = -1
    text: bytearray = field(default_factory=bytearray)
    exit_code: int | None = None


def main(root: str = "") -> None:
    """Serve until standard input ends; then the kernel kills every process in the cell.

    ``root``, by default the program's argument, is the root directory of files where there is no cell, but only this process.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # from inside, the first process can then not be interrupted either
    os.umask(0o022)
    root = root or (sys.argv[1] if sys.argv[1:] else "/")
    if root == "/":
        kernel.give_up_rights()
    _Server(root).serve()


class _Server:
    def __init__(self, root: str) -> None:
        self._limits: dict[str, int] = {}
        self._bash = "/usr/bin/bash" if os.path.exists("/usr/bin/bash") else "/bin/bash"
        self._tree = Tree(root)
        self._scratch = SCRATCH if root == "/" else os.path.dirname(root)
        self._jobs: dict[int, Job] = {}
        self._lines = 0
        self._hit = ""
        self._directory = ""
        self._has_processes = False
        self._number_of_hits = 0
        self._next_check = self._next_count = 0.0

    def serve(self) -> None:
        send(1, {"ready": True}, [])
        while True:
            self._attend(None)
            try:
                request, blobs = receive(0)
                answer, answered = getattr(self, f"_{request['do']}")(request, blobs)
            except EOFError:
                for job in self._jobs.values():
                    self._end(job, 0.0)
                return
            except OSError as error:
                answer, answered = {"error": str(error)}, []
            send(1, answer, answered)

    def _begin(self, request: Mapping[str, Any], _: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        self._limits = request["limits"]
        self._directory = request["directory"]
        self._tree.most_bytes = request["most_bytes"]
        if request["has_tree"]:
            self._tree.begin()
        return {}, []

    def _run(self, request: Mapping[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        self._tree.apply(request["changed"], blobs)
        self._lines += 1
        mark = f"{self._scratch}/{self._lines}-{os.urandom(8).hex()}"
        exports = {name: value for name, value in request["variables"].items() if name in AT_START}
        variables = {name: value for name, value in request["variables"].items() if name not in AT_START}
        script = _line_script(request["command"], request["cwd"], mark, exports, request["functions"])
        job = self._start_job(script, {**request, "variables": variables}, has_input=False)
        timed_out = self._wait(job, time.monotonic() + request["timeout"])
        self._drain(job)
        os.close(job.output)
        self._check_limits()
        changed, contents, read = self._tree.changes()
        if self._tree.is_cut:
            self._hit = f"disk: at most {self._limits['disk_bytes']} bytes"
        limit, self._hit = self._hit, ""
        noted = [_take(f"{mark}.{name}") for name in ("asked", "cwd", "exports")]
        answer = {"exit_code": job.exit_code, "timed_out": timed_out, "limit": limit, "changed": changed, "read": read}
        return answer, [*contents, bytes(job.text), *noted]

    def _start(self, request: Mapping[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        self._tree.apply(request["changed"], blobs)
        job = self._start_job(request["command"], request, has_input=request["has_input"])
        self._jobs[job.process] = job
        return {"process": job.process}, []

    def _poll(self, request: Mapping[str, Any], _: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        job = self._jobs[request["process"]]
        self._attend(0)
        return {"exit_code": job.exit_code}, [bytes(job.text)]

    def _write(self, request: Mapping[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        job = self._jobs[request["process"]]
        if blobs[0]:
            os.set_blocking(job.given, False)
            os.write(job.given, blobs[0])
        elif job.given >= 0:
            os.close(job.given)
            job.given = -1
        return {}, []

    def _kill(self, request: Mapping[str, Any], _: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        job = self._jobs[request["process"]]
        self._end(job)
        return {"exit_code": job.exit_code}, [bytes(job.text)]

    def _hits(self, _: Mapping[str, Any], __: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        return {"hits": self._number_of_hits}, []

    def _start_job(self, script: str, request: Mapping[str, Any], *, has_input: bool) -> Job:
        """Start bash. ``has_input``: its standard input is a pipe."""
        readable, output = os.pipe()
        source, feed = os.pipe() if has_input else (os.open("/dev/null", os.O_RDONLY), -1)
        process = os.fork()
        if process == 0:
            self._become_bash(script, request, source, output)
        os.close(source)
        os.close(output)
        os.set_blocking(readable, False)
        return Job(process=process, output=readable, given=feed)

    def _become_bash(self, script: str, request: Mapping[str, Any], source: int, output: int) -> None:
        try:
            os.setsid()
            for number, place in ((source, 0), (output, 1), (output, 2)):
                os.dup2(number, place)
            os.closerange(3, MOST_DESCRIPTORS)
            for number in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            if self._limits:
                kernel.limit_resources(self._limits)
            with contextlib.suppress(OSError):
                os.chdir(request["cwd"])
            os.execve(self._bash, [self._bash, *request["options"], script], request["variables"])  # noqa: S606
        except BaseException as error:  # noqa: BLE001 - whatever it is, this is a copy of the first process
            with contextlib.suppress(OSError):
                os.write(2, f"{self._bash}: {error}\n".encode(errors="surrogateescape"))
        finally:
            os._exit(126)

    def _wait(self, job: Job, deadline: float) -> bool:
        """Wait for the end of a job; return whether it had to be ended because the time was over."""
        while job.exit_code is None:
            left = deadline - time.monotonic()
            if left <= 0:
                self._end(job)
                return True
            self._attend(min(left, CHECK_S), job)
            if len(job.text) > MOST_OUTPUT:
                self._hit = f"output: a line may write {MOST_OUTPUT} bytes"
                self._end(job)
        return False

    def _end(self, job: Job, patience: float = GRACE_S) -> None:
        """End the process group of a job as hermes does: SIGTERM, and SIGKILL for what is left."""
        for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, GRACE_S)):
            try:
                os.killpg(job.process, number)
            except ProcessLookupError:
                if job.exit_code is None:  # it has no group yet
                    os.kill(job.process, number)
            until = time.monotonic() + seconds
            while (job.exit_code is None or _is_group_alive(job.process)) and time.monotonic() < until:
                self._attend(0.01, job)

    def _attend(self, seconds: float | None, own: Job | None = None) -> None:
        """Wait for a request, at most so long, or with ``own`` for something of a job; reap, read output and keep the limits."""
        while True:
            watched = {job.output: job for job in ([own] if own else []) + list(self._jobs.values()) if job.output >= 0}
            poll = select.poll()
            for descriptor in watched:
                poll.register(descriptor, select.POLLIN)
            ended = -1
            if own is None:
                poll.register(0, select.POLLIN)
            elif own.exit_code is None:
                with contextlib.suppress(ProcessLookupError):
                    ended = os.pidfd_open(own.process)
                    poll.register(ended, select.POLLIN)
            patience = seconds if seconds is not None else CHECK_S if watched or self._has_processes else IDLE_S
            ready = [descriptor for descriptor, _ in poll.poll(patience * 1000)]
            if ended >= 0:
                os.close(ended)
            for descriptor in ready:
                if descriptor in watched:
                    self._drain(watched[descriptor])
            self._reap(own)
            if time.monotonic() >= self._next_check:
                self._check_limits()
            if seconds is not None or 0 in ready:
                return

    def _reap(self, own: Job | None) -> None:
        jobs = {**self._jobs, **({own.process: own} if own else {})}
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] in jobs:
                    code = os.waitstatus_to_exitcode(found[1])
                    jobs[found[0]].exit_code = code

    def _drain(self, job: Job) -> None:
        with contextlib.suppress(BlockingIOError):
            while len(job.text) <= MOST_OUTPUT:
                part = os.read(job.output, 1 << 16)
                if not part and job.process in self._jobs:
                    os.close(job.output)
                    job.output = -1
                if not part:
                    return
                job.text += part

    def _check_limits(self) -> None:
        """Kill every process in the cell but this one if together they use too much."""
        self._next_check = time.monotonic() + CHECK_S
        if not self._limits:  # not a cell
            return
        processes, threads, private, shared = _usage()
        private += _detached()
        if self._has_processes and not processes:
            self._next_count = 0.0  # the last command ended, perhaps before a look at what it left
        is_over, self._has_processes = self._has_processes, processes > 0
        most = self._limits
        hit = ""
        if processes > most["processes"]:
            hit = f"processes: at most {most['processes']} at a time"
        elif threads > THREADS_PER_PROCESS * most["processes"]:
            hit = f"threads: at most {THREADS_PER_PROCESS * most['processes']} at a time"
        elif private + shared > most["memory_bytes"] and private + _shared_once() > most["memory_bytes"]:
            hit = f"memory: at most {most['memory_bytes']} bytes"
        elif processes or is_over:
            hit = self._count()
        if hit:
            self._hit = hit
            self._number_of_hits += processes > 0
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
            with contextlib.suppress(OSError), open(os.open(NOTICE, flags, 0o644), "w", encoding="utf-8") as notice:
                notice.write(f"\n{hit}")
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)

    def _count(self) -> str:
        """Return the limit that is passed by the files of the sandbox, or by open ones without a name. Much is not counted all the time."""
        begun = time.monotonic()
        if begun < self._next_count:
            return ""
        most = self._limits
        used, number = trees.usage(self._directory) if self._directory else (0, 0)
        unnamed_disk, unnamed_memory = _unnamed(os.lstat(self._directory or "/").st_dev)
        self._next_count = begun + max(COUNT_S, 20 * (time.monotonic() - begun))
        if self._directory and used + unnamed_disk > most["disk_bytes"]:  # elsewhere the kernel keeps it
            return f"disk: at most {most['disk_bytes']} bytes"
        if number > (most_files := max(MIN_FILES, most["disk_bytes"] // BYTES_PER_FILE)):
            return f"files: at most {most_files}"
        return f"memory: at most {most['memory_bytes']} bytes" if unnamed_memory > most["memory_bytes"] else ""


def _usage() -> tuple[int, int, int, int]:
    """Return how many processes and threads there are besides this one, and their bytes of private and of shared memory.

    What several processes share is in it as often.
    """
    processes = threads = private = shared = 0
    for pid in _pids():
        found = dict.fromkeys((b"RssAnon", b"RssShmem", b"Threads"), 0)
        with contextlib.suppress(OSError), open(f"/proc/{pid}/status", "rb") as file:
            for line in file:
                name, _, value = line.partition(b":")
                if name in found:
                    found[name] = int(value.split()[0])
        if found[b"RssAnon"] or found[b"RssShmem"]:  # a dead one that nobody reaped has none
            processes += 1
            threads += found[b"Threads"]
            private += found[b"RssAnon"] * 1024
            shared += found[b"RssShmem"] * 1024
    return processes, threads, private, shared


def _shared_once() -> int:
    """Return the bytes of shared memory, each once. This takes the kernel longer than `_usage`."""
    shared = 0
    for pid in _pids():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            shared += sum(int(line.split()[1]) for line in file if line.startswith(b"Pss_Shmem:"))
    return shared * 1024


def _detached() -> int:
    """Return the bytes of System V's shared memory that no process has."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/sysvipc/shm", "rb") as file:
        rows = [line.split() for line in file][1:]
        return sum(int(row[14]) for row in rows if row[6] == b"0")  # rss and nattch
    return 0


def _unnamed(device: int) -> tuple[int, int]:
    """Return the bytes of open files without a name on this device, and of memory files."""
    on_disk: dict[int, int] = {}
    in_memory: dict[tuple[int, int], int] = {}
    for pid in _pids():
        with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as descriptors:
            for descriptor in descriptors:
                with contextlib.suppress(OSError):
                    status = descriptor.stat()
                    if status.st_nlink or not stat.S_ISREG(status.st_mode):
                        continue
                    if status.st_dev == device:
                        on_disk[status.st_ino] = status.st_blocks * 512
                    elif os.readlink(descriptor.path).startswith("/memfd:"):
                        in_memory[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(on_disk.values()), sum(in_memory.values())


def _pids() -> list[str]:
    return [entry for entry in os.listdir("/proc") if entry.isdecimal() and entry != "1"]


def _is_group_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _line_script(command: str, cwd: str, mark: str, exports: Mapping[str, str], functions: str) -> str:
    """Return a line as hermes' local environment gives it to bash: errors then name line 3.

    ``exports`` are variables that bash does not take from its environment, or that change how it starts. ``functions`` defines
    some, on one line, which note their calls in ``mark`` with ``.asked``. In the end the script writes the directory and the
    exported variables to ``mark`` with ``.cwd`` and ``.exports``.
    """
    first = [f"export {name}={_quoted(value)}" for name, value in exports.items()]
    if functions:
        first += [f"__hermes_asked={_quoted(mark)}.asked", functions]
    return "\n".join((
        "; ".join(first) or ":",
        f"builtin cd -- {_quoted(cwd)} || exit 126",
        f"eval {_quoted(command)}",
        "__hermes_ec=$?",
        "umask 077",
        f"{{ /usr/bin/env -0 > {_quoted(mark)}.exports; }} 2>/dev/null || true",
        f"{{ pwd -P > {_quoted(mark)}.cwd; }} 2>/dev/null || true",
        "exit $__hermes_ec",
    ))  # fmt: skip


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _take(path: str) -> bytes:
    """Return what the wrapper wrote, empty if the line ended the shell, and remove it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        content = os.read(descriptor, MOST_NOTED)
        os.unlink(path)
    except OSError:  # the line put something else there
        content = b""
    os.close(descriptor)
    return content
