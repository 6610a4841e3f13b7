"""The local sandbox is hermes' own local backend, held in one directory and put away as a whole."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes_env_shared.abandoned import remove_abandoned
from pytest_hermes_env.errors import EnvironmentSetupError, UnexpectedToolCall, UsageError
from pytest_hermes_env.sandbox.cell import Cell, CellError
from pytest_hermes_env.sandbox.confinement import UNCONFINED, Confinement
from pytest_hermes_env.sandbox.local import LocalSandbox


def run(sandbox: LocalSandbox, command: str, task_id: str = "first", **arguments: Any) -> dict[str, Any]:
    """The result of hermes' terminal."""
    return json.loads(sandbox.machine(task_id).call("terminal", {"command": command, **arguments}))


def use(sandbox: LocalSandbox, name: str, task_id: str = "first", **arguments: Any) -> dict[str, Any]:
    """The result of one of hermes' tools."""
    return json.loads(sandbox.machine(task_id).call(name, arguments))


def ended(sandbox: LocalSandbox, command: str, **arguments: Any) -> str:
    """The output of a background process, after its end. hermes may say that it ended before all of its output was read."""
    from tools.process_registry import process_registry

    session = run(sandbox, command, background=True, **arguments)["session_id"]
    use(sandbox, "process", action="wait", session_id=session, timeout=60)
    reader = process_registry.get(session)._reader_thread
    if reader is not None:
        reader.join(60)
    return use(sandbox, "process", action="wait", session_id=session, timeout=60)["output"]


@pytest.fixture
def sandbox(confined_or_not: LocalSandbox) -> LocalSandbox:
    """An active sandbox, with and without confinement."""
    return confined_or_not


@pytest.fixture
def walled() -> Iterator[LocalSandbox]:
    """An active, confined sandbox."""
    with LocalSandbox() as active:
        yield active


def test_rollouts_share_the_home_and_nothing_else(sandbox):
    """Each has a directory and variables of its own; HOME and TMPDIR lie in the sandbox."""
    look = 'echo "$PWD|$HOME|$TMPDIR|$NAME|$(ls)"'
    first = run(sandbox, f"export NAME=first; touch mine; {look}")["output"]
    second = run(sandbox, look, "second")["output"]
    again = run(sandbox, look)["output"]

    directories = [sandbox.machine(task_id).directory for task_id in ("first", "second")]
    shared = f"{sandbox.home}|{sandbox.temporary}"
    assert first == again == f"{directories[0]}|{shared}|first|mine"
    assert second == f"{directories[1]}|{shared}||"
    assert [Path(directory).parent for directory in directories] == [sandbox.temporary] * 2
    assert len(set(directories)) == 2


def test_file_tools_and_terminal_see_the_same_files(sandbox):
    """hermes' file tools work through the same shell, and take ~ for the same home."""
    use(sandbox, "write_file", path="~/notes/a.txt", content="one\ntwo\n")
    use(sandbox, "patch", path="~/notes/a.txt", old_string="two", new_string="three")
    read = use(sandbox, "read_file", path="~/notes/a.txt")
    found = use(sandbox, "search_files", pattern="thr", path="~/notes")

    assert run(sandbox, "cat ~/notes/a.txt")["output"] == "one\nthree"
    assert read["content"].splitlines()[:2] == ["1|one", "2|three"]
    assert found["matches"] == [{"path": f"{sandbox.home}/notes/a.txt", "line": 2, "content": "three"}]


