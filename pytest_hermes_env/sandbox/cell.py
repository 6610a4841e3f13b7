"""A cell: the Linux namespaces that confine commands. It starts once, every command joins it, and its end kills all its processes.

All commands of a sandbox share one cell: the next command reaches a server that an earlier one started, as on an unconfined
machine, and a command costs a few milliseconds more, not a whole set-up.

Place in the flow: `confinement.available` tries a cell; `LocalSandbox` has one while it is active.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_hermes_env.errors import shorten
from pytest_hermes_env.sandbox.cell_init import DEVICE_LINKS, DEVICES, ORDINARY_USER

__all__ = ["Cell", "CellError", "CellLayout", "bubblewrap_arguments", "hidden_paths"]

START_S = 10.0
"""Longest time to start a cell, in seconds; it takes about 0.03."""
END_S = 5.0
"""Longest time until killed processes are dead, in seconds."""
POLL_S = 0.02
"""Seconds between two checks of them."""
REASON_LIMIT = 120
"""Most characters of a reason; bubblewrap appends advice."""

INIT_PROGRAM = str(Path(__file__).with_name("cell_init.py"))

KEYS_IN_HOME = (
    ".aws",
    ".azure",
    ".bash_login",
    ".bash_profile",
    ".bashrc",
    ".cache/huggingface/stored_tokens",
    ".cache/huggingface/token",
    ".claude",
    ".claude.json",
    ".codex",
    ".config/gcloud",
    ".config/gh",
    ".docker",
    ".env",
    ".git-credentials",
    ".gnupg",
    ".hermes/.env",
    ".hermes/auth.json",
    ".huggingface",
    ".kube",
    ".netrc",
    ".npmrc",
    ".profile",
    ".pypirc",
    ".ssh",
)
"""Where keys usually are in a home directory. hermes sources the start-up files of the shell, and people export keys in them."""
WAIT_SCRIPT = 'echo ready; cat > /dev/null; [ "$$" = 2 ] && kill -9 -1'
"""What bubblewrap runs. bubblewrap's first process ends after all others, so this kills them, but only as process 2 of a private
pid namespace."""
SOCKET_DIRECTORY = "/run"
"""Where the sockets of other programs are: a read-only file system does not prevent connections."""
NIXOS_PROGRAMS = ("booted-system", "current-system", "opengl-driver", "wrappers")
"""Where NixOS has its programs in /run."""


class CellError(Exception):
    """The cell could not be started; the text is a short reason."""


@dataclass(frozen=True, kw_only=True)
class CellLayout:
    """The directories and files of a cell. Commands can write only below ``writable``.

    ``empty_directory`` and ``empty_file`` cover hidden paths.
    """

    writable: Path
    empty_directory: Path
    empty_file: Path

    @classmethod
    def prepare(cls, base: Path) -> CellLayout:
        """Create the layout in ``base``."""
        layout = cls(writable=base / "world", empty_directory=base / "empty", empty_file=base / "blank")
        for directory in (layout.writable / "home", layout.writable / "tmp", layout.writable / "shm", layout.empty_directory):
            directory.mkdir(parents=True)
        layout.empty_file.touch()
        return layout

    def covers(self, hidden: Iterable[str]) -> list[tuple[str, str]]:
        """Return a pair of cover and path for each hidden path."""
        return [(str(self.empty_directory if os.path.isdir(path) else self.empty_file), path) for path in hidden]


def hidden_paths(environment: Mapping[str, str], directory: Path, writable: Path) -> list[str]:
    """Return the existing files and directories that a confined command cannot read: keys, and sockets of other programs.

    ``directory`` is where the tests run; its ``.env`` may have keys, too. Links are followed: their target is hidden.
    """
    home = Path(environment.get("HOME") or Path.home())
    candidates = [home / name for name in KEYS_IN_HOME] + _socket_paths() + [directory / ".env"]
    if environment.get("HERMES_HOME"):
        candidates += [Path(environment["HERMES_HOME"]) / name for name in (".env", "auth.json")]
    if environment.get("SSH_AUTH_SOCK"):
        candidates.append(Path(environment["SSH_AUTH_SOCK"]))
    real = {os.path.realpath(candidate) for candidate in candidates if os.path.lexists(candidate)}
    return sorted(path for path in real if os.path.exists(path) and not writable.is_relative_to(path))


def _socket_paths() -> list[Path]:
    entries = os.scandir(SOCKET_DIRECTORY) if os.path.isdir(SOCKET_DIRECTORY) else ()
    return [Path(entry.path) for entry in entries if entry.name not in NIXOS_PROGRAMS and not entry.is_symlink()]


def bubblewrap_arguments(layout: CellLayout, hidden: Iterable[str], *, info: int, as_root: bool) -> list[str]:
    """Return bwrap's arguments for a cell that prints ``ready`` and waits until its standard input ends.

    ``info`` is the descriptor that bwrap reports to. Root becomes an ordinary user without capabilities: root itself could write
    ``/proc/sys`` and undo the mounts.
    """
    devices = [part for name in DEVICES for part in ("--dev-bind-try", f"/dev/{name}", f"/dev/{name}")]
    links = [part for name, target in DEVICE_LINKS for part in ("--symlink", target, f"/dev/{name}")]
    user = ["--uid", str(ORDINARY_USER), "--gid", str(ORDINARY_USER)] if as_root else []
    writable = str(layout.writable)
    return [
        *("--unshare-user", *user, "--unshare-pid", "--unshare-net", "--unshare-ipc", "--info-fd", str(info)),
        *("--ro-bind", "/", "/", "--proc", "/proc", "--remount-ro", "/proc"),
        *("--tmpfs", "/dev", *devices, *links, "--dir", "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108 - its name
        *(part for cover, path in layout.covers(hidden) for part in ("--ro-bind", cover, path)),
        *("--bind", writable, writable, "--bind", f"{writable}/shm", "/dev/shm"),  # noqa: S108
        *("--", "/bin/sh", "-c", WAIT_SCRIPT),
    ]


class Cell:
    """One cell, from `start` to `stop`. ``bwrap`` is the path of bubblewrap; without it, `cell_init` creates the namespaces."""

    def __init__(self, layout: CellLayout, *, bwrap: str = "", hidden: Iterable[str] = ()) -> None:
        self._layout = layout
        self._bwrap = bwrap
        self._hidden = list(hidden)
        self._process: subprocess.Popen[str] | None = None
        self._first = -1
        self._namespace = ""
        self._enter_command: list[str] = []

    def start(self) -> None:
        """Start the cell. Raises: this machine cannot start it → CellError with the reason."""
        nsenter = shutil.which("nsenter")
        if nsenter is None:
            raise CellError("nsenter: not installed (package util-linux)")
        try:
            target = self._start_bubblewrap() if self._bwrap else self._start_init()
            self._first = os.pidfd_open(target)
            self._namespace = os.readlink(f"/proc/{target}/ns/pid")
        except BaseException as error:
            self.stop()
            if isinstance(error, OSError):
                raise CellError(f"{error.filename or 'pidfd_open'}: {error.strerror}") from error
            raise
        namespaces = ("--user", "--mount", "--pid", "--net", "--ipc")
        self._enter_command = [nsenter, "--target", str(target), "--preserve-credentials", *namespaces, "--"]

    def enter_command(self) -> list[str]:
        """Return the words that, before a command line, run it in the cell, in the root directory."""
        return list(self._enter_command)

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
            self._wait_until_all_are_dead()
            os.close(self._first)
            self._first = -1
            process.kill()  # bubblewrap waits for its child, which waits for commands that the host may never reap
        process.wait()

    def _wait_until_all_are_dead(self) -> None:
        """Wait for the end of the first process, which ends last, or until the others are dead but not yet reaped.

        If a command was killed together with the nsenter that waited for it, the host's first process reaps it: at once, later,
        or in some containers never.
        """
        deadline = time.monotonic() + END_S
        while not _wait_for(self._first, POLL_S) and time.monotonic() < deadline and _is_anything_alive(self._namespace):
            pass

    def _start_init(self) -> int:
        paths = (str(path) for path in (self._layout.writable, self._layout.empty_directory, self._layout.empty_file))
        process = self._spawn([sys.executable, "-I", "-S", INIT_PROGRAM, *paths, *self._hidden])
        line = self._first_line()
        report = json.loads(line) if line else {"error": self._last_error(process)}
        process.wait()
        if "error" in report:
            raise CellError(report["error"])
        return int(report["pid"])

    def _start_bubblewrap(self) -> int:
        readable, writable = os.pipe()
        try:
            arguments = bubblewrap_arguments(self._layout, self._hidden, info=writable, as_root=os.geteuid() == 0)
            process = self._spawn([self._bwrap, *arguments], writable)
        finally:
            os.close(writable)
        with open(readable, encoding="utf-8") as report:
            if self._first_line() != "ready\n":
                raise CellError(self._last_error(process))
            return int(json.load(report)["child-pid"])

    def _spawn(self, words: list[str], *descriptors: int) -> subprocess.Popen[str]:
        """Start the process that runs the cell, in a new session: Ctrl-C must not end the cell before its sandbox.

        It gets no variables: processes in the cell can read the variables of its first process.
        """
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            words, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env={}, pass_fds=descriptors, start_new_session=True
        )
        return self._process

    def _first_line(self) -> str:
        """Return the first line that the process prints, empty if it prints none in time."""
        if self._process is None or self._process.stdout is None:
            return ""
        return self._process.stdout.readline() if _wait_for(self._process.stdout.fileno(), START_S) else ""

    def _last_error(self, process: subprocess.Popen[str]) -> str:
        """Return the last line of standard error of a cell that did not start."""
        process.kill()
        _, errors = process.communicate()
        lines = errors.strip().splitlines()
        return shorten(lines[-1].removeprefix("bwrap: "), REASON_LIMIT) if lines else "no answer"


def _wait_for(descriptor: int, seconds: float | None = None) -> bool:
    """Return whether ``descriptor`` became readable within the time. select cannot: it ends at descriptor 1024."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(None if seconds is None else seconds * 1000))


def _is_anything_alive(namespace: str) -> bool:
    """Return whether a process of a pid namespace lives, other than its first."""
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            with contextlib.suppress(OSError):  # it ended meanwhile, or belongs to another user
                if os.readlink(f"/proc/{entry}/ns/pid") == namespace and not _is_first_or_dead(entry):
                    return True
    return False


def _is_first_or_dead(process: str) -> bool:
    with open(f"/proc/{process}/status", encoding="utf-8", errors="replace") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line)
    return fields["State"].split()[0] in {"Z", "X"} or fields["NSpid"].split()[-1] == "1"
