"""Whatever the commands of one rollout leave behind: the next one has a sandbox that works, and nothing of it is left in the end.

Each command runs on a machine of its own, which is released, and another machine of the same sandbox is asked after it.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tools import terminal_tool

from environments.tool_context import ToolContext
from pytest_hermes_env.errors import SandboxLost
from pytest_hermes_env.sandbox.cell import Limits
from pytest_hermes_env.sandbox.fake import FakeSandbox
from pytest_hermes_env.sandbox.local import LocalSandbox
from pytest_hermes_env.sandbox.seam import ToolSeam

pytestmark = pytest.mark.usefixtures("namespaces")


def daemon(does: str) -> str:
    """Return a command that starts a process which no command waits for and which holds none of its streams."""
    body = "\n".join(f"    {line}" for line in does.splitlines())
    return f"""python3 - <<'END'
import ctypes, os, signal, socket, sys, threading, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
{body}
    os._exit(0)
time.sleep(0.2)
END"""


WITHOUT_MARKS = 'ulimit -x 1000; H=$TMPDIR; cd /; env -i H="$H" '
UNSEEN_THREAD = """def rest():
    while True:
        time.sleep(1)
threading.Thread(target=rest).start()
ctypes.CDLL(None).pthread_exit(None)"""

TREES = {
    "deep": "for i in $(seq 40); do d=$(printf 'd%.0s' {1..200}); mkdir $d; cd $d; done; touch x; chmod 0 .",
    "wide": "mkdir w; cd w; seq 9000 | xargs touch",
    "closed": "mkdir -p a/b/c; touch a/b/c/d; chmod 0 a/b/c a/b a .",
    "odd names": r"touch -- -rf $'a\nb' $'\xff\xfe' $'\x1b[31m' '$(x)' '*' ' ' $'\xe2\x80\xae'; mkdir $'\xff.d'",
    "long name": "touch $(printf 'x%.0s' {1..255}); mkdir $(printf 'y%.0s' {1..255})",
    "loops of links": "ln -s l l; ln -s . o; ln -s a b; ln -s b a; ln -s /dev/zero z; ln -s /proc/self/fd/0 f; ln -s / r",
    "FIFOs and sockets": "mkfifo p; python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('s')\"",
    "sparse": "truncate -s 1T t; truncate -s 8G u",
    "many links": "touch f; for i in $(seq 300); do ln f l$i; done; chmod 0 f",
    "modes": "mkdir s; chmod 7777 s; touch s/f; chmod 6755 s/f; mkdir t; chmod 1000 t; umask 777; touch u; mkdir v",
    "attributes": "touch f; setfattr -n user.x -v y f; chattr +i f; chattr +a .; true",
}
PLACES = {
    "its directory removed": 'rm -r "$PWD"',
    "its directory moved": 'mv "$PWD" "$PWD-moved"',
    "its directory a file": 'd="$PWD"; cd /; rmdir "$d"; echo file > "$d"',
    "its directory a FIFO": 'd="$PWD"; cd /; rmdir "$d"; mkfifo "$d"',
    "its directory a link to itself": 'd="$PWD"; cd /; rmdir "$d"; ln -s "$d" "$d"',
    "its directory a link to a system's": 'd="$PWD"; cd /; rmdir "$d"; ln -s /usr "$d"',
    "gone below it": "mkdir -p x/y; cd x/y; rm -r ../../x",
    "beyond the longest path": "for i in $(seq 60); do d=$(printf 'd%.0s' {1..200}); mkdir $d; cd $d; done",
    "a closed one": "mkdir z; cd z; chmod 0 .",
    "a name that is no text": "mkdir $'q\\xff\\n'; cd $'q\\xff\\n'",
    "what all share, closed": 'chmod 0 "$HOME" "$TMPDIR" "$LOCAL_SANDBOX"',
    "what all share, removed": 'cd /; rm -r "$HOME" "$TMPDIR" "$LOCAL_SANDBOX"; true',
    "what all share, moved": 'cd /; mv "$TMPDIR" "$TMPDIR.old"; ln -s /usr "$TMPDIR"; mv "$HOME" "$HOME.old"; ln -s /etc "$HOME"; true',
    "start-up files": "for f in .profile .bashrc .bash_profile .bash_logout .inputrc; do echo 'sleep 100; exit 3' > ~/$f; done",
    "programs before the others": "mkdir ~/b; printf '#!/bin/sh\\necho hacked\\n' > ~/b/cat; chmod +x ~/b/cat; echo 'PATH=~/b:$PATH' > ~/.profile",
}
PROCESSES = {
    "a daemon": daemon("time.sleep(100)"),
    "one that ignores all signals": daemon(
        "for s in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}: signal.signal(s, signal.SIG_IGN)\ntime.sleep(100)"
    ),
    "one without marks": WITHOUT_MARKS + daemon("time.sleep(100)"),
    "one whose first thread ended": daemon(UNSEEN_THREAD),
    "one that hops": daemon("end = time.time() + 20\nwhile time.time() < end:\n    if os.fork(): os._exit(0)\n    os.setsid()"),
    "stopped ones": daemon("for _ in range(9):\n    if os.fork() == 0: os.kill(os.getpid(), 19)\nos.kill(os.getpid(), 19)"),
    "zombies": daemon("for _ in range(90):\n    if os.fork() == 0: os._exit(0)\ntime.sleep(100)"),
    "odd names of processes": daemon(
        "for n in (b') R 1', b'a\\nb)', b'((', b'\\xff\\x1b[2J', b''):\n"
        "    if os.fork() == 0:\n        ctypes.CDLL(None).prctl(15, n, 0, 0, 0)\n        time.sleep(100)"
    ),
    "a traced one": daemon("ctypes.CDLL(None).ptrace(0, 0, 0, 0)\nos.kill(os.getpid(), 19)"),
    "one in a directory beyond the longest path": daemon(
        "for _ in range(40): os.mkdir('n' * 200); os.chdir('n' * 200)\ntime.sleep(100)"
    ),
    "listeners": daemon("s = socket.socket(); s.bind(('', 8000)); s.listen()\ntime.sleep(100)"),
    "one that writes for others": WITHOUT_MARKS
    + daemon(
        "import glob\nwhile True:\n    for d in glob.glob(os.environ['H'] + '/*'):\n        try: open(d + '/a', 'w').write('pwned')\n"
        "        except OSError: pass\n    time.sleep(0.001)"
    ),
    "locks": "touch f; "
    + daemon(
        "import fcntl\nfor p in ('f', '.', os.environ['TMPDIR']): fcntl.flock(os.open(p, 0), fcntl.LOCK_EX)\ntime.sleep(100)"
    ),
}
SHELLS = {
    "itself killed": "kill -9 $$",
    "everything killed": "kill -9 -1",
    "limits of its own": "ulimit -n 4; ulimit -f 0; ulimit -u 1; echo x > y",
    "limits of the first process": "prlimit --pid 1 --nofile=3:3; prlimit --pid 1 --data=1000:1000; true",
    "functions": "cd() { sleep 100; }; printf() { sleep 100; }; builtin() { sleep 100; }; export -f cd printf builtin",
    "options": "export SHELLOPTS; set -euo pipefail; set -C; set -f",
    "variables": "export BASH_ENV=/nonexistent ENV=/nonexistent LD_PRELOAD=/nonexistent.so PYTHONHOME=/nonexistent IFS=x",
    "no programs": "export PATH=/nonexistent",
    "read-only variables": "readonly PWD HOME PATH OLDPWD TMPDIR",
    "a trap": "trap 'sleep 100' DEBUG EXIT TERM INT; true",
    "closed streams": "exec 1>&- 2>&-; echo x",
    "no builtins": "enable -n cd eval printf exit pwd export",
}
ELSEWHERE = {
    "its own /tmp": "touch /tmp/a /dev/shm/a; mkfifo /tmp/f; mkdir -p /tmp/x/y; chmod 0 /tmp/x",
    "a full /tmp": "head -c 300M /dev/zero > /tmp/fill; true",
    "a full HOME, before a look": "head -c 150M /dev/zero > ~/f1; head -c 150M /dev/zero > ~/f2",
    "queues and segments": 'python3 -c "import ctypes; c = ctypes.CDLL(None); c.shmget(7, 9999, 950); c.msgget(7, 950)"; true',
    "notes of limits": "rm -f /run/*; mkfifo /run/limit /run/reported; true",
    "closed places of the cell": "chmod 0 /tmp /run /dev/shm",
    "a full /run": "head -c 9M /dev/zero > /run/fill; mkdir /tmp/py /tmp/p; true",
    "names of the kit": 'touch "$TMPDIR/hermes-snap-1.sh" "$TMPDIR/.hermes-rollout-1"; mkdir -p "$TMPDIR/rollout-1/x"',
    "escapes in the output": r"printf '\033[2J\033]0;t\007\n::error::x\n'",
    "bytes in the output": "head -c 300000 /dev/urandom",
}
LEFT = {"trees": TREES, "places": PLACES, "processes": PROCESSES, "shells": SHELLS, "elsewhere": ELSEWHERE}


def processes_with(text: str) -> list[str]:
    """Return the processes of this machine whose environment or working directory has a text."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            about = Path(f"/proc/{pid}/environ").read_bytes() + os.fsencode(os.readlink(f"/proc/{pid}/cwd"))
        except OSError:
            continue
        found += [pid] * (text.encode() in about)
    return found