KEYS = ("HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "OPENROUTER_API_KEY", "MY_OWN_KEY")


@pytest.mark.parametrize("pty", [False, True])
def test_no_key_of_the_test_run_reaches_a_command(monkeypatch, sandbox, pty):
    """Neither in the foreground nor in the background, with and without a terminal."""
    for name in KEYS:
        monkeypatch.setenv(name, "planted")

    seen = run(sandbox, "env; echo end", pty=pty)["output"]
    assert "end" in seen
    # hermes may lose the last output of a background process on a pty when the process ends
    outputs = (ended(sandbox, "env; echo end", pty=pty) for _ in range(10))
    seen += next(output for output in outputs if "end" in output)

    assert [line for line in seen.splitlines() if "planted" in line] == []


def test_password_of_the_user_is_out_of_reach_for_the_time(monkeypatch):
    """hermes would type it into a command that says sudo."""
    monkeypatch.setenv("SUDO_PASSWORD", "planted")

    with LocalSandbox(confinement=UNCONFINED):
        during = os.environ.get("SUDO_PASSWORD")

    assert (during, os.environ["SUDO_PASSWORD"]) == (None, "planted")


def test_start_up_files_of_the_user_are_not_sourced(monkeypatch, tmp_path):
    """People export keys in them; hermes would source them into every session."""
    (tmp_path / ".bashrc").write_text("export FROM_BASHRC=planted\n")
    (tmp_path / ".profile").write_text("export FROM_PROFILE=planted\n")
    monkeypatch.setenv("HOME", str(tmp_path))

    with LocalSandbox(confinement=UNCONFINED) as sandbox:
        seen = run(sandbox, "env")["output"]

    assert "planted" not in seen


def test_commands_have_the_variables_that_the_author_gives():
    """What a command needs from outside is said in the test."""
    with LocalSandbox(variables={"DATABASE": "sqlite:///it's data.db"}) as sandbox:
        seen = [run(sandbox, 'echo "$DATABASE"')["output"], ended(sandbox, 'echo "$DATABASE"').strip()]

    assert [text.splitlines()[-1] for text in seen] == ["sqlite:///it's data.db"] * 2


@pytest.mark.usefixtures("namespaces")
def test_nothing_outside_can_be_written(walled, tmp_path):
    """Not by a command, in the foreground or the background, and not by hermes' file tools."""
    (tmp_path / "given").write_text("before")
    target = tmp_path / "new"

    codes = [run(walled, f"echo x > {place}")["exit_code"] for place in (target, tmp_path / "given", "/unknown/new")]
    said = ended(walled, f"echo x > {target}")
    read_only = use(walled, "write_file", path="/unknown/new", content="x")
    use(walled, "write_file", path=str(target), content="x")
    patched = use(walled, "patch", path=str(tmp_path / "given"), old_string="before", new_string="after")

    assert codes == [1, 1, 1]
    assert "No such file or directory" in said
    assert "Failed to write file" in read_only["error"]
    assert "Failed to read file" in patched["error"]
    assert (sorted(path.name for path in tmp_path.iterdir()), (tmp_path / "given").read_text()) == (["given"], "before")


@pytest.mark.usefixtures("namespaces")
def test_no_network_is_reached(walled):
    """A server of this machine answers the test, not the commands."""
    connect = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), 5).close()

        result = run(walled, f'"{sys.executable}" -c "{connect}" {port}')

    assert result["exit_code"] == 1
    assert "ConnectionRefusedError" in result["output"]


def test_server_that_one_command_starts_is_reached_by_the_next(sandbox):
    """As on a machine: start it in the background, then ask it."""
    program = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); open('port', 'w').write(str(s.getsockname()[1]));"
        "[s.accept()[0].send(b'served') for _ in range(2)]"
    )
    ask = "import socket; print(socket.create_connection(('127.0.0.1', int(open('port').read())), 5).recv(6).decode())"
    session = run(sandbox, f'exec "{sys.executable}" -c "{program}"', background=True)["session_id"]

    answer = run(sandbox, f'until [ -s port ]; do :; done; "{sys.executable}" -c "{ask}"', timeout=30)

    assert answer["output"] == "served"
    assert use(sandbox, "process", action="kill", session_id=session)["status"] == "killed"


def test_exit_code_timeout_and_directory_are_hermes_own(sandbox):
    """What a session keeps and how a command ends does not change."""
    run(sandbox, "mkdir -p 'a dir'; cd 'a dir'")

    limits = {"exit 7": 60, "kill -9 $$": 60, "sleep 30": 1}
    outcomes = [run(sandbox, command, timeout=limit)["exit_code"] for command, limit in limits.items()]

    assert outcomes == [7, -9, 124]
    assert run(sandbox, "pwd")["output"] == f"{sandbox.machine('first').directory}/a dir" == sandbox.machine("first").cwd


def test_interrupt_ends_a_command(sandbox):
    """A cancelled rollout interrupts the thread of its tool call."""
    from tools.interrupt import set_interrupt

    run(sandbox, "true")
    results: list[dict[str, Any]] = []
    worker = threading.Thread(target=lambda: results.append(run(sandbox, "touch begun; sleep 60; touch ended")))
    worker.start()
    directory = Path(sandbox.machine("first").directory)
    while not (directory / "begun").exists():
        time.sleep(0.01)
    set_interrupt(True, worker.ident)
    worker.join(30)
    set_interrupt(False, worker.ident)

    assert (results[0]["exit_code"], results[0]["output"]) == (130, "[Command interrupted]")
    assert os.listdir(directory) == ["begun"]


