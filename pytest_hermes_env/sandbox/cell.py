"""A cell: the Linux namespaces that confine commands. It starts once, and its end kills all its processes.

Place in the flow: `confinement.available` tries a cell. A `LocalSandbox` has one, which each of its commands joins; a `RealShell`
has one, whose first process runs the lines.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from pytest_hermes_env.errors import UsageError, shorten
from pytest_hermes_env.sandbox.inside.messages import receive, send
from pytest_hermes_env.sandbox.view import HOST_NAME, KIT, PROGRAM_PATHS, Step, boot

START_S = 10.0
"""Longest time to start a cell, in seconds; it takes about 0.1."""
END_S = 5.0
"""Longest time until killed processes are dead, in seconds."""
POLL_S = 0.02
"""Seconds between two checks of them."""
REASON_LIMIT = 120
"""Most characters of a reason; bubblewrap appends advice."""


class CellError(Exception):
    """The cell could not be started; the text is a short reason."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The most that confined commands may use.

    ``cpu_s``: seconds of CPU time of each process. ``memory_bytes``: memory of all processes together, and the data of each.
    ``processes``: processes at a time. ``disk_bytes``: files of the sandbox together.
    """

    cpu_s: int = 600
    memory_bytes: int = 4 << 30
    processes: int = 256
    disk_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        """Raises: a limit is not a positive whole number → UsageError."""
        for limit in fields(self):
            value = getattr(self, limit.name)
            if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
                raise UsageError(
                    f"Limits cannot use {limit.name} = {shorten(value)}.\n"
                    "  expected  a positive whole number\n"
                    f"  fix       for example Limits({limit.name}={limit.default})"
                )


@dataclass(frozen=True, kw_only=True)
class CellPlan:
    """What a cell shows, who its user is, and what runs in it.

    ``user``: the id of the only user, whom the user of the tests is. ``interpreter`` and ``variables`` start its first process,
    which follows the changes of the whole file system if it ``has_tree``, and counts the bytes in ``directory``.
    """

    steps: Sequence[Step]
    user: int
    interpreter: str
    variables: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    has_tree: bool = False
    directory: str = ""

    @property
    def command(self) -> list[str]:
        """The words of the first process."""
        return boot(self.interpreter, [KIT], "server")


def bubblewrap_arguments(plan: CellPlan, *, info: int, texts: Mapping[str, int]) -> list[str]:
    """Return bwrap's arguments for a cell. ``info``: the descriptor that it reports to; ``texts``: those with the text of each file."""
    kinds = {"bind": "--ro-bind", "writable": "--bind", "device": "--dev-bind", "link": "--symlink", "proc": "--proc"}
    words = [
        *("--unshare-user", "--uid", str(plan.user), "--gid", str(plan.user), "--cap-drop", "ALL"),
        *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--hostname", HOST_NAME),
        *("--as-pid-1", "--info-fd", str(info), "--clearenv"),
        *(part for name, value in plan.variables.items() for part in ("--setenv", name, value)),
    ]
    for step in plan.steps:
        if step.kind == "tmpfs":
            words += ["--perms", f"{step.mode:o}", "--size", str(step.size), "--tmpfs", step.path]
        elif step.kind == "directory":
            words += ["--perms", f"{step.mode:o}", "--dir", step.path]
        elif step.kind == "file":
            words += ["--perms", f"{step.mode:o}", "--file", str(texts[step.path]), step.path]
        elif step.kind == "seal":
            words += ["--remount-ro", step.path]
        elif step.kind == "proc":
            words += ["--proc", step.path, "--remount-ro", step.path]
        else:
            words += [kinds[step.kind], step.source, step.path]
    return [*words, "--chdir", "/", "--", *plan.command]


