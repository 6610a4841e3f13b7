"""Every rollout has a sandbox of its own, which can be taken away as a whole."""

from __future__ import annotations

import concurrent.futures
import json
import os
import sys
import uuid
from pathlib import Path

import psutil
import pytest
from tools import terminal_tool
from tools.process_registry import process_registry

from environments.sandbox import isolation
from environments.sandbox.isolation import close_sandbox, open_sandbox, result_storage, sandbox_directory
from environments.tool_context import ToolContext


@pytest.fixture
def task_id():
    """A task id whose sandbox is gone afterwards."""
    name = str(uuid.uuid4())
    yield name
    close_sandbox(name)
    terminal_tool.clear_task_env_overrides(name)


def test_sandbox_is_a_session_of_its_own_in_an_empty_directory(task_id, monkeypatch):
    """hermes keeps the task id apart, and starts it in a fresh directory."""
    monkeypatch.setenv("TERMINAL_ENV", "local")

    open_sandbox(task_id)

    directory = sandbox_directory(task_id)
    assert terminal_tool._task_env_overrides[task_id] == {"env_type": "local", "cwd": directory}
    assert terminal_tool._resolve_container_task_id(task_id) == task_id
    assert os.listdir(directory) == []


def test_directories_are_made_where_the_user_keeps_sandboxes(task_id, monkeypatch, tmp_path):
    """hermes has a variable for the place of all sandboxes; it need not exist yet."""
    monkeypatch.setenv("TERMINAL_ENV", "local")
    monkeypatch.setenv("TERMINAL_SANDBOX_DIR", str(tmp_path / "large disk"))

    open_sandbox(task_id)

    directory = Path(sandbox_directory(task_id))
    assert (directory.parent, directory.is_dir()) == (Path(os.path.realpath(tmp_path)) / "large disk", True)