def test_language_servers_are_switched_off_for_the_time(sandbox):
    """They would run beside the sandbox, and some run what a project tells them to."""
    from agent import lsp
    from tools.environments import local

    before = (lsp.get_service, local._read_terminal_shell_init_config)
    run(sandbox, "true")
    during = (lsp.get_service(), local._read_terminal_shell_init_config())
    sandbox.stop()

    assert during == (None, ([], False))
    assert (lsp.get_service, local._read_terminal_shell_init_config) == before


def test_shell_that_hermes_does_not_find_is_said(sandbox, monkeypatch):
    """A command never runs beside the sandbox: when hermes would start another shell, the call fails."""
    bash = shutil.which("bash", path="/usr/bin:/bin")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")

    with pytest.raises(EnvironmentSetupError) as raised:
        run(sandbox, "true")

    assert str(raised.value) == (
        "hermes does not start its commands inside the local sandbox.\n"
        f"  expected  the shell {sandbox.shell}\n"
        f"  seen      {bash}\n"
        "  fix       leave PATH and SHELL as they are while a LocalSandbox is active"
    )


# From start to stop


def test_everything_is_given_back():
    """Variables, temporary files of the process, hermes' registers, and the directory."""
    from tools import terminal_tool
    from tools.process_registry import process_registry

    def state() -> dict[str, Any]:
        return {
            "variables": dict(os.environ),
            "temporary": tempfile.gettempdir(),
            "overrides": dict(terminal_tool._task_env_overrides),
            "sessions": dict(terminal_tool._active_environments),
            "running": dict(process_registry._running),
        }

    before = state()
    sandbox = LocalSandbox().start()
    root = sandbox.root
    run(sandbox, "mkdir -p locked/inner; touch locked/inner/file; chmod 000 locked/inner locked; ln -s / outside")
    run(sandbox, "sleep 300.25", background=True)

    sandbox.stop()
    sandbox.stop()

    assert state() == before
    assert not root.parent.exists()


def test_temporary_files_of_the_test_process_stay_where_they_are(sandbox):
    """What a test run keeps for longer than one sandbox must not lie in it."""
    assert not Path(tempfile.gettempdir()).is_relative_to(sandbox.root)


def processes_saying(mark: str) -> list[str]:
    """Command lines with ``mark`` in them."""
    lines = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                lines.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip())
            except OSError:
                continue
    return [line for line in lines if mark in line]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are found by their variables, on Linux")
def test_process_that_detached_itself_ends_with_the_sandbox(sandbox):
    """Wherever it works; what the test itself started does not end, although it has the sandbox's TMPDIR."""
    sleeper = f"sleep 300.{os.getpid()}"
    detach = f"import subprocess as s; s.Popen('{sleeper}'.split(), start_new_session=True, stdout=-3, stderr=-3, cwd='/')"
    run(sandbox, f'"{sys.executable}" -c "{detach}"')
    before = processes_saying(sleeper)
    with subprocess.Popen(["sleep", "60"], cwd="/") as other:
        sandbox.stop()
        of_the_test = other.poll()
        other.kill()

    assert before == [sleeper]
    assert processes_saying(sleeper) == []
    assert of_the_test is None


@pytest.mark.skipif(sys.platform != "linux", reason="daemons without a trace are found by a limit of Linux")
def test_daemon_without_directory_and_variables_ends_with_an_unconfined_sandbox():
    """Only the sandbox's tag, which it inherited, tells whose it is."""
    sleeper = f"sleep 301.{os.getpid()}"
    with LocalSandbox(confinement=UNCONFINED) as sandbox:
        run(sandbox, f"cd / && env -i setsid -f {sleeper}")
        before = processes_saying(sleeper)
    after = processes_saying(sleeper)

    assert (before, after) == ([sleeper], [])


def test_sandbox_can_be_started_again(sandbox):
    """A new directory each time."""
    first = sandbox.root
    run(sandbox, "true")
    sandbox.stop()
    sandbox.start()

    assert sandbox.root != first
    assert run(sandbox, "pwd")["output"].startswith(str(sandbox.root))