class Cell:
    """One cell, from `start` to `stop`. ``bwrap`` is the path of bubblewrap; without it, `inside.init` creates the namespaces."""

    def __init__(self, plan: CellPlan, *, bwrap: str = "") -> None:
        self._plan = plan
        self._bwrap = bwrap
        self._process: subprocess.Popen[bytes] | _Started | None = None
        self._first = -1
        self._namespace = ""
        self._enter_command: list[str] = []

    def start(self) -> None:
        """Start the cell. Raises: this machine cannot start it → CellError with the reason."""
        try:
            target = self._start()
            self._first = os.pidfd_open(target)
            self._namespace = os.readlink(f"/proc/{target}/ns/pid")
            limits = asdict(self._plan.limits)
            about = {"has_tree": self._plan.has_tree, "directory": self._plan.directory}
            self.ask({"do": "begin", "limits": limits, "most_bytes": limits["disk_bytes"], **about}, [])
        except BaseException as error:
            self.stop()
            if isinstance(error, EOFError):
                raise CellError("its first process ended") from error
            if isinstance(error, OSError):
                raise CellError(f"{error.filename or 'pidfd_open'}: {error.strerror}") from error
            raise
        interpreter = os.path.realpath(sys.executable)
        self._enter_command = [*boot(interpreter, PROGRAM_PATHS, "enter"), str(target), *map(str, limits.values())]

    def enter_command(self, lost: str = "") -> list[str]:
        """Return the words that, before a directory and the words of a command, run it in the cell.

        ``lost``: a file in which is written why the cell could not be entered.
        """
        return [*self._enter_command, lost]

    def ask(
        self, request: Mapping[str, Any], blobs: list[bytes], *, is_over: Callable[[], bool] | None = None
    ) -> tuple[dict[str, Any], list[bytes]]:
        """Return the answer of the first process to a request. Raises: it ended, or was ended once ``is_over`` → EOFError, OSError."""
        if self._process is None or self._process.stdin is None or self._process.stdout is None:
            raise EOFError
        send(self._process.stdin.fileno(), request, blobs)
        while is_over is not None and not _wait_for(self._process.stdout.fileno(), POLL_S):
            if is_over():
                self.stop()
                raise EOFError
        return receive(self._process.stdout.fileno())

    def stop(self) -> None:
        """Kill every process in the cell and return when all are dead. Does nothing when the cell is not running."""
        process, self._process = self._process, None
        if process is None:
            return
        if self._first >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        if self._first >= 0:
            # The first process ends last. If a command was killed together with the process that waited for it, the host's first
            # process reaps it: at once, later, or in some containers never. So the dead need not be reaped.
            deadline = time.monotonic() + END_S
            while not _wait_for(self._first, POLL_S) and time.monotonic() < deadline and _is_anything_alive(self._namespace):
                pass
            os.close(self._first)
            self._first = -1
        process.kill()  # it waits for its child, which waits for commands that the host may never reap
        process.wait()

    def _start(self) -> int:
        """Start the processes and return the host's id of the first one in the cell, when it is ready."""
        readable, info = os.pipe()
        if not self._bwrap:
            plan = _in_memory(self._description())
            self._process = _Started(plan, info)
        else:
            texts = {step.path: _in_memory(step.source) for step in self._plan.steps if step.kind == "file"}
            words, passed = [self._bwrap, *bubblewrap_arguments(self._plan, info=info, texts=texts)], [info, *texts.values()]
            pipe = subprocess.PIPE
            try:  # a new session: Ctrl-C must not end the cell before its sandbox; no variables: they can be read inside
                self._process = subprocess.Popen(
                    words, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe, env={}, pass_fds=passed, start_new_session=True
                )
            finally:
                for descriptor in passed:
                    os.close(descriptor)
        with open(readable, encoding="utf-8") as report:
            self._wait_until_ready(self._process)
            return int(json.load(report)["child-pid"])

    def _description(self) -> str:
        plan = self._plan
        steps = [vars(step) for step in plan.steps]
        return json.dumps({"steps": steps, "user": plan.user, "host_name": HOST_NAME, "command": plan.command})

    def _wait_until_ready(self, process: subprocess.Popen[bytes] | _Started) -> None:
        if process.stdout is not None and _wait_for(process.stdout.fileno(), START_S):
            with contextlib.suppress(EOFError):
                receive(process.stdout.fileno())
                return
        process.kill()
        _, errors = process.communicate()
        lines = errors.decode(errors="replace").strip().splitlines()
        raise CellError(shorten(lines[-1].removeprefix("bwrap: "), REASON_LIMIT) if lines else "no answer")


