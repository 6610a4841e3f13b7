"""A rollout's daemons end with it, however they detached themselves; nobody else's do."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from tools import terminal_tool
from tools.registry import registry

from environments.sandbox import isolation
from environments.tool_context import ToolContext
from hermes_env_shared import processes
from hermes_env_shared.abandoned import remove_abandoned

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="detached processes are found on Linux")

DETACHED = """\
import os, subprocess
print(subprocess.Popen(["sleep", "60"], start_new_session=True, cwd="/", stdin=-3, stdout=-3, stderr=-3).pid)
"""

DAEMON = """\
import os
ready, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.chdir("/")
    os.write(write, str(os.getpid()).encode())
    os.closerange(0, 64)
    os.execve("/bin/sleep", ["sleep", "60"], {environment})
os.wait()
print(os.read(ready, 20).decode())
"""

KINDS = {
    "new session": DETACHED,
    "daemon": DAEMON.format(environment="os.environ"),
    "daemon without environment": DAEMON.format(environment="{}"),
    "daemon with a path": DAEMON.format(environment="{'PATH': os.environ['PATH']}"),
}


@pytest.fixture
def rollout(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], ToolContext]]:
    """``rollout()`` is the ToolContext of another rollout on the local backend."""
    monkeypatch.setenv("TERMINAL_ENV", "local")
    monkeypatch.setattr(isolation, "_sandboxes", {})  # rollouts that another test never closed may own a stray, too
    contexts: list[ToolContext] = []

    def new() -> ToolContext:
        contexts.append(ToolContext(str(uuid.uuid4())))
        return contexts[-1]

    yield new
    for ctx in contexts:
        ctx.cleanup()


def start(ctx: ToolContext, tmp_path: Path, kind: str) -> int:
    """Start a daemon in a rollout and return its process id."""
    script = tmp_path / "daemon.py"
    script.write_text(KINDS[kind])
    return int(ctx.terminal(f"{sys.executable} {script}")["output"].split()[-1])


def runs(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("kind", KINDS)
def test_daemon_ends_with_its_rollout(rollout, tmp_path, kind):
    """In another directory and session, without streams, a parent and an environment."""
    ctx = rollout()
    pid = start(ctx, tmp_path, kind)
    ran = runs(pid)

    ctx.cleanup()

    assert (ran, runs(pid)) == (True, False)


def test_daemon_of_a_background_process_ends_with_its_rollout(rollout, tmp_path):
    """hermes starts background processes in another way than commands."""
    ctx = rollout()
    (tmp_path / "daemon.py").write_text(KINDS["daemon"])
    command = f"{sys.executable} {tmp_path}/daemon.py"
    started = json.loads(ctx.call_tool("terminal", {"command": command, "background": True}))
    waited = json.loads(ctx.call_tool("process", {"action": "wait", "session_id": started["session_id"]}))
    pid = int(waited["output"].split()[-1])
    ran = runs(pid)

    ctx.cleanup()

    assert (ran, runs(pid)) == (True, False)


@pytest.mark.parametrize("kind", KINDS)
def test_daemon_of_another_rollout_runs_on(rollout, tmp_path, kind):
    """Until its own rollout ends: one that emptied its environment ends with the last rollout that may have started it."""
    first, second = rollout(), rollout()
    first.terminal("true")
    pid = start(second, tmp_path, kind)

    first.cleanup()
    between = runs(pid)
    second.cleanup()

    assert (between, runs(pid)) == (True, False)


def test_daemon_of_the_test_process_runs_on(rollout):
    """Also when it begins during a rollout."""
    ctx = rollout()
    ctx.terminal("true")
    output = subprocess.run([sys.executable, "-c", KINDS["daemon"]], capture_output=True, check=True, text=True).stdout
    child = subprocess.Popen(["sleep", "60"], env={}, cwd="/")

    ctx.cleanup()

    try:
        assert (runs(int(output)), runs(child.pid)) == (True, True)
    finally:
        os.kill(int(output), 9)
        child.kill()
        child.wait()


def test_tool_that_ends_after_its_rollout_opens_no_shared_session(rollout, monkeypatch):
    """A tool that ignores its interrupt and then uses the terminal still works in its own session, which ends with the call."""
    earlier = set(terminal_tool._active_environments)
    ctx = rollout()
    ctx.terminal("true")
    directory = isolation.sandbox_directory(ctx.task_id)
    runs_now, may_end = threading.Event(), threading.Event()
    real = registry.get_entry("read_file").handler

    def deaf(arguments: dict, **context: str) -> str:
        runs_now.set()
        may_end.wait(60)
        terminal_tool.terminal_tool(command="pwd", task_id=context["task_id"])
        return real(arguments, **context)

    monkeypatch.setattr(registry.get_entry("read_file"), "handler", deaf)
    thread = threading.Thread(target=ctx.call_tool, args=("read_file", {"path": "a.txt"}))
    thread.start()
    runs_now.wait(60)

    ctx.cleanup()
    may_end.set()
    thread.join(60)

    assert set(terminal_tool._active_environments) <= earlier
    assert ctx.task_id not in terminal_tool._task_env_overrides
    assert not os.path.exists(directory)


ROLLOUT_OF_ITS_OWN = """\
import sys, time
from environments.sandbox.isolation import sandbox_directory
from environments.sandbox import isolation
from environments.tool_context import ToolContext
ctx = ToolContext("a-rollout")
print(ctx.terminal(sys.argv[1])["output"].split()[-1], sandbox_directory("a-rollout"), flush=True)
time.sleep(60)
"""


@contextlib.contextmanager
def other_process(tmp_path: Path) -> Iterator[tuple[int, str]]:
    """Another process with a rollout: its daemon and its directory. It is killed at the end."""
    (tmp_path / "daemon.py").write_text(KINDS["daemon"])
    words = [sys.executable, "-c", ROLLOUT_OF_ITS_OWN, f"{sys.executable} {tmp_path / 'daemon.py'}"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        daemon, directory = process.stdout.readline().split()
        yield int(daemon), directory
        process.kill()


def test_rollout_of_a_killed_process_is_removed_by_the_next(monkeypatch, tmp_path):
    """Its directory and its daemons, and not while its process runs."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with other_process(tmp_path) as (daemon, directory):
        remove_abandoned()
        while_it_runs = (runs(daemon), os.path.isdir(directory))
    after_its_end = (runs(daemon), os.path.isdir(directory))

    with other_process(tmp_path):
        deadline = time.monotonic() + 60
        while (runs(daemon) or os.path.isdir(directory)) and time.monotonic() < deadline:  # it does that beside its work
            time.sleep(0.05)
        after_the_next = (runs(daemon), os.path.isdir(directory))

    assert (while_it_runs, after_its_end, after_the_next) == ((True, True), (True, True), (False, False))