def test_one_sandbox_is_active_at_a_time(sandbox):
    """hermes finds its shell through the variables of the process, of which there is one set."""
    with pytest.raises(UsageError) as raised:
        LocalSandbox().start()

    assert str(raised.value) == (
        "a LocalSandbox is already active in this process.\n"
        "  expected  one at a time: hermes finds its shell through the variables of the process\n"
        f"  seen      {sandbox.root}\n"
        "  fix       stop() it first; each rollout of a sandbox has a separate directory"
    )
    assert run(sandbox, "echo works")["output"] == "works"


@pytest.mark.parametrize("use_it", [lambda box: box.root, lambda box: box.machine("t").call("terminal", {"command": "ls"})])
def test_sandbox_that_is_not_active_says_so(use_it):
    """Before start and after stop there is no directory."""
    with pytest.raises(UsageError) as raised:
        use_it(LocalSandbox())

    assert str(raised.value) == (
        "this LocalSandbox is not active.\n"
        "  expected  a sandbox between start() and stop()\n"
        "  fix       use `with LocalSandbox() as sandbox: ...` or the fixture local_sandbox"
    )


def test_confinement_that_cannot_be_started_is_no_sandbox(monkeypatch, tmp_path):
    """Nobody gets less than was asked for; nothing is left of the attempt."""

    def refuse(_):
        raise CellError("unshare: Operation not permitted")

    monkeypatch.setattr(Cell, "start", refuse)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = dict(os.environ)

    with pytest.raises(UsageError) as raised:
        LocalSandbox(confinement=Confinement(kind="unshare")).start()

    assert str(raised.value) == (
        "unshare cannot confine the local sandbox.\n"
        "  expected  a confined cell for its commands\n"
        "  seen      unshare: Operation not permitted\n"
        "  fix       leave out `confinement` to use the best one that works here"
    )
    assert (dict(os.environ), list(tmp_path.iterdir()), LocalSandbox._active) == (before, [], None)


@pytest.mark.usefixtures("namespaces")
def test_rollout_that_is_to_work_outside_fails_twice(walled, tmp_path):
    """At the call, which a loop may swallow, and at the end: its commands could write nothing."""
    from tools.terminal_tool import clear_task_env_overrides, register_task_env_overrides

    register_task_env_overrides("chosen", {"env_type": "local", "cwd": str(tmp_path)})
    with pytest.raises(UsageError) as raised:
        run(walled, "true", "chosen")
    with pytest.raises(UsageError) as raised_again:
        walled.verify()
    clear_task_env_overrides("chosen")

    assert str(raised.value) == str(raised_again.value)
    assert str(raised.value) == (
        "the working directory of a rollout is outside the local sandbox, where its commands cannot write.\n"
        f"  expected  a working directory below {walled.root}, or none: the sandbox then creates one\n"
        f"  seen      {tmp_path}, registered for the task chosen\n"
        "  fix       create it with tempfile.mkdtemp(dir=os.environ['TERMINAL_SANDBOX_DIR']), or use\n"
        "            LocalSandbox(confinement=UNCONFINED)"
    )


# Tools that are not run


def test_other_tools_are_answered_as_scripted(sandbox):
    """The web, the browser and all the rest never run for real."""
    sandbox.on_tool("web_search", {"success": True, "data": {"web": []}})
    sandbox.on_tool("vision_analyze", lambda arguments: {"seen": arguments["question"]})

    results = [use(sandbox, "web_search", query="x"), use(sandbox, "vision_analyze", question="what")]
    sandbox.verify()

    assert results == [{"success": True, "data": {"web": []}}, {"seen": "what"}]


def test_pages_that_the_author_gives_exist(sandbox):
    """As in a fake sandbox."""
    sandbox.web({"https://example.com": "the text"})

    result = use(sandbox, "web_extract", urls=["https://example.com"])

    assert "the text" in json.dumps(result)


def test_tool_that_nobody_scripted_fails_twice(sandbox):
    """At the call, and when the sandbox is verified."""
    with pytest.raises(UnexpectedToolCall) as raised:
        use(sandbox, "execute_code", code="1")
    with pytest.raises(UnexpectedToolCall) as raised_again:
        sandbox.verify()

    assert str(raised.value).startswith("the sandbox was asked for the tool `execute_code`, which is not scripted.")
    assert str(raised_again.value) == str(raised.value)


def test_terminal_and_files_cannot_be_scripted():
    """They are what this sandbox is for."""
    with pytest.raises(UsageError) as raised:
        LocalSandbox().on_tool("terminal", "x")

    assert str(raised.value) == (
        "hermes itself runs the tool `terminal` in a LocalSandbox, so it cannot be scripted.\n"
        "  expected  a tool other than patch, process, read_file, search_files, terminal, todo, write_file\n"
        "  fix       use FakeSandbox to script the terminal or the files"
    )


