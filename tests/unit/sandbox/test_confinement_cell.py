"""A cell of a local sandbox starts, runs commands as they would run outside, and its end kills all its processes."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_hermes_env.sandbox.cell import Cell, CellError, CellPlan, Limits, bubblewrap_arguments
from pytest_hermes_env.sandbox.local_cell import local_plan
from pytest_hermes_env.sandbox.view import Step


class Inside:
    """Runs commands in a cell."""

    def __init__(self, cell: Cell, world: Path) -> None:
        self.cell, self.world = cell, world

    def words(self, script: str, *arguments: str) -> list[str]:
        return [*self.cell.enter_command(), str(self.world), "/bin/sh", "-c", script, "sh", *arguments]

    def run(self, script: str, *arguments: str) -> tuple[int, str]:
        ran = subprocess.run(self.words(script, *arguments), check=False, capture_output=True, text=True)
        return ran.returncode, ran.stdout + ran.stderr


@pytest.fixture
def base(tmp_path):
    """The directory of a cell."""
    return Path(os.path.realpath(tmp_path))


@pytest.fixture
def inside(confinement, base):
    """A started cell."""
    cell = confinement.cell(local_plan(base / "cell", Limits()))
    assert cell is not None
    cell.start()
    yield Inside(cell, base / "cell" / "sandbox")
    cell.stop()


def test_only_the_directory_of_the_sandbox_and_the_private_ones_can_be_written(inside, base):
    """Everything else is read-only or does not exist, whoever owns it."""
    (base / "given").write_text("before")
    places = (f"{inside.world}/new", "/tmp/new", "/dev/shm/new", f"{base}/given", "/new", "/dev/new", "/etc/new")

    outcomes = [inside.run('echo new > "$1"', place)[0] == 0 for place in places]

    assert outcomes == [True, True, True, str(base).startswith("/tmp/"), False, False, False]
    assert (base / "given").read_text() == "before"
    assert (inside.world / "new").read_text() == "new\n"
    assert not Path("/dev/shm/new").exists()


def test_only_network_is_a_private_loopback(inside):
    """A server of the host cannot be reached; a server in the cell can."""
    ask = "import socket, sys; print(socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5).recv(9))"
    answer = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); s.settimeout(30); print(s.getsockname()[1], flush=True);"
        "s.accept()[0].send(b'inside')"
    )
    with socket.create_server(("127.0.0.1", 0)) as outer:
        reached = inside.run('"$1" -c "$2" "$3"', sys.executable, ask, str(outer.getsockname()[1]))
    words = inside.words('"$1" -c "$2"', sys.executable, answer)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        port = server.stdout.readline().strip()
        answered = inside.run('"$1" -c "$2" "$3"', sys.executable, ask, port)

    assert (reached[0], "ConnectionRefusedError" in reached[1]) == (1, True)
    assert answered == (0, "b'inside'\n")


def test_user_of_the_cell_has_a_name_and_no_other_rights(inside):
    """Programs ask for the name of the user; no one is root in the cell of a local sandbox."""
    assert inside.run("id -u; id -un") == (0, f"{os.geteuid() or 1000}\nuser\n")


def test_exit_codes_and_signals_come_through(inside):
    """The exit code or signal of a command is the same outside."""
    ends = [subprocess.run(inside.words(f"kill -{name} $$"), check=False).returncode for name in ("KILL", "TERM", "SEGV")]

    assert (inside.run("exit 7")[0], ends) == (7, [-signal.SIGKILL, -signal.SIGTERM, -signal.SIGSEGV])


def test_command_can_end_in_its_own_way(inside):
    """SIGTERM to the process group reaches the command, which is waited for."""
    words = inside.words("trap 'echo ended; exit 3' TERM; echo begun; while :; do sleep 0.01; done")
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as command:
        begun = command.stdout.readline()
        os.killpg(command.pid, signal.SIGTERM)
        rest = command.stdout.read()

    assert (begun, rest, command.returncode) == ("begun\n", "ended\n", 3)


def test_directory_that_is_not_there_is_left_for_home(inside, base):
    """A command begins in its directory, and in HOME if the cell does not have it."""
    (base / "unknown").mkdir()
    words = [*inside.cell.enter_command(), str(base / "unknown"), "/bin/sh", "-c", "pwd"]

    ran = subprocess.run(words, check=True, capture_output=True, text=True, env={"HOME": str(inside.world)})

    assert ran.stdout == f"{inside.world}\n"


def living_in_cells(command: str) -> list[str]:
    """Command lines, with ``command`` in them, of processes in another pid namespace than this one's."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            namespace = os.readlink(entry / "ns" / "pid")
        except OSError:
            continue
        if command in line and namespace != os.readlink("/proc/self/ns/pid"):
            found.append(line)
    return found


def test_stopping_kills_what_detached_itself(inside):
    """A detached process in another directory ends with its cell; stop returns when it is dead."""
    sleeper = f"sleep 300.{os.getpid()}"
    detach = f"setsid sh -c 'cd /; echo begun; exec {sleeper}' &"
    with subprocess.Popen(inside.words(detach), stdout=subprocess.PIPE) as started:
        started.stdout.readline()
        before = any(living_in_cells(sleeper) for _ in range(1000))  # a process has no command line while it becomes `sleep`

        inside.cell.stop()

    assert before
    assert living_in_cells(sleeper) == []


