"""The layer and the kit on a hermes-agent that renamed tools, deferred some, and split its modules."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from hermes_env_shared.hermes_names import NAMES, HermesNameMissing, former_name, hermes_name, tool_name
from tests.environments import later_hermes

ROOT = Path(__file__).parents[2]
ROLLOUT = """
import asyncio

import model_tools
from environments.terminal_test_env.terminal_test_env import TerminalTestEnv
from hermes_env_shared.hermes_names import tool_name
from pytest_hermes_env import call, say

FILE = {"path": "greeting.txt", "content": "Hello from Hermes Agent"}
TODO, PROCESS = tool_name("todo"), tool_name("process")


def play(env):
    async def go():
        await env.setup()
        return await env.collect_trajectory(await env.get_next_item())

    return asyncio.run(go())[0]


def test_a_rollout(make_env, fake_sandbox):
    turns = [
        call(TODO, todos=[{"id": "1", "content": "write it", "status": "pending"}]),
        call("write_file", **FILE),
        call("terminal", command="cat greeting.txt; true"),
        call(PROCESS, action="list"),
        call("read_file", path=FILE["path"]),
        say("Done."),
    ]
    env = make_env(TerminalTestEnv, script=turns, enabled_toolsets=["terminal", "file", "todo"])

    row = play(env)

    results = [message["content"] for message in row["messages"] if message["role"] == "tool"]
    assert row["scores"] == 1.0
    assert "write it" in results[0] and "error" not in results[0]
    assert FILE["content"] in results[2] and '"processes": []' in results[3] and FILE["content"] in results[4]
"""
NAMES_OF_LATER = """

def test_the_names_are_the_registry_s():
    assert (TODO, PROCESS) == ("todo_list", "process_manage")
"""


@pytest.fixture
def run(tmp_path: Path):
    """``run(test, **how)`` runs a test file in a process that has the later hermes."""

    def play(test: str, *, is_later: bool = True, **how: str) -> subprocess.CompletedProcess[str]:
        if is_later and not metadata.version("hermes-agent").startswith("0.19."):
            pytest.skip("the later hermes is made out of 0.19")
        place = later_hermes.make(tmp_path / "hermes", **how) if is_later else tmp_path
        (tmp_path / "test_it.py").write_text(test)
        environ = os.environ | {"PYTHONPATH": os.pathsep.join([str(place), str(ROOT)]), "HERMES_HOME": str(tmp_path / "home")}
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
        return subprocess.run(words, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)

    return play


def test_a_rollout_runs_on_a_later_hermes(run):
    done = run(ROLLOUT + NAMES_OF_LATER)

    assert done.returncode == 0, done.stdout[-5000:]
    assert "2 passed" in done.stdout


def test_a_rollout_runs_on_the_hermes_that_is_installed(run):
    """Hosted CI runs it on a checkout, too."""
    done = run(ROLLOUT, is_later=False)

    assert done.returncode == 0, done.stdout[-5000:]


def test_a_name_that_is_gone_is_one_clear_error(run):
    test = """
from hermes_env_shared.hermes_names import HermesNameMissing, hermes_name
import pytest

def test_it():
    with pytest.raises(HermesNameMissing) as raised:
        hermes_name("tools.terminal_tool", "_interpret_exit_code")
    assert str(raised.value) == 1, str(raised.value)
"""

    done = run(test, without="_interpret_exit_code")

    shown = re.sub(r"\s+", " ", done.stdout)
    assert "hermes-agent 0.21.3" in shown
    assert (
        "has no _interpret_exit_code in tools.terminal_tool or a part of it. It was seen in hermes-agent >=0.19,<0.23: "
        in shown
    )


def test_every_name_of_the_table_is_there():
    for module, name in NAMES:
        assert hermes_name(module, name) is not None


def test_a_name_that_is_not_in_the_table_is_refused():
    with pytest.raises(KeyError):
        hermes_name("tools.terminal_tool", "_something_else")


def test_of_todays_tools_the_names_are_their_own():
    assert (tool_name("process"), tool_name("todo")) == ("process", "todo")
    assert [former_name(name) for name in ("process", "process_manage", "read_file", "todo_write")] == [
        "process",
        "process_manage",
        "read_file",
        "todo_write",
    ]
    assert issubclass(HermesNameMissing, ImportError)


def test_no_private_name_of_hermes_is_imported_past_the_table():
    private = re.compile(r"^ *from (?:tools|model_tools|agent|toolsets?)\b[\w.]* import (?:\([^)]*|.*)\b_\w+", re.MULTILINE)
    files = [
        file for name in ("environments", "pytest_hermes_env", "hermes_env_shared") for file in (ROOT / name).rglob("*.py")
    ]

    found = [str(file) for file in files if private.search(file.read_text(encoding="utf-8"))]

    assert len(files) > 300
    assert private.search("    from tools.registry import registry, _private")
    assert found == []