def answer(arguments: dict[str, Any], sandbox: Any) -> dict[str, Any]:
    return {}


@pytest.mark.parametrize("result", [answer, [{}, answer]])
def test_function_that_wants_the_machine_is_refused(result):
    """In a fake sandbox it is given one in memory; here there is none."""
    with pytest.raises(UsageError) as raised:
        LocalSandbox().on_tool("web_search", result)

    assert str(raised.value) == (
        "a function that answers a tool in a LocalSandbox must take the tool's arguments only.\n"
        "  seen      answer, which also takes the sandbox, for `web_search`\n"
        "  fix       def answer(arguments): ..."
    )


SANDBOX_OF_ITS_OWN = """\
import time
from pathlib import Path
from pytest_hermes_env.sandbox.confinement import UNCONFINED
from pytest_hermes_env.sandbox.local import LocalSandbox
sandbox = LocalSandbox(confinement=UNCONFINED).start()
script = Path(sandbox.root, "daemon.py")
script.write_text("import subprocess as s; print(s.Popen(['sleep', '60'], start_new_session=True, cwd='/', stdout=-3, stderr=-3).pid)")
print(sandbox.root, sandbox.machine().call("terminal", {"command": f"python3 {script}"}), flush=True)
time.sleep(60)
"""


def test_sandbox_of_a_killed_test_process_is_removed_by_the_next(monkeypatch, tmp_path):
    """With its daemons; a sandbox in use, a directory of another making, and what links lead to stay."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "pytest-hermes-sandbox-other" / "sandbox").mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", SANDBOX_OF_ITS_OWN], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        root, _, answer = process.stdout.readline().partition(" ")
        daemon = int(json.loads(answer)["output"])
        (Path(root) / "link").symlink_to(outside)
        remove_abandoned()
        in_use = (os.path.isdir(root), runs(daemon))
        process.kill()
    left = (os.path.isdir(root), runs(daemon))

    with subprocess.Popen(
        [sys.executable, "-c", SANDBOX_OF_ITS_OWN], stdout=subprocess.PIPE, text=True, env=environment
    ) as other:
        other.stdout.readline()
        is_gone = waits_for(lambda: not os.path.isdir(root) and not runs(daemon))
        other.kill()
    remove_abandoned()

    assert (in_use, left, is_gone) == ((True, True), (True, True), True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside", "pytest-hermes-sandbox-other"]
    assert [path.name for path in outside.iterdir()] == ["kept"]


def waits_for(condition: Callable[[], bool], seconds: float = 60) -> bool:
    """Whether a condition becomes true: it does beside the work."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def runs(process: int) -> bool:
    """Whether a process runs; one that has ended and that nobody waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


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


def daemon(sandbox: LocalSandbox, task_id: str, environment: str) -> int:
    """Start a daemon that keeps nothing of its rollout, and return its process id."""
    script = sandbox.root / f"{task_id}.py"
    script.write_text(DAEMON.format(environment=environment))
    return int(run(sandbox, f"{sys.executable} {script}", task_id)["output"])


@pytest.mark.parametrize("environment", ["os.environ", "{}"])
def test_daemon_ends_with_the_sandbox(environment):
    """In another directory and session, without streams, a parent and an environment."""
    with LocalSandbox(confinement=UNCONFINED) as sandbox:
        process = daemon(sandbox, "first", environment)
        ran = runs(process)

    assert (ran, runs(process)) == (True, False)


def test_daemon_ends_with_its_rollout():
    """And that of another rollout runs on."""
    with LocalSandbox(confinement=UNCONFINED) as sandbox:
        first, second = (daemon(sandbox, name, "os.environ") for name in ("first", "second"))

        sandbox.machine("first").release()

        assert (runs(first), runs(second)) == (False, True)


def test_a_repository_around_the_sandbox_is_not_its_own(tmp_path, monkeypatch):
    """Git does not look above the directory of the sandbox, as where temporary files lie in a checkout."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    with LocalSandbox(confinement=UNCONFINED) as sandbox:
        outside = run(sandbox, "git rev-parse --show-toplevel")
        own = run(sandbox, "git init -q . && git rev-parse --is-inside-work-tree")

    assert (outside["exit_code"], own["output"].strip()) == (128, "true")