def test_rollout_that_nobody_cleaned_up_ends_with_the_process(tmp_path):
    """Its daemons, too."""
    (tmp_path / "daemon.py").write_text(KINDS["daemon without environment"])
    script = ROLLOUT_OF_ITS_OWN.replace("time.sleep(60)", "")
    words = [sys.executable, "-c", script, f"{sys.executable} {tmp_path / 'daemon.py'}"]

    ran = subprocess.run(words, capture_output=True, check=True, text=True, env={**os.environ, "TMPDIR": str(tmp_path)})

    daemon, directory = ran.stdout.split()
    assert (runs(int(daemon)), os.path.isdir(directory), list(tmp_path.glob(".*"))) == (False, False, [])


def test_directory_in_the_place_of_an_abandoned_one_stays(monkeypatch, tmp_path):
    """Only the noted one is removed; the note is."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with other_process(tmp_path) as (_, directory):
        os.rename(directory, tmp_path / "moved")
        os.mkdir(directory)

    remove_abandoned()

    assert (os.path.isdir(directory), list(tmp_path.glob(".*"))) == (True, [])


def test_file_that_is_no_note_stays(monkeypatch, tmp_path):
    """A link, a FIFO or another file of such a name is neither followed nor waited for."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "kept").write_text('{"directory": "/", "device": 0, "inode": 0, "variable": "V", "mark": "x"}')
    (tmp_path / ".hermes-rollout-link").symlink_to("kept")
    os.mkfifo(tmp_path / ".hermes-rollout-fifo")
    (tmp_path / ".hermes-rollout-text").write_text("not a note")
    before = sorted(tmp_path.iterdir())

    remove_abandoned()

    assert sorted(tmp_path.iterdir()) == before


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[psutil.Popen]:
    """A process that works in the test's directory."""
    with psutil.Popen(["sleep", "60"], cwd=tmp_path) as process:
        yield process
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def test_a_process_is_read_about_once(sleeper: psutil.Popen, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine may run thousands, and each rollout that ends looks for its own."""
    read: list[str] = []
    stat = processes._stat
    monkeypatch.setattr(processes, "_known", {})
    monkeypatch.setattr(processes, "_stat", lambda pid: read.append(pid) or stat(pid))

    for _ in range(3):
        processes.kill_processes(mark="nobody's", directory=None)

    assert read.count(str(sleeper.pid)) == 1
    assert sleeper.is_running()


def test_an_id_that_is_used_again_is_another_process(
    sleeper: psutil.Popen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was known about the id does not hide it: an earlier process, which had started before the rollout."""
    monkeypatch.setattr(processes, "_known", {str(sleeper.pid): (-1, 0.0)})
    threading.Thread(target=sleeper.wait, daemon=True).start()  # so that it does not stay a zombie

    processes.kill_processes(mark="nobody's", directory=str(tmp_path), since=processes.now() - 60)

    assert sleeper.wait(60) == -signal.SIGKILL


def test_a_process_whose_directory_cannot_be_read_is_nobodys(tmp_path: Path) -> None:
    """Its path is longer than the kernel gives; other people's processes do not disturb a clean-up."""
    words = [sys.executable, "-c", DEEP_DIRECTORY, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(OSError, match="File name too long"):
            os.readlink(f"/proc/{process.pid}/cwd")

        processes.kill_processes(mark="nobody's", directory=str(tmp_path))

        assert process.poll() is None
        process.kill()


DEEP_DIRECTORY = """\
import os, sys, time
os.chdir(sys.argv[1])
for _ in range(20):
    os.mkdir("d" * 250)
    os.chdir("d" * 250)
print("there", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("belongs", ["by its directory", "by its mark", "not at all"])
def test_processes_are_found_without_proc(belongs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On macOS: by directory and by mark, with what they started."""
    monkeypatch.setattr(processes, "IS_LINUX", False)
    marked = {**os.environ, "ROLLOUT": "mine" if belongs == "by its mark" else "other"}
    place = tmp_path if belongs == "by its directory" else "/"
    with psutil.Popen(["sh", "-c", "cd / && env -i sleep 60 & wait"], cwd=place, env=marked) as shell:
        while not (children := shell.children()) or children[0].name() != "sleep":
            time.sleep(0.001)

        processes.kill_processes(mark="mine", directory=str(tmp_path), variable="ROLLOUT")

        is_over = not runs(children[0].pid)
        for process in (shell, *children):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
    assert is_over == (belongs != "not at all")