@pytest.mark.parametrize("kind", LEFT)
def test_the_next_rollout_has_a_sandbox_that_works(kind: str) -> None:
    """Its answer is its own, no limit is told to it, and it is told of none of this."""
    sandbox, wrong = LocalSandbox().start(), {}
    base = sandbox.root.parent
    for number, (what, command) in enumerate(LEFT[kind].items()):
        guilty, innocent = sandbox.machine(f"guilty-{number}"), sandbox.machine(f"innocent-{number}")
        for line in (command, "echo again"):
            try:
                guilty.call("terminal", {"command": line, "timeout": 20})
            except SandboxLost:
                break
        guilty.release()
        line = "ls -A . /tmp | grep -v pytest-hermes-sandbox; printf 42 > a; sleep 0.1; cat a"
        try:
            answer = json.loads(innocent.call("terminal", {"command": line, "timeout": 20}))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is wrong
            answer = {"output": repr(error)}
        if answer["output"].split() != [".:", "/tmp:", "42"]:
            wrong[what] = answer
        innocent.release()
    sandbox.stop()

    assert wrong == {}
    assert (base.exists(), processes_with(str(base))) == (False, [])


@pytest.mark.parametrize("kind", ["trees", "shells"])
def test_a_machine_in_memory_ends_no_test(kind: str) -> None:
    """Its real bash is the rollout's own, and is replaced where it broke."""
    sandbox, wrong = FakeSandbox(unscripted="not found"), {}
    for number, (what, command) in enumerate(LEFT[kind].items()):
        guilty, innocent = (sandbox.sandbox_of(f"{who}-{number}") for who in ("guilty", "innocent"))
        for line in (command, "echo $((1 + 1))"):
            try:
                guilty.call("terminal", {"command": line, "timeout": 20})
            except SandboxLost:
                break
        guilty.release()
        answer = json.loads(innocent.call("terminal", {"command": "printf %s $((40 + 2)) > a; cat a"}))
        if answer["output"] != "42":
            wrong[what] = answer
    sandbox.close()

    assert wrong == {}


