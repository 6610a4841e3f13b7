"""What confined commands may use is limited, and hitting a limit is said in plain words."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.sandbox.cell import Limits
from pytest_hermes_env.sandbox.local import LocalSandbox
from pytest_hermes_env.sandbox.local_cell import local_plan
from pytest_hermes_env.sandbox.real_shell import Place, Ran, RealShell

VARIABLES = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/root", "SHLVL": "1"}


def run(confinement, command: str, limits: Limits, timeout: float = 60) -> tuple[Ran, Ran]:
    """What the command did in a real shell with these limits, and what an ordinary one did after it."""
    shell = RealShell(confinement=confinement, limits=limits)
    try:
        ran = [
            shell.run(line, Place(cwd="/root", variables=VARIABLES), changed={}, timeout=timeout)
            for line in (command, "echo next")
        ]
    finally:
        shell.close()
    return ran[0], ran[1]


@pytest.mark.parametrize(
    "bomb",
    [
        "for i in $(seq 40); do sleep 30 & done; wait",
        "for i in $(seq 40); do sleep 30 & done",
        "for i in $(seq 40); do setsid sleep 30 & done; sleep 30",
        "f() { [ $1 -gt 40 ] || f $(($1 + 1)) & sleep 30; }; f 1",
    ],
)
def test_fork_bomb_is_ended(confinement, bomb):
    """At most 20 processes: all of the cell are killed, and the next line works."""
    ran, after = run(confinement, bomb, Limits(processes=20))

    assert ran.limit == "processes: at most 20 at a time"
    assert (after.output, after.limit) == (b"next\n", "")


def test_processor_time_is_limited(confinement):
    """A busy process is ended by the kernel."""
    ran, after = run(confinement, "while :; do :; done", Limits(cpu_s=1))

    assert (ran.limit, ran.timed_out) == ("CPU time: at most 1 s for each process", False)
    assert after.output == b"next\n"


def test_processor_time_of_a_child_is_limited(confinement):
    """Bash says which child it was, and goes on."""
    ran, _ = run(confinement, "python3 -c 'while 1: pass'; echo after", Limits(cpu_s=1))

    assert ran.output.endswith(b"after\n")
    assert ran.limit == "CPU time: at most 1 s for each process"


@pytest.mark.parametrize(
    "hungry",
    [
        "python3 -c 'x = bytearray(1 << 30)'",
        "for i in 1 2 3 4; do python3 -c 'import time; x = b\"x\" * (90 << 20); time.sleep(30)' & done; wait",
    ],
)
def test_memory_is_limited(confinement, hungry):
    """For one process by the kernel, for all together by the first process of the cell."""
    ran, after = run(confinement, hungry, Limits(memory_bytes=256 << 20))

    assert ran.limit == f"memory: at most {256 << 20} bytes"
    assert ran.exit_code != 0
    assert after.output == b"next\n"


def test_disk_is_limited(confinement):
    """The file system of the cell is full then."""
    ran, _ = run(confinement, "for i in 1 2 3 4; do head -c 3000000 /dev/zero > f$i; done", Limits(disk_bytes=8 << 20))

    assert ran.limit == f"disk: at most {8 << 20} bytes"
    assert 0 < sum(len(entry.data) for entry in ran.changed.values() if entry) <= 8 << 20


def test_files_without_content_are_not_sent_whole(confinement):
    """A sparse file takes no disk in the cell, but would take memory outside."""
    ran, after = run(confinement, "for i in 1 2 3 4; do truncate -s 6M f$i; done", Limits(disk_bytes=8 << 20))

    assert ran.limit == f"disk: at most {8 << 20} bytes"
    assert sum(len(entry.data) for entry in ran.changed.values() if entry) <= 8 << 20
    assert after.output == b"next\n"


def test_output_is_limited(confinement):
    """Endless output does not fill the memory of the tests."""
    ran, after = run(confinement, "yes", Limits())

    assert ran.limit == f"output: a line may write {32 << 20} bytes"
    assert len(ran.output) < 33 << 20
    assert after.output == b"next\n"


@pytest.fixture
def terminal(confinement):
    """``terminal(limits, command)`` is the result of hermes' terminal tool in a local sandbox."""

    def call(limits: Limits, command: str, *, has_next: bool = True) -> dict[str, object]:
        with LocalSandbox(confinement=confinement, limits=limits) as sandbox:
            result = json.loads(sandbox.machine("task").call("terminal", {"command": command, "timeout": 60}))
            after = json.loads(sandbox.machine("task").call("terminal", {"command": "echo next"}))
        assert not has_next or (after["output"], after["exit_code"]) == ("next", 0)
        return dict(result)

    return call


def test_local_sandbox_says_which_limit_was_hit(terminal):
    """In the output of the tool: the model and the person who debugs read it."""
    many = "python3 -c 'import os, time\nfor i in range(40): os.fork() or time.sleep(30)\ntime.sleep(30)'"

    result = terminal(Limits(processes=20), many)

    assert "limit of this sandbox: processes: at most 20 at a time" in str(result["output"])
    assert result["exit_code"] != 0