SCRIPT = (
    "import ctypes, os, subprocess, sys; from pathlib import Path; from pytest_hermes_env.sandbox.cell import *\n"
    "from pytest_hermes_env.sandbox.cell import Limits; from pytest_hermes_env.sandbox.local_cell import local_plan\n"
    "cell = Cell(local_plan(Path(sys.argv[1]), Limits()), bwrap=sys.argv[2]); cell.start()\n"
)


def test_stop_does_not_wait_for_unreaped_commands(inside, base):
    """A killed command that no process reaps does not keep the cell alive."""
    script = (
        SCRIPT
        + "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"  # PR_SET_CHILD_SUBREAPER: orphans are this process's, who does not reap
        "words = [*cell.enter_command(), '/', '/bin/sh', '-c', 'echo begun; exec sleep 300.125']\n"
        "command = subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True); command.stdout.readline()\n"
        "os.killpg(command.pid, 9); command.wait(); command.stdout.close(); cell.stop(); print('stopped')"
    )

    words = [sys.executable, "-c", script, str(base / "other"), inside.cell._bwrap]
    ran = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)

    assert (ran.stdout, ran.stderr) == ("stopped\n", "")


def test_cell_ends_with_the_process_that_started_it(inside, base):
    """A killed test run leaks no cell, whatever still runs in it."""
    script = (
        SCRIPT + "subprocess.run([*cell.enter_command(), '/', '/bin/sh', '-c', 'setsid sleep 300.875 > /dev/null 2>&1 &'])\n"
        "print(os.readlink(f'/proc/self/fd/{cell._first}') and cell.enter_command()[5], flush=True); input()"
    )
    words = [sys.executable, "-c", script, str(base / "other"), inside.cell._bwrap]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        first = os.pidfd_open(int(starter.stdout.readline()))
        starter.kill()
    poll = select.poll()
    poll.register(first, select.POLLIN)
    ended = poll.poll(10_000)
    os.close(first)

    assert ended


def test_stopping_twice_or_before_the_start_does_nothing():
    """Whoever cleans up need not know how far it came."""
    cell = Cell(CellPlan(steps=[], user=1000, interpreter="/bin/true"))

    cell.stop()
    cell.stop()

    assert cell.enter_command() == [""]


@pytest.mark.parametrize(
    ("bwrap", "reason"),
    [
        ("", "{sandbox}: No such file or directory"),
        ("/nowhere/bwrap", "/nowhere/bwrap: No such file or directory"),
        ("{tmp}/silent", "no answer"),
        ("{tmp}/verbose", "x" * 119 + "…"),
    ],
)
@pytest.mark.usefixtures("namespaces")
def test_cell_that_does_not_start_gives_the_reason(base, bwrap, reason):
    """The reason is the last thing that was said, in one line."""
    for name, script in (("silent", "exit 0"), ("verbose", f"echo first >&2; echo bwrap: {'x' * 300} >&2; exit 1")):
        (base / name).write_text(f"#!/bin/sh\n{script}\n")
        (base / name).chmod(0o755)
    plan = local_plan(base / "cell", Limits())
    if not bwrap:
        (base / "cell" / "sandbox").rename(base / "moved")
    cell = Cell(plan, bwrap=bwrap.format(tmp=base))

    with pytest.raises(CellError) as raised:
        cell.start()

    assert str(raised.value) == reason.format(sandbox=base / "cell" / "sandbox")


def test_bubblewrap_gets_the_steps_of_the_same_cell():
    """Its command line, word for word."""
    steps = [
        Step(kind="tmpfs", path="/", size=4096),
        Step(kind="bind", path="/usr", source="/usr"),
        Step(kind="writable", path="/w", source="/v"),
        Step(kind="device", path="/dev/null", source="/dev/null"),
        Step(kind="link", path="/bin", source="usr/bin"),
        Step(kind="file", path="/etc/hosts", source="text", mode=0o644),
        Step(kind="directory", path="/tmp", mode=0o1777),
        Step(kind="proc", path="/proc"),
        Step(kind="seal", path="/"),
    ]
    plan = CellPlan(steps=steps, user=5, interpreter="/py", variables={"A": "b"})

    arguments = bubblewrap_arguments(plan, info=7, texts={"/etc/hosts": 9})

    assert " ".join(arguments[: -len(plan.command)]) == (
        "--unshare-user --uid 5 --gid 5 --cap-drop ALL --unshare-pid --unshare-net --unshare-ipc --unshare-uts --hostname sandbox "
        "--as-pid-1 --info-fd 7 --clearenv --setenv A b --perms 755 --size 4096 --tmpfs / --ro-bind /usr /usr --bind /v /w "
        "--dev-bind /dev/null /dev/null --symlink usr/bin /bin --perms 644 --file 9 /etc/hosts --perms 1777 --dir /tmp "
        "--proc /proc --remount-ro /proc --remount-ro / --chdir / --"
    )