class _Started:
    """A process that `inside.init` started for a cell: what `subprocess.Popen` is for one of bubblewrap."""

    def __init__(self, plan: int, info: int) -> None:
        pipes = [os.pipe() for _ in range(3)]
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        ours = [pipes[0][1], pipes[1][0], pipes[2][0]]
        try:
            self.pid = _starter.start([plan, info, *theirs])
        except CellError:
            for descriptor in ours:
                os.close(descriptor)
            raise
        finally:
            for descriptor in (plan, info, *theirs):
                os.close(descriptor)
        self.stdin, self.stdout, self.stderr = map(io.FileIO, ours, ("wb", "rb", "rb"))
        try:
            self._handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            self._handle = -1

    def kill(self) -> None:
        """End it."""
        if self._handle >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def wait(self) -> None:
        """Wait for its end, once."""
        if self._handle >= 0:
            _wait_for(self._handle)
            os.close(self._handle)
            self._handle = -1

    def communicate(self) -> tuple[bytes, bytes]:
        """Return the rest of its output, and wait for its end."""
        self.stdin.close()
        said = self.stdout.read(), self.stderr.read()
        self.stdout.close()
        self.stderr.close()
        self.wait()
        return said


class _Starter:
    """The program `inside.init`, which starts cells for this process, by forks of itself. A process that was forked from this one has its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: socket.socket | None = None

    def forget(self) -> None:
        """Leave it to the process that this one was forked from."""
        self._lock = threading.Lock()
        if self._asked is not None:
            self._asked.close()
            self._asked = None

    def start(self, descriptors: Sequence[int]) -> int:
        """Return the id of a process that sets a cell up by these descriptors. Raises: there is none → CellError."""
        with self._lock:
            for is_last in (False, True):
                asked = self._running()
                try:
                    socket.send_fds(asked, [b"."], descriptors)
                    return int(asked.recv(20))
                except (OSError, ValueError) as error:  # somebody ended it
                    self.end()
                    if is_last:
                        raise CellError("the program that starts cells ended") from error
            raise AssertionError

    def _running(self) -> socket.socket:
        if self._asked is None:
            mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            words = boot(sys.executable, PROGRAM_PATHS, "init")
            with its, open(os.devnull, "r+b") as nothing:
                descriptors = its.fileno(), nothing.fileno(), nothing.fileno()
                streams = [(os.POSIX_SPAWN_DUP2, descriptor, number) for number, descriptor in enumerate(descriptors)]
                os.posix_spawn(words[0], words, {}, file_actions=streams)
            self._asked = mine
        return self._asked

    def end(self) -> None:
        """End it. Cells that it started go on."""
        if self._asked is not None:
            with contextlib.suppress(OSError):
                self._asked.shutdown(socket.SHUT_RDWR)
            self._asked.close()
            self._asked = None


_starter = _Starter()
atexit.register(_starter.end)
if hasattr(os, "register_at_fork"):  # not where no process can be forked
    os.register_at_fork(after_in_child=_starter.forget)


def _in_memory(text: str) -> int:
    """Return a descriptor from which ``text`` can be read."""
    descriptor = os.memfd_create("text")
    with open(descriptor, "w", encoding="utf-8", errors="surrogateescape", closefd=False) as file:
        file.write(text)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _wait_for(descriptor: int, seconds: float | None = None) -> bool:
    """Return whether ``descriptor`` became readable within the time. select cannot: it ends at descriptor 1024."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(None if seconds is None else seconds * 1000))


def _is_anything_alive(namespace: str) -> bool:
    """Return whether a process of a pid namespace lives, other than its first."""
    for entry in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it ended meanwhile, or belongs to another user
            if os.readlink(f"/proc/{entry}/ns/pid") == namespace:
                with open(f"/proc/{entry}/status", encoding="utf-8", errors="replace") as file:
                    status = dict(line.split(":", 1) for line in file if ":" in line)
                if status["State"].split()[0] not in {"Z", "X"} and status["NSpid"].split()[-1] != "1":
                    return True
    return False
