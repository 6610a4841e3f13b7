"""What a command can try to get out of a cell, or to see of the machine, and that it fails.

Each attack runs in both cells, that of a local sandbox and that of a real shell, by bubblewrap and by namespaces. An attack that
succeeds does no harm: it touches only files and processes of its test.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_hermes_env.sandbox.cell import Limits
from pytest_hermes_env.sandbox.confinement import Confinement
from pytest_hermes_env.sandbox.local_cell import local_plan
from pytest_hermes_env.sandbox.real_shell import Place, RealShell

Run = Callable[[str], str]
"""Runs a script in a cell and returns its output."""
VARIABLES = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", "SHLVL": "1"}


@pytest.fixture(params=["local", "real"])
def attack(request: pytest.FixtureRequest, confinement: Confinement, tmp_path: Path) -> Iterator[Run]:
    """``attack(script)`` runs bash in a cell. ``$python`` is an interpreter there."""
    if request.param == "real":
        shell = RealShell(confinement=confinement)
        variables = {**VARIABLES, "python": "python3"}
        yield lambda script: shell.run(script, Place(cwd="/tmp", variables=variables), changed={}, timeout=60).output.decode()
        shell.close()
        return
    base = Path(os.path.realpath(tmp_path)) / "cell"
    cell = confinement.cell(local_plan(base, Limits()))
    assert cell is not None
    cell.start()
    variables = {**VARIABLES, "HOME": str(base / "sandbox" / "home"), "python": sys.executable}

    def run(script: str) -> str:
        words = [*cell.enter_command(), str(base / "sandbox"), "/bin/bash", "-c", script]
        ran = subprocess.run(words, check=False, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        return ran.stdout.decode()

    yield run
    cell.stop()


def python(program: str) -> str:
    """A script that runs a Python program and shows the name of the error that it ends with."""
    body = "\n".join(f"    {line}" for line in program.splitlines())
    return f"$python - <<'END'\nimport os, socket, ctypes, errno\ntry:\n{body}\nexcept BaseException as e:\n    print(type(e).__name__)\nEND"


@pytest.fixture
def short_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory whose path is short enough for a socket's."""
    directory = tmp_path_factory.getbasetemp() / "s"
    directory.mkdir()
    yield directory
    shutil.rmtree(directory)


@pytest.mark.parametrize("place", ["temporary", "home", "project"])
def test_unix_socket_of_the_machine_cannot_be_reached(attack, short_directory, monkeypatch, place):
    """Wherever it is: a read-only file system would not prevent a connection."""
    monkeypatch.setenv("HOME" if place == "home" else "TMPDIR", str(short_directory))
    monkeypatch.chdir(short_directory)
    path = short_directory / "socket"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        path.chmod(0o777)

        seen = attack(python(f"socket.socket(socket.AF_UNIX).connect({str(path)!r})\nprint('connected')"))

    assert seen == "FileNotFoundError\n"


def test_tmux_server_of_the_machine_runs_no_command(attack, short_directory):
    """A command of a terminal multiplexer would run outside of the cell."""
    tmux = shutil.which("tmux")
    if tmux is None:
        pytest.skip("tmux is not installed")
    words, written = [tmux, "-f", "/dev/null", "-S", str(short_directory / "tmux")], short_directory / "written"
    subprocess.run([*words, "new-session", "-d", "sleep 60"], check=True, env={"PATH": os.environ["PATH"]})
    try:
        attack(f"tmux -S {short_directory}/tmux run-shell 'touch {written}'")
        subprocess.run([*words, "run-shell", f"touch {short_directory}/control"], check=True)
    finally:
        subprocess.run([*words, "kill-server"], check=True)

    assert ((short_directory / "control").exists(), written.exists()) == (True, False)


def test_abstract_socket_of_the_machine_cannot_be_reached(attack):
    """Its name is no path; it belongs to the network namespace."""
    name = f"\0attack-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()

        seen = attack(python(f"socket.socket(socket.AF_UNIX).connect({name!r})\nprint('connected')"))

    assert seen == "ConnectionRefusedError\n"


