"""What old environments import, and what they get: each import is tried in a new process, and the documentation says the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import environments.hermes_base_env as layer
from environments.tool_context import ToolContext

pytestmark = pytest.mark.usefixtures("warm_python")

ROOT = Path(layer.__file__).parents[1]
HERE = Path(__file__).parent


def run(code: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(HERE)]), "HERMES_HOME": str(tmp_path)}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def test_the_documentation_has_the_table_of_what_is_tried(tmp_path: Path) -> None:
    """In another process, where nothing is imported yet. Every name that is gone has a way out."""
    finished = run("import former_imports; print('\\n'.join(former_imports.table()))", tmp_path)

    assert finished.returncode == 0, finished.stderr
    table = finished.stdout.strip()
    assert "Error:  |" not in table
    assert table in (Path(__file__).parents[2] / "docs" / "reference" / "environments.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name", ["HermesAgentBaseEnv", "HermesAgentEnvConfig", "AgentResult", "HermesAgentLoop", "ToolContext"]
)
def test_a_name_of_the_package_is_the_class_whatever_was_imported_before(tmp_path: Path, name: str) -> None:
    """First, again, and alongside a module of that folder; the package stays a namespace package."""
    code = f"""
from environments import {name}
from environments import {name} as again
import environments, environments.rollout.agent_rollout, inspect
assert inspect.isclass({name}) and again is {name} and environments.{name} is {name}
assert not hasattr(environments, "__file__") or environments.__file__ is None
"""

    finished = run(code, tmp_path)

    assert finished.returncode == 0, finished.stderr


def test_a_rollout_starts_in_its_own_directory_whatever_terminal_cwd_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the local backend commands and files agree on it: the former layer started in TERMINAL_CWD, with all rollouts in it."""
    monkeypatch.setenv("TERMINAL_CWD", str(tmp_path))
    monkeypatch.setenv("TERMINAL_ENV", "local")
    one, other = ToolContext("former-cwd-1"), ToolContext("former-cwd-2")
    try:
        places = [ctx.terminal("pwd")["output"].strip() for ctx in (one, other)]
        one.write_file("here.txt", "x")

        assert len({*places, str(tmp_path)}) == 3
        assert one.terminal("ls")["output"].strip() == "here.txt"
        assert list(tmp_path.iterdir()) == []
    finally:
        one.cleanup()
        other.cleanup()