CLOSED = {
    "the root directory": "chmod 0 /",
    "descriptors of the first process": "prlimit --pid 1 --nofile=3:3",
    "memory of the first process": "prlimit --pid 1 --as=1000000:1000000",
}


@pytest.mark.parametrize("what", CLOSED)
def test_a_cell_that_a_command_broke_is_the_commands_doing(what: str) -> None:
    """Not an error in the files that the author gave."""
    sandbox = FakeSandbox()
    machine = sandbox.sandbox_of("task")

    with pytest.raises(SandboxLost, match="a command made a rollout's sandbox unusable"):
        [machine.call("terminal", {"command": f"{CLOSED[what]}; echo $((1 + 1))"}) for _ in range(2)]
    with pytest.raises(SandboxLost):
        sandbox.verify()
    sandbox.close()


UNWRITABLE = ("/usr/local/bin/tool", "/dev/x", "/proc/sys/x", "/opt/python/x", "../../usr/x", "u/x", "n" * 300)


@pytest.mark.parametrize("path", UNWRITABLE)
def test_a_tool_writes_nothing_that_no_command_could(path: str, ask: Callable[..., dict[str, Any]]) -> None:
    """The model is told; else each later line of its rollout would be impossible."""
    sandbox = FakeSandbox(unscripted="not found")
    ask(sandbox, "terminal", command="ln -s /usr/bin u")

    written = ask(sandbox, "write_file", path=path, content="x")
    after = ask(sandbox, "terminal", command="echo $((1 + 1))")
    sandbox.close()

    assert ("Read-only file system" in written["error"] or "File name too long" in written["error"], after["output"]) == (
        True,
        "2",
    )


