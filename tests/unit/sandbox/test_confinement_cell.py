"""A cell confines commands, and its end kills all its processes."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_hermes_env.sandbox import cell as cells
from pytest_hermes_env.sandbox.cell import Cell, CellError, CellLayout, bubblewrap_arguments, hidden_paths
from pytest_hermes_env.sandbox.confinement import Confinement

UNSHARE = Confinement(kind="unshare")


@pytest.fixture(params=["unshare", "bubblewrap"])
def kind(request: pytest.FixtureRequest) -> str:
    """Both ways to confine; one that this machine refuses to its own programs is skipped."""
    request.getfixturevalue("namespaces" if request.param == "unshare" else "bubblewrap")
    return request.param


@pytest.fixture
def layout(tmp_path):
    """The layout of a cell, in a directory of the test."""
    return CellLayout.prepare(Path(os.path.realpath(tmp_path)))


class Inside:
    """Runs commands in a cell."""

    def __init__(self, cell: Cell, layout: CellLayout) -> None:
        self.cell, self.layout = cell, layout

    def words(self, script: str, *arguments: str) -> list[str]:
        return [*self.cell.enter_command(), "/bin/sh", "-c", f'cd "{self.layout.writable}"; {script}', "sh", *arguments]

    def run(self, script: str, *arguments: str) -> tuple[int, str]:
        ran = subprocess.run(self.words(script, *arguments), check=False, capture_output=True, text=True)
        return ran.returncode, ran.stdout + ran.stderr


@pytest.fixture
def inside(kind, layout):
    """A started cell."""
    cell = Confinement(kind=kind).cell(layout)
    assert cell is not None
    cell.start()
    yield Inside(cell, layout)
    cell.stop()


def test_only_the_writable_directory_can_be_written(inside, tmp_path):
    """Everything else is read-only, whoever owns it."""
    (tmp_path / "given").write_text("before")

    outcomes = [
        inside.run('echo new > "$1"', place)[0]
        for place in (
            f"{inside.layout.writable}/new",
            "/dev/shm/new",
            f"{tmp_path}/given",
            f"{tmp_path}/new",
            "/new",
            "/dev/new",
        )
    ]

    assert outcomes == [0, 0, *[outcomes[2]] * 4]
    assert outcomes[2] != 0
    assert (tmp_path / "given").read_text() == "before"
    assert (inside.layout.writable / "new").read_text() == "new\n"


def test_what_can_be_read_outside_can_be_read_inside(inside, tmp_path):
    """Programs and test data are readable."""
    (tmp_path / "given").write_text("data")

    assert inside.run('cat "$1"', f"{tmp_path}/given") == (0, "data")


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


def test_no_process_inside_has_a_capability(inside):
    """No process can undo the set-up, even if the tests run as root."""
    code, status = inside.run("cat /proc/self/status")
    held = {line.split()[1] for line in status.splitlines() if line.startswith(("CapInh", "CapPrm", "CapEff", "CapAmb"))}

    assert (code, held) == (0, {"0000000000000000"})
    assert inside.run("id -u") == (0, f"{os.geteuid() or 1000}\n")
    assert inside.run("echo 1 > /proc/sys/vm/overcommit_memory")[0] != 0


def test_processes_outside_are_invisible(inside):
    """A command can neither read the variables of a process outside nor kill it."""
    with subprocess.Popen(["sleep", "60"], env={"PLANTED": "key"}) as other:
        read = inside.run('cat "/proc/$1/environ"; cat /proc/[0-9]*/environ 2> /dev/null', str(other.pid))[1]
        inside.run('kill -9 "$1"', str(other.pid))
        ended = other.poll()
        other.kill()

    assert "PLANTED" not in read
    assert ended is None


def test_first_process_has_no_variables(inside):
    """Other processes inside can read them."""
    assert inside.run("cat /proc/1/environ 2> /dev/null")[1] == ""


@pytest.mark.usefixtures("namespaces")
def test_hidden_paths_are_empty(tmp_path, monkeypatch, layout):
    """Keys in the home and in the directory of the tests cannot be read."""
    home = tmp_path / "person"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("key")
    (home / ".netrc").write_text("key")
    (home / "notes").write_text("no key")
    monkeypatch.setenv("HOME", str(home))
    cell = UNSHARE.cell(layout)
    cell.start()
    seen = Inside(cell, layout).run(f"cd {home}; cat .netrc notes; ls .ssh")
    cell.stop()

    assert seen == (0, "no key")


def test_exit_codes_and_signals_come_through(inside):
    """The exit code or signal of a command is the same outside."""
    killed = subprocess.run(inside.words("kill -9 $$"), check=False)

    assert (inside.run("exit 7")[0], killed.returncode) == (7, -signal.SIGKILL)


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
    detach = f"[ $$ = 2 ] || kill -9 2; setsid sh -c 'cd /; echo begun; exec {sleeper}' &"  # 2: what bubblewrap runs
    with subprocess.Popen(inside.words(detach), stdout=subprocess.PIPE) as started:
        started.stdout.readline()
        before = living_in_cells(sleeper)

        inside.cell.stop()

    assert before
    assert living_in_cells(sleeper) == []


def test_stop_does_not_wait_for_unreaped_commands(inside, tmp_path):
    """A killed command that no process reaps does not keep the cell alive."""
    script = (
        "import ctypes, os, subprocess, sys; from pathlib import Path; from pytest_hermes_env.sandbox.cell import *\n"
        "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\n"  # PR_SET_CHILD_SUBREAPER: orphans are this process's, who does not reap them
        "cell = Cell(CellLayout.prepare(Path(sys.argv[1])), bwrap=sys.argv[2]); cell.start()\n"
        "words = [*cell.enter_command(), 'sh', '-c', 'echo begun; exec sleep 300.125']\n"
        "command = subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True); command.stdout.readline()\n"
        "os.killpg(command.pid, 9); command.wait(); command.stdout.close(); cell.stop(); print('stopped')"
    )
    words = [sys.executable, "-c", script, str(tmp_path / "other"), inside.cell._bwrap]

    ran = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)

    assert (ran.stdout, ran.stderr) == ("stopped\n", "")


def test_cell_ends_with_the_process_that_started_it(inside, tmp_path):
    """A killed test run leaks no cell, whatever still runs in it."""
    script = (
        "import subprocess, sys; from pathlib import Path; from pytest_hermes_env.sandbox.cell import *\n"
        "cell = Cell(CellLayout.prepare(Path(sys.argv[1])), bwrap=sys.argv[2]); cell.start()\n"
        "subprocess.run([*cell.enter_command(), 'sh', '-c', 'setsid sleep 300.875 > /dev/null 2>&1 &'], check=True)\n"
        "print(cell.enter_command()[2], flush=True); input()"
    )
    words = [sys.executable, "-c", script, str(tmp_path / "other"), inside.cell._bwrap]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        first = os.pidfd_open(int(starter.stdout.readline()))
        starter.kill()
    poll = select.poll()
    poll.register(first, select.POLLIN)
    ended = poll.poll(10_000)
    os.close(first)

    assert ended


def test_stopping_twice_or_before_the_start_does_nothing(layout):
    """Whoever cleans up need not know how far it came."""
    cell = Cell(layout)

    cell.stop()
    cell.stop()

    assert cell.enter_command() == []


@pytest.mark.parametrize(
    ("bwrap", "reason"),
    [
        ("", "mount {world}: No such file or directory"),
        ("/nowhere/bwrap", "/nowhere/bwrap: No such file or directory"),
        ("{tmp}/silent", "no answer"),
        ("{tmp}/verbose", "x" * 119 + "…"),
    ],
)
@pytest.mark.usefixtures("namespaces")
def test_cell_that_does_not_start_gives_the_reason(layout, tmp_path, bwrap, reason):
    """The reason is the last thing that was said, in one line."""
    for name, script in (("silent", "exit 0"), ("verbose", f"echo first >&2; echo bwrap: {'x' * 300} >&2; exit 1")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    if not bwrap:
        shutil.rmtree(layout.writable)
    cell = Cell(layout, bwrap=bwrap.format(tmp=tmp_path))

    with pytest.raises(CellError) as raised:
        cell.start()

    assert str(raised.value) == reason.format(world=layout.writable)


def test_bubblewrap_gets_the_arguments_of_the_same_cell():
    """Its command line, word for word."""
    layout = CellLayout(writable=Path("/w"), empty_directory=Path("/e"), empty_file=Path("/b"))

    arguments = bubblewrap_arguments(layout, ["/etc/hostname", "/usr"], info=5, as_root=False)

    assert " ".join(arguments) == (
        "--unshare-user --unshare-pid --unshare-net --unshare-ipc --info-fd 5 "
        "--ro-bind / / --proc /proc --remount-ro /proc --tmpfs /dev "
        "--dev-bind-try /dev/null /dev/null --dev-bind-try /dev/zero /dev/zero --dev-bind-try /dev/full /dev/full "
        "--dev-bind-try /dev/random /dev/random --dev-bind-try /dev/urandom /dev/urandom --dev-bind-try /dev/tty /dev/tty "
        "--symlink /proc/self/fd /dev/fd --symlink /proc/self/fd/0 /dev/stdin --symlink /proc/self/fd/1 /dev/stdout "
        "--symlink /proc/self/fd/2 /dev/stderr --dir /dev/shm --remount-ro /dev "
        "--ro-bind /b /etc/hostname --ro-bind /e /usr --bind /w /w --bind /w/shm /dev/shm "
        "-- /bin/sh -c " + cells.WAIT_SCRIPT
    )


def test_root_is_an_ordinary_user_in_bubblewrap():
    """As root it would hold every capability there."""
    layout = CellLayout(writable=Path("/w"), empty_directory=Path("/e"), empty_file=Path("/b"))

    arguments = bubblewrap_arguments(layout, [], info=5, as_root=True)

    assert arguments[:5] == ["--unshare-user", "--uid", "1000", "--gid", "1000"]


def test_hidden_places_are_those_that_hold_keys_or_lead_out(tmp_path, monkeypatch):
    """Only existing paths are hidden, the target of a link instead of the link, and never the writable directory."""
    home, project, hermes, run = (tmp_path / name for name in ("home", "project", "hermes", "run"))
    for name in ("home/.ssh/key", "home/real_netrc", "home/notes", "project/.env", "hermes/.env", "hermes/state"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name in ("user", "docker.sock", "current-system"):
        (run / name).mkdir(parents=True)
    (run / "shm").symlink_to("/dev/shm")
    (home / ".netrc").symlink_to("real_netrc")
    (home / ".aws").symlink_to("nowhere")
    world = home / ".docker" / "tmp" / "world"
    world.mkdir(parents=True)
    monkeypatch.setattr(cells, "SOCKET_DIRECTORY", str(run))
    environment = {"HOME": str(home), "HERMES_HOME": str(hermes), "SSH_AUTH_SOCK": str(tmp_path / "agent")}

    places = hidden_paths(environment, project, world)

    names = ("hermes/.env", "home/.ssh", "home/real_netrc", "project/.env", "run/docker.sock", "run/user")
    assert places == [str(tmp_path / name) for name in names]


def test_init_program_reports_a_refused_step(tmp_path):
    """The program on its own answers with one line of JSON."""
    layout = CellLayout.prepare(tmp_path)
    words = [
        sys.executable,
        "-I",
        "-S",
        cells.INIT_PROGRAM,
        *(str(place) for place in (tmp_path / "none", layout.empty_directory, layout.empty_file)),
    ]

    ran = subprocess.run(words, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)

    assert set(json.loads(ran.stdout)) == {"error"}