@pytest.mark.parametrize("device", ["null", "zero", "urandom", "full", "tty"])
def test_devices_of_the_machine_keep_their_modes(attack, confinement, device):
    """A mode that is set to what it is does no harm, and would be refused no less; a device can be used all the same."""
    if confinement.kind == "bubblewrap" and os.geteuid() == 0:
        pytest.skip("root's cells are made without bubblewrap")
    path = f"/dev/{device}"
    before = os.stat(path)

    seen = attack(python(f"os.chmod({path!r}, {before.st_mode & 0o7777})\nprint('changed')"))
    used = attack("echo lost > /dev/null; echo $?; head -c 3 /dev/zero | wc -c")

    assert seen in {"OSError\n", "PermissionError\n"}
    assert os.stat(path).st_ctime_ns == before.st_ctime_ns
    assert used == "0\n3\n"


def test_masked_files_of_the_kernel_are_no_way_to_a_device(attack, confinement):
    """What only root may read in /proc is covered by the machine's /dev/null."""
    if confinement.kind == "bubblewrap" and os.geteuid() == 0:
        pytest.skip("root's cells are made without bubblewrap")
    before = os.stat("/dev/null").st_ctime_ns
    masked = [one.path for one in os.scandir("/proc") if one.is_file() and not one.stat().st_mode & 0o077]

    attack(f"chmod 666 {' '.join(masked) or '/proc/kcore'}")

    assert os.stat("/dev/null").st_ctime_ns == before


@pytest.mark.parametrize("family", ["AF_VSOCK", "AF_PACKET", "AF_ALG"])
def test_socket_families_that_no_namespace_holds_are_refused(attack, family):
    """AF_VSOCK reaches the host of a virtual machine whatever the network namespace."""
    number = {"AF_VSOCK": 40, "AF_PACKET": 17, "AF_ALG": 38}[family]

    seen = attack(python(f"try:\n    socket.socket({number}, socket.SOCK_STREAM)\nexcept OSError as e:\n    print(e.errno)"))

    assert seen == f"{errno.EAFNOSUPPORT}\n"