@pytest.mark.parametrize("real_tools", ["confined", "never"])
def test_a_search_needs_no_real_programs(real_tools: Any, ask: Callable[..., dict[str, Any]]) -> None:
    """A pattern that might take long is searched apart; a line separator within a line is a character like others."""
    sandbox = FakeSandbox({"m.py": "def f(a):  # \x0c \u2028\n    return a\n\ndef g(b): pass\n"}, real_tools=real_tools)

    found = ask(sandbox, "search_files", pattern=r"def .*\(.*\):.*", path=".")
    sandbox.close()

    assert [hit["line"] for hit in found["matches"]] == [1, 4]


@pytest.mark.parametrize(("pattern", "hits"), [("(a+)+$", 0), ("(fo+ ?)+", 1), ("a.*a.*a.*a.*a.*x", 0), (r"(a)\1", 1)])
def test_a_search_ends_whatever_its_pattern(pattern: str, hits: int, ask: Callable[..., dict[str, Any]]) -> None:
    """Python's own would backtrack for years, and hold every thread meanwhile."""
    sandbox = FakeSandbox({"m.txt": f"{'a' * 60}b\nfoo foo\n"})

    found = ask(sandbox, "search_files", pattern=pattern, path=".")
    sandbox.close()

    assert found["total_count"] == hits


def test_a_long_line_is_not_taken_apart(ask: Callable[..., dict[str, Any]]) -> None:
    """Its words would take quadratic time; hermes refuses such a line without separators, and runs one with."""
    sandbox = FakeSandbox()

    refused = ask(sandbox, "terminal", command=f": {'y' * 500_000}")
    ran = ask(sandbox, "terminal", command=f"{'echo 1 ; ' * 5000} echo $((1 + 1))")
    sandbox.close()

    assert (refused["status"], "command parser limit exceeded" in refused["error"]) == ("blocked", True)
    assert ran["output"].endswith("2")


def test_a_path_that_the_agent_lost_is_not_the_tests_mistake(ask: Callable[..., dict[str, Any]]) -> None:
    """The program is installed."""
    sandbox = FakeSandbox()
    ask(sandbox, "terminal", command="export PATH=/nonexistent")

    lost = ask(sandbox, "terminal", command="sort /dev/null; echo $?")
    sandbox.close()

    assert lost["output"].endswith("command not found\n127")


def test_a_rollout_whose_directory_another_one_removed_is_not_scored() -> None:
    """Nor is the other one: nobody can tell whose command it was."""
    with LocalSandbox() as sandbox:
        guilty, innocent = sandbox.machine("guilty"), sandbox.machine("innocent")
        innocent.call("terminal", {"command": "true"})

        with pytest.raises(SandboxLost):
            guilty.call("terminal", {"command": 'cd /; rm -r "$TMPDIR"/rollout-*'})
        with pytest.raises(SandboxLost, match="while other rollouts ran"):
            innocent.call("terminal", {"command": "true"})


FORKS = "python3 -c 'import os, time; [os.fork() or time.sleep(30) for _ in range(40)]; time.sleep(30)'"