def test_opening_from_many_threads_makes_one_directory(task_id):
    """A turn with several calls opens from several threads."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(open_sandbox, [task_id] * 32))

    prefix = Path(sandbox_directory(task_id)).name.rsplit("-", 1)[0]
    assert len(list(Path(sandbox_directory(task_id)).parent.glob(f"{prefix}-*"))) == 1


def test_directories_deeper_than_python_are_removed(task_id, monkeypatch):
    """And the next rollout opens its own."""
    monkeypatch.setenv("TERMINAL_ENV", "local")
    made = ToolContext(task_id).terminal("mkdir -p $(printf 'd/%.0s' $(seq 1500)) && chmod 000 d && echo made")
    directory = sandbox_directory(task_id)

    close_sandbox(task_id)
    open_sandbox(task_id)

    assert (made["output"], os.path.exists(directory), os.listdir(sandbox_directory(task_id))) == ("made", False, [])


def test_other_backends_get_no_local_directory(task_id, monkeypatch):
    """Where files are not on this machine, only the session is made apart."""
    monkeypatch.setenv("TERMINAL_ENV", "docker")

    open_sandbox(task_id)

    assert terminal_tool._task_env_overrides[task_id] == {"env_type": "docker"}
    assert sandbox_directory(task_id) is None


def test_image_of_the_environment_stays(task_id, monkeypatch):
    """An environment that registered a Docker image for its task keeps it."""
    monkeypatch.setenv("TERMINAL_ENV", "docker")
    terminal_tool.register_task_env_overrides(task_id, {"docker_image": "mine"})

    open_sandbox(task_id)

    assert terminal_tool._task_env_overrides[task_id] == {"docker_image": "mine"}


def test_image_gets_a_working_directory_on_the_local_backend(task_id, monkeypatch):
    """An environment made for Docker and run locally does not work in the directory of the process."""
    monkeypatch.setenv("TERMINAL_ENV", "local")
    terminal_tool.register_task_env_overrides(task_id, {"docker_image": "mine"})

    open_sandbox(task_id)

    registered = {"env_type": "local", "docker_image": "mine", "cwd": sandbox_directory(task_id)}
    assert terminal_tool._task_env_overrides[task_id] == registered
    assert ToolContext(task_id).terminal("pwd")["output"] == sandbox_directory(task_id)


def test_working_directory_of_the_environment_is_completed(task_id, tmp_path, monkeypatch):
    """A working directory alone would leave the task in the session that all share."""
    monkeypatch.setenv("TERMINAL_ENV", "local")
    terminal_tool.register_task_env_overrides(task_id, {"cwd": str(tmp_path)})

    open_sandbox(task_id)

    assert terminal_tool._resolve_container_task_id(task_id) == task_id
    assert terminal_tool._task_env_overrides[task_id] == {"env_type": "local", "cwd": str(tmp_path)}
    close_sandbox(task_id)
    assert tmp_path.is_dir()


@pytest.mark.parametrize("name", ["../../etc/x", "a b;$(touch x)", "", "-"])
def test_task_id_is_harmless_in_a_directory_name(name, monkeypatch):
    """Whatever a task is called, its directory lies in the temporary directory."""
    monkeypatch.setenv("TERMINAL_ENV", "local")
    open_sandbox(name)
    directory = sandbox_directory(name)
    try:
        assert os.path.dirname(directory) == os.path.realpath(isolation.tempfile.gettempdir())
        assert set(os.path.basename(directory)) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
    finally:
        close_sandbox(name)
        isolation._sandboxes.pop(name, None)
        terminal_tool.clear_task_env_overrides(name)
        if os.path.isdir(directory):
            os.rmdir(directory)


def test_closing_twice_or_without_opening_does_nothing(task_id):
    """Idempotent, and harmless for a rollout that never used a tool."""
    close_sandbox(task_id)
    open_sandbox(task_id)
    close_sandbox(task_id)
    close_sandbox(task_id)

    assert task_id not in terminal_tool._task_env_overrides
    assert sandbox_directory(task_id) is None


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are found by their directory, on Linux")
def test_command_that_detached_itself_is_killed(task_id):
    """A child in a session of its own is in no list of hermes', and works in the rollout's directory."""
    detach = "import subprocess as s; print(s.Popen(['sleep', '300.25'], start_new_session=True, stdout=-3, stderr=-3).pid)"
    pid = int(ToolContext(task_id).terminal(f'{sys.executable} -c "{detach}"')["output"])
    ran = psutil.Process(pid).cmdline()

    close_sandbox(task_id)

    assert ran == ["sleep", "300.25"]
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("nothing", [None, ""])
def test_closing_no_task_closes_no_task(sandbox, nothing):
    """hermes takes "no task" for "every task": other rollouts' processes must not be killed."""
    started = json.loads(sandbox.call_tool("terminal", {"command": "sleep 60", "background": True}))

    ToolContext(nothing).cleanup()

    assert process_registry.poll(started["session_id"])["status"] == "running"


def test_part_that_fails_keeps_no_other_from_being_released(task_id, monkeypatch, caplog):
    """Clean-up never raises; what fails is logged and the rest still happens."""
    open_sandbox(task_id)
    directory = sandbox_directory(task_id)

    def broken(_task_id: str) -> int:
        raise OSError("registry is gone")

    monkeypatch.setattr(process_registry, "kill_all", broken)

    close_sandbox(task_id)

    assert "failed in _kill_processes" in caplog.text
    assert (os.path.exists(directory), task_id in terminal_tool._task_env_overrides) == (False, False)


def test_equal_call_ids_of_two_rollouts_do_not_meet():
    """hermes names a stored result after the call's id, and models number their calls alike."""
    from tools.budget_config import BudgetConfig
    from tools.tool_result_storage import maybe_persist_tool_result

    contexts = [ToolContext(str(uuid.uuid4())) for _ in range(2)]
    paths = []
    for ctx, letter in zip(contexts, "ab", strict=True):
        ctx.terminal("true")
        storage = result_storage(ctx.task_id, terminal_tool.get_active_env(ctx.task_id))
        text = maybe_persist_tool_result(letter * 5000, "terminal", "call_0", env=storage, config=BudgetConfig(), threshold=10)
        paths.append(Path(text.split("Full output saved to: ")[1].split("\n")[0]))

    contents = [path.read_text() for path in paths]
    for ctx in contexts:
        ctx.cleanup()

    assert contents == ["a" * 5000, "b" * 5000]
    assert [path.parent.parent.exists() for path in paths] == [False, False]