def test_machine_on_the_network_cannot_be_reached(attack):
    """Neither a server of the machine on its loopback nor an address outside."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        seen = [
            attack(python(f"socket.create_connection(({address!r}, {port}), 2)\nprint('connected')"))
            for address in ("127.0.0.1", "192.0.2.1")
        ]

    assert seen == ["ConnectionRefusedError\n", "OSError\n"]


def test_fifo_of_the_machine_cannot_be_reached(attack, short_directory):
    """Someone on the machine may read what is written to it."""
    fifo = short_directory / "fifo"
    os.mkfifo(fifo, 0o777)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)

    attack(f"[ -p {fifo} ] && echo hello > {fifo}")
    got = os.read(reader, 10)
    os.close(reader)

    assert got == b""


def test_only_harmless_devices_exist_and_none_can_be_made(attack):
    """No disk, no terminal of the user, no machine under a virtual machine."""
    made = attack(
        "ls /dev; for k in 'b 7 0' 'c 1 1'; do mknod /tmp/device-${k// /-} $k 2> /dev/null && echo made; done; true"
    ).split()

    assert set(made) <= {"fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"}
    assert {"null", "zero", "urandom"} <= set(made)


def test_first_process_cannot_be_ended_read_or_traced(attack):
    """Its end would end the cell, and its descriptors lead to the test process."""
    seen = attack(
        "for s in KILL TERM INT STOP HUP SEGV; do kill -$s 1; done; "
        "cat /proc/1/environ /proc/1/mem /proc/1/maps /proc/1/fd/* 2> /dev/null < /dev/null | head -c 100; "
        "readlink /proc/1/fd/* /proc/1/root /proc/1/exe; ls /proc/1/root/ 2> /dev/null; "
        + python("libc = ctypes.CDLL(None, use_errno=True)\nprint(libc.ptrace(16, 1, 0, 0), ctypes.get_errno() == errno.EPERM)")
    )

    assert seen == "-1 True\n"
    assert attack("echo still there") == "still there\n"


def test_no_process_can_be_traced(attack):
    """A command that joins the cell cannot be taken over by one that waits for it."""
    program = "libc = ctypes.CDLL(None, use_errno=True)\nprint(libc.ptrace(16, int(os.environ['P']), 0, 0), ctypes.get_errno())"

    assert attack(f"sleep 5 & export P=$!\n{python(program)}\nkill $P") == f"-1 {errno.EPERM}\n"


def test_processes_of_the_machine_are_invisible(attack):
    """A command can neither read the variables of a process outside nor end it."""
    with subprocess.Popen(["sleep", "60"], env={"PLANTED": "key"}) as other:
        read = attack(
            f"cat /proc/{other.pid}/environ; cat /proc/[0-9]*/environ 2> /dev/null | tr '\\0' '\\n'; kill -9 {other.pid}"
        )
        ended = other.poll()
        other.kill()

    assert "PLANTED" not in read
    assert ended is None


def test_no_process_has_a_capability(attack):
    """Not even root, where the cell has one."""
    held = attack("grep -h ^Cap /proc/self/status").split()[1::2]

    assert set(held) == {"0000000000000000"}
    assert "NoNewPrivs:\t1" in attack("cat /proc/self/status")


@pytest.mark.parametrize(
    "call", ["mount", "umount2", "unshare", "setns", "pivot_root", "chroot", "keyctl", "bpf", "userfaultfd"]
)
def test_system_calls_that_lead_out_are_refused(attack, call):
    """By the filter of system calls, whatever rights a process has."""
    arguments = {
        "mount": (b"tmpfs", b"/tmp", b"tmpfs", 0, None),
        "umount2": (b"/proc", 2),
        "pivot_root": (b"/", b"/"),
        "chroot": (b"/tmp",),
        "unshare": (0x1000_0000,),
        "setns": (0, 0),
    }.get(call, (0, 0, 0, 0, 0))
    numbers = {"pivot_root": (155, 41), "keyctl": (250, 219), "bpf": (321, 280), "userfaultfd": (323, 282)}
    number = f"({numbers.get(call)!r})[os.uname().machine == 'aarch64']"
    called = f"libc.syscall({number}, *{arguments!r})" if call in numbers else f"libc.{call}(*{arguments!r})"

    seen = attack(python(f"libc = ctypes.CDLL(None, use_errno=True)\nprint({called}, ctypes.get_errno())"))

    assert seen == f"-1 {errno.EPERM}\n"


@pytest.mark.parametrize("words", ["unshare --user true", "unshare --user --map-root-user --mount true", "unshare --net true"])
def test_no_namespaces_inside(attack, words):
    """In a user namespace of its own a process would have every capability, and more of the kernel to attack."""
    assert attack(f"{words} 2> /dev/null && echo made; true") == ""


def test_new_process_gets_no_namespace(attack):
    """Neither does clone make one, nor clone3, which the C library replaces."""
    program = (
        "libc, x86 = ctypes.CDLL(None, use_errno=True), os.uname().machine == 'x86_64'\n"
        "print(libc.syscall(56 if x86 else 220, 0x10000011, 0, 0, 0, 0), ctypes.get_errno() == errno.EPERM)\n"
        "print(libc.syscall(435, 0, 0), ctypes.get_errno() == errno.ENOSYS)"
    )

    assert attack(python(program)) == "-1 True\n-1 True\n"


def test_roots_of_processes_are_that_of_the_cell(attack, short_directory):
    """No way through ``/proc`` leads to the machine's files."""
    (short_directory / "secret").write_text("secret")
    path = f"{short_directory}/secret"

    seen = attack(f"for p in /proc/[0-9]*; do cat $p/root{path} $p/cwd/../../../../../../../..{path}; done 2> /dev/null")

    assert "secret" not in seen