def test_a_limit_that_ends_the_commands_of_several_rollouts_scores_none() -> None:
    """One that is open alone is told, and goes on; where another one is open, nobody knows whose commands were ended."""
    with LocalSandbox(limits=Limits(processes=20)) as sandbox:
        guilty, innocent = sandbox.machine("guilty"), sandbox.machine("innocent")
        told = guilty.call("terminal", {"command": FORKS})
        guilty.call("terminal", {"command": "true"})
        innocent.call("terminal", {"command": "sleep 100", "background": True})

        with pytest.raises(SandboxLost, match="ended the commands of all"):
            guilty.call("terminal", {"command": FORKS})
        with pytest.raises(SandboxLost, match="ended the commands of all"):
            innocent.call("terminal", {"command": "true"})

        guilty.release()
        innocent.release()
        assert json.loads(sandbox.machine("next").call("terminal", {"command": "echo fine"}))["output"] == "fine"

    assert "limit of this sandbox: processes: at most 20 at a time" in told


def test_memory_that_no_process_has_counts() -> None:
    """System V's segments stay when their process has ended; the next rollout has none of them."""
    make = (
        "import ctypes; c = ctypes.CDLL(None); c.shmat.restype = ctypes.c_void_p; i = c.shmget(0, 40 << 20, 0o1600); "
        "p = c.shmat(i, None, 0); ctypes.memset(p, 1, 40 << 20); c.shmdt(ctypes.c_void_p(p))"
    )
    with LocalSandbox(limits=Limits(memory_bytes=64 << 20)) as sandbox:
        machine, after = sandbox.machine("task"), sandbox.machine("next")
        told = [machine.call("terminal", {"command": f'python3 -c "{make}"; sleep 1'}) for _ in range(3)]
        machine.release()
        left = json.loads(after.call("terminal", {"command": "cat /proc/sysvipc/shm | wc -l"}))["output"]

    assert (any("memory: at most" in one for one in told), left) == (True, "1")


def test_a_prepared_directory_is_no_leftover() -> None:
    """Also where it lies deeper, and after another rollout."""
    with LocalSandbox() as sandbox:
        first = sandbox.machine("first")
        first.call("terminal", {"command": "touch ~/left"})
        first.release()
        prepared = sandbox.temporary / "x" / "repo"
        prepared.mkdir(parents=True)
        (prepared / "data").write_text("kept")
        terminal_tool.register_task_env_overrides("second", {"cwd": f"{prepared}/"})

        answer = sandbox.machine("second").call("terminal", {"command": "cat data; ls ~"})
        terminal_tool.clear_task_env_overrides("second")

    assert json.loads(answer)["output"] == "kept"


def test_rollouts_that_begin_together_keep_their_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    """The layer creates a directory before anybody else knows of it."""
    monkeypatch.setenv("TERMINAL_ENV", "local")
    with LocalSandbox() as sandbox, ToolSeam(sandbox), ThreadPoolExecutor(4) as pool:
        for _ in range(6):
            contexts = [ToolContext(uuid.uuid4().hex) for _ in range(4)]
            answers = pool.map(lambda context: context.terminal("echo fine")["output"], contexts)
            assert list(answers) == ["fine"] * 4
            for context in contexts:
                context.cleanup()


def test_many_deaf_processes_end_at_once() -> None:
    """hermes would wait two seconds for each."""
    with LocalSandbox() as sandbox:
        machine = sandbox.machine("task")
        for _ in range(6):
            machine.call("terminal", {"command": "trap '' TERM; sleep 100", "background": True})
        before = os.times().elapsed
        machine.release()

        assert os.times().elapsed - before < 10  # six would take 12


def test_a_removed_directory_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the layer: hermes goes on in the parent directory, whose files the next rollout would be scored for."""
    monkeypatch.setenv("TERMINAL_ENV", "local")
    context = ToolContext("of-this-test")
    where = context.terminal("pwd")["output"]
    context.terminal(f"rm -r {where}")

    after = context.terminal("pwd; touch here; ls")["output"]
    context.cleanup()

    assert (after, os.path.exists(where)) == (f"{where}\nhere", False)
