"""A confined world for commands: started once, joined by every command, and ended with all that runs in it.

One world for all commands of a sandbox, not one for each: a server that one command leaves behind is reached by the next one,
as on an unconfined machine, and a command costs a few milliseconds more, not a whole set-up.

Place in the flow: `confinement.available` tries it; `LocalSandbox` keeps one for as long as it is active.
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

__all__ = ["Cell", "CellError", "Ground", "bubblewrap_arguments", "hidden_places"]

START_S = 10.0
"""How long a world may take to be there, in seconds; it takes about 0.03."""
END_S = 5.0
"""How long killed processes may take to be dead, in seconds."""
LOOK_S = 0.02
"""Seconds between two looks at them."""
REASON_LIMIT = 120
"""Characters of a reason; bubblewrap's run into advice."""

HOLDER = str(Path(__file__).with_name("cell_init.py"))

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
"""Where keys usually lie in a home. hermes sources the start-up files of the shell, and people export keys in them."""
WAITING = 'echo ready; cat > /dev/null; [ "$$" = 2 ] && kill -9 -1'
"""What bubblewrap runs. Its first process would outlive this one as long as anything else does, so that is killed: only where
this one is the second process of a world of its own."""
DOORS = "/run"
"""Where other programs' sockets lie: one can be connected to on a read-only file system, too."""
NOT_DOORS = ("booted-system", "current-system", "opengl-driver", "wrappers")
"""What NixOS keeps in /run: all of its programs."""


class CellError(Exception):
    """The confined world could not be started; the text is the reason in a few words."""


@dataclass(frozen=True, kw_only=True)
class Ground:
    """What a confined world stands on. In ``world``, and there alone, commands may write.

    ``empty``, a directory, and ``blank``, a file, have nothing in them: they cover what is hidden.
    """

    world: Path
    empty: Path
    blank: Path

    @classmethod
    def prepare(cls, base: Path) -> Ground:
        """Make all of it in ``base``."""
        ground = cls(world=base / "world", empty=base / "empty", blank=base / "blank")
        for directory in (ground.world / "home", ground.world / "tmp", ground.world / "shm", ground.empty):
            directory.mkdir(parents=True)
        ground.blank.touch()
        return ground

    def covers(self, hidden: Iterable[str]) -> list[tuple[str, str]]:
        """Return what is put over each hidden place, as pairs of cover and place."""
        return [(str(self.empty if os.path.isdir(place) else self.blank), place) for place in hidden]


def hidden_places(environment: Mapping[str, str], directory: Path, world: Path) -> list[str]:
    """Return the existing files and directories that a confined command does not see: keys, and doors to other processes.

    ``directory`` is where the tests run; its ``.env`` may hold keys, too. Links are followed, so that what they name is hidden.
    """
    home = Path(environment.get("HOME") or Path.home())
    candidates = [home / name for name in KEYS_IN_HOME] + _doors() + [directory / ".env"]
    if environment.get("HERMES_HOME"):
        candidates += [Path(environment["HERMES_HOME"]) / name for name in (".env", "auth.json")]
    if environment.get("SSH_AUTH_SOCK"):
        candidates.append(Path(environment["SSH_AUTH_SOCK"]))
    real = {os.path.realpath(candidate) for candidate in candidates if os.path.lexists(candidate)}
    return sorted(place for place in real if os.path.exists(place) and not world.is_relative_to(place))


def _doors() -> list[Path]:
    entries = os.scandir(DOORS) if os.path.isdir(DOORS) else ()
    return [Path(entry.path) for entry in entries if entry.name not in NOT_DOORS and not entry.is_symlink()]