def test_links_lead_nowhere(attack, short_directory):
    """Neither a symbolic link nor a hard link reaches a file of the machine."""
    given = short_directory / "given"
    given.write_text("before")

    seen = attack(
        f"ln -s {given} soft; ln {given} hard; cat soft hard; ln -s {short_directory} d; echo x > d/new; ls /usr/bin/env > /dev/null"
    )

    assert "before" not in seen
    assert (given.read_text(), given.stat().st_nlink, (short_directory / "new").exists()) == ("before", 1, False)


def test_programs_of_the_machine_are_not_linked_into_the_sandbox(attack):
    """A hard link to a file of the machine would outlive the cell and could be written by its owner."""
    assert attack("ln /usr/bin/env linked 2> /dev/null && echo linked; true") == ""


@pytest.mark.parametrize("path", ["/usr/bin/env", "/bin/cat", "/proc/sys/kernel/hostname"])
def test_machine_is_read_only(attack, path):
    """As root, a command could otherwise change the machine's programs. The attack opens the file and writes nothing."""
    assert attack(f"{{ : >> {path}; }} 2> /dev/null && echo opened; [ -w {Path(path).parent} ] && echo open; true") == ""


SECRETS = Path(__file__).with_name("secret_files.txt").read_text().split()
"""The usual places of keys, cookies and histories in a home directory."""


@pytest.fixture
def person(short_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory full of secrets, and in it a project, in which the tests run."""
    for name in SECRETS:
        (short_directory / name).parent.mkdir(parents=True, exist_ok=True)
        (short_directory / name).write_text(f"planted {name}")
    for name in ("project/.env", "project/.git/config", "project/deploy.pem"):
        (short_directory / name).parent.mkdir(parents=True, exist_ok=True)
        (short_directory / name).write_text(f"planted {name}")
    monkeypatch.setenv("HOME", str(short_directory))
    monkeypatch.chdir(short_directory / "project")
    return short_directory


def test_no_secret_file_can_be_read(person, attack):
    """None of the usual places, in the home directory or in the project."""
    paths = [person / name for name in (*SECRETS, "project/.env", "project/.git/config", "project/deploy.pem")]
    assert len(paths) > 69

    seen = attack("cat " + " ".join(map(str, paths)) + " 2> /dev/null; ls -A " + f"{person} {Path.home()} 2> /dev/null; true")

    assert "planted" not in seen


def test_what_the_machine_creates_or_replaces_later_does_not_appear(person, attack):
    """The cell has its own root directory, not a view of the machine's with holes."""
    secret = person / ".env"
    attack("true")
    (person / "new").write_text("planted new")
    (person / "replacement").write_text("planted replacement")
    (person / "replacement").rename(secret)

    assert "planted" not in attack(f"cat {secret} {person}/new 2> /dev/null; true")


def test_detached_processes_die_with_the_cell(confinement):
    """A daemon that left its session and its directory ends, too."""
    shell, token = RealShell(confinement=confinement), f"300.{os.getpid()}"
    daemon = f"setsid bash -c 'cd /; echo > /tmp/up; exec sleep {token}' > /dev/null 2>&1 & until [ -e /tmp/up ]; do :; done"
    shell.run(daemon, Place(cwd="/tmp", variables=VARIABLES), changed={}, timeout=30)
    before = _running(token)

    shell.close()

    assert (len(before), _running(token)) == (1, [])


def _running(token: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and token in (entry / "cmdline").read_text():
                found.append(entry.name)
    return found


def test_terminal_of_the_user_gets_no_input(attack):
    """TIOCSTI would type a command into the terminal that the tests run in."""
    program = (
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.ioctl(0, ctypes.c_ulong(0x5412), b'x'), ctypes.get_errno() == errno.EPERM)"
    )

    assert attack(python(program)) == "-1 True\n"
    assert ctypes.sizeof(ctypes.c_ulong) == 8