UNSEEN = {
    "shared memory": (
        "import mmap; m = mmap.mmap(-1, 200 << 20); [m.write(b'x' * (1 << 20)) for _ in range(200)]",
        "memory: at most",
    ),
    "memory files": (
        "import os; f = [os.memfd_create('f') for _ in range(20)]; [os.write(f[n % 20], b'x' * (1 << 20)) for n in range(200)]",
        "memory: at most",
    ),
    "threads": (
        "import threading; [threading.Thread(target=time.sleep, args=[20]).start() for _ in range(150)]",
        "threads: at most",
    ),
    "files without a name": (
        "import os; f = open('f', 'wb'); os.unlink('f'); [f.write(b'x' * (1 << 20)) for _ in range(18)]; f.flush(); "
        "g = open('g', 'wb'); os.unlink('g'); [g.write(b'x' * (1 << 20)) for _ in range(18)]; g.flush()",
        "disk: at most",
    ),
    "files in a closed directory": (
        "import os; os.mkdir('c'); [open(f'c/{n}', 'wb').write(b'x' * (10 << 20)) for n in range(4)]; os.chmod('c', 0)",
        "disk: at most",
    ),
    "files below the longest path": (
        "import os; [(os.mkdir('d' * 250), os.chdir('d' * 250)) for _ in range(20)]; "
        "[open(f'{n}', 'wb').write(b'x' * (10 << 20)) for n in range(4)]",
        "disk: at most",
    ),
    "reserved blocks": (
        "import os; [os.posix_fallocate(os.open(f'{n}', os.O_CREAT | os.O_WRONLY), 0, 15 << 20) for n in range(4)]",
        "disk: at most",
    ),
    "empty files": ("[open(f'{n}', 'w').close() for n in range(20000)]", "files: at most"),
}
"""What a sum of sizes and a list of processes does not show, and the limit that it passes."""


@pytest.mark.parametrize("what", UNSEEN)
def test_what_is_hard_to_see_counts(terminal, what):
    """20 MiB of files, 100 MiB of memory and 20 processes are allowed."""
    does, says = UNSEEN[what]
    limits = Limits(disk_bytes=20 << 20, memory_bytes=100 << 20, processes=20)

    result = terminal(
        limits,
        f"python3 -c \"import time; {does}; time.sleep(20); print('un' + 'limited')\"",
        has_next=not says.startswith(("disk", "files")),
    )

    output = str(result["output"])
    assert f"limit of this sandbox: {says}" in output or (what == "threads" and "can't start new thread" in output), result
    assert "unlimited" not in output


def test_memory_that_processes_share_counts_once(terminal):
    """Four processes with the same 40 MiB have 40 MiB, and a limit that was not hit is not told."""
    shares = (
        "m = mmap.mmap(-1, 40 << 20); m.write(b'x' * (40 << 20)); [os.fork() for _ in range(2)]; sum(m[::4096]); time.sleep(2)"
    )

    result = terminal(Limits(memory_bytes=160 << 20), f'python3 -c "import mmap, os, time; {shares}" && echo unlimited')

    assert (result["output"], result["exit_code"]) == ("unlimited", 0)


@pytest.mark.parametrize("what", ["memory files", "shared memory", "threads"])
def test_what_is_hard_to_see_counts_in_a_real_shell(confinement, what):
    """In the cell of the in-memory machine, too."""
    does, says = UNSEEN[what]

    ran, after = run(
        confinement, f'python3 -c "import time; {does}; time.sleep(20)"', Limits(memory_bytes=100 << 20, processes=20)
    )

    says = {"threads": "(threads|processes): at most"}.get(what, says)  # the kernel refuses one to a user that is not root
    assert (bool(re.match(says, ran.limit)), after.output) == (True, b"next\n"), ran


def test_disk_of_a_local_sandbox_is_counted(confinement, tmp_path):
    """Its directory is one of the machine's, so many files together are counted."""
    base = Path(os.path.realpath(tmp_path)) / "cell"
    cell = confinement.cell(local_plan(base, Limits(disk_bytes=4 << 20)))
    cell.start()
    writes = "i=0; while head -c 1000000 /dev/urandom > f$i; do i=$((i + 1)); sleep 0.05; done"
    words = [*cell.enter_command(), str(base / "sandbox"), "/bin/bash", "-c", writes]
    ran = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)
    cell.stop()

    assert ran.returncode != 0
    assert re.search(rf"^limit of this sandbox: disk: at most {4 << 20} bytes$", ran.stderr, re.MULTILINE)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "many"])
def test_limit_that_is_no_number_is_refused(value):
    """Before anything runs."""
    with pytest.raises(UsageError) as raised:
        Limits(processes=value)

    assert str(raised.value) == (
        f"Limits cannot use processes = {value}.\n"
        "  expected  a positive whole number\n"
        "  fix       for example Limits(processes=256)"
    )


@pytest.mark.parametrize(
    "line", ["ulimit -f 0; echo x > y", "ulimit -v 50000; python3 -c 'x = bytearray(1 << 30)'", "ulimit -f 1; yes > y"]
)
def test_a_limit_of_the_agents_own_is_not_ours(confinement, line):
    """It hit what it set itself."""
    ran, _ = run(confinement, line, Limits())

    assert (ran.exit_code != 0, ran.limit) == (True, "")