def bubblewrap_arguments(ground: Ground, hidden: Iterable[str], *, info: int, as_root: bool) -> list[str]:
    """Return bwrap's arguments for a world that waits until its standard input ends, and says ``ready`` before.

    ``info`` is the descriptor that bwrap reports to. Root becomes an ordinary user, who holds no capability inside: for root
    itself, ``/proc/sys`` would be open, and the mounts could be undone.
    """
    devices = [part for name in DEVICES for part in ("--dev-bind-try", f"/dev/{name}", f"/dev/{name}")]
    links = [part for name, target in DEVICE_LINKS for part in ("--symlink", target, f"/dev/{name}")]
    user = ["--uid", str(ORDINARY_USER), "--gid", str(ORDINARY_USER)] if as_root else []
    world = str(ground.world)
    return [
        *("--unshare-user", *user, "--unshare-pid", "--unshare-net", "--unshare-ipc", "--info-fd", str(info)),
        *("--ro-bind", "/", "/", "--proc", "/proc", "--remount-ro", "/proc"),
        *("--tmpfs", "/dev", *devices, *links, "--dir", "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108 - its name
        *(part for cover, place in ground.covers(hidden) for part in ("--ro-bind", cover, place)),
        *("--bind", world, world, "--bind", f"{world}/shm", "/dev/shm"),  # noqa: S108
        *("--", "/bin/sh", "-c", WAITING),
    ]


class Cell:
    """One confined world, from `start` to `stop`. ``bwrap`` is bubblewrap's path; without it the kernel is asked directly."""

    def __init__(self, ground: Ground, *, bwrap: str = "", hidden: Iterable[str] = ()) -> None:
        self._ground = ground
        self._bwrap = bwrap
        self._hidden = list(hidden)
        self._process: subprocess.Popen[str] | None = None
        self._first = -1
        self._namespace = ""
        self._joining: list[str] = []

    def start(self) -> None:
        """Start the world. Raises: it cannot be started here → CellError with the reason."""
        nsenter = shutil.which("nsenter")
        if nsenter is None:
            raise CellError("nsenter: not installed (package util-linux)")
        try:
            target = self._start_bubblewrap() if self._bwrap else self._start_holder()
            self._first = os.pidfd_open(target)
            self._namespace = os.readlink(f"/proc/{target}/ns/pid")
        except BaseException as error:
            self.stop()
            if isinstance(error, OSError):
                raise CellError(f"{error.filename or 'pidfd_open'}: {error.strerror}") from error
            raise
        namespaces = ("--user", "--mount", "--pid", "--net", "--ipc")
        self._joining = [nsenter, "--target", str(target), "--preserve-credentials", *namespaces, "--"]

    def joining(self) -> list[str]:
        """Return the words before a command line that runs it inside, in the root directory."""
        return list(self._joining)

    def stop(self) -> None:
        """End the world and every process in it; returns when none of them lives. Does nothing when it is not there."""
        process, self._process = self._process, None
        if process is None:
            return
        if self._first >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        process.wait()
        if self._first >= 0:
            self._wait_until_nothing_lives()
            os.close(self._first)
            self._first = -1

    def _wait_until_nothing_lives(self) -> None:
        """Wait for the end of the first process, which is the last; or until the others are dead but not yet reaped.

        A command that was killed together with the nsenter that waited for it is reaped by the machine's own first process: at
        once, later, or in some containers never.
        """
        deadline = time.monotonic() + END_S
        while not _wait_for(self._first, LOOK_S) and time.monotonic() < deadline and _is_anything_alive(self._namespace):
            pass

    def _start_holder(self) -> int:
        ground = (str(place) for place in (self._ground.world, self._ground.empty, self._ground.blank))
        process = self._spawn([sys.executable, "-I", "-S", HOLDER, *ground, *self._hidden])
        line = self._line()
        said = json.loads(line) if line else {"error": self._end_of_errors(process)}
        process.wait()
        if "error" in said:
            raise CellError(said["error"])
        return int(said["pid"])

    def _start_bubblewrap(self) -> int:
        readable, writable = os.pipe()
        try:
            arguments = bubblewrap_arguments(self._ground, self._hidden, info=writable, as_root=os.geteuid() == 0)
            process = self._spawn([self._bwrap, *arguments], writable)
        finally:
            os.close(writable)
        with open(readable, encoding="utf-8") as report:
            if self._line() != "ready\n":
                raise CellError(self._end_of_errors(process))
            return int(json.load(report)["child-pid"])

    def _spawn(self, words: list[str], *descriptors: int) -> subprocess.Popen[str]:
        """Start the process that holds the world; in a session of its own: Ctrl-C must not end it before its sandbox does.

        Without variables: processes inside can read those of the first process of their world.
        """
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            words, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env={}, pass_fds=descriptors, start_new_session=True
        )
        return self._process

    def _line(self) -> str:
        """Return the first line that the world says, empty when it says nothing."""
        if self._process is None or self._process.stdout is None:
            return ""
        return self._process.stdout.readline() if _wait_for(self._process.stdout.fileno(), START_S) else ""

    def _end_of_errors(self, process: subprocess.Popen[str]) -> str:
        """Return the last thing that a world said which did not come up."""
        process.kill()
        _, errors = process.communicate()
        lines = errors.strip().splitlines()
        return shorten(lines[-1].removeprefix("bwrap: "), REASON_LIMIT) if lines else "no answer"


def _wait_for(descriptor: int, seconds: float | None = None) -> bool:
    """Return whether there was something to read from ``descriptor`` within the time. Not with select, which ends at 1024."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(None if seconds is None else seconds * 1000))


def _is_anything_alive(namespace: str) -> bool:
    """Tell whether a process of a pid namespace lives, besides its first."""
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            with contextlib.suppress(OSError):  # it ended meanwhile, or is somebody else's
                if os.readlink(f"/proc/{entry}/ns/pid") == namespace and not _is_first_or_dead(entry):
                    return True
    return False


def _is_first_or_dead(process: str) -> bool:
    with open(f"/proc/{process}/status", encoding="utf-8", errors="replace") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line)
    return fields["State"].split()[0] in {"Z", "X"} or fields["NSpid"].split()[-1] == "1"
