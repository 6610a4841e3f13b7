"""An error names the project module that shadows one of hermes-agent's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from environments.hermes_modules import explain_shadowing, shadowed_modules

pytestmark = pytest.mark.usefixtures("warm_python")

ROOT = Path(sys.modules["environments.hermes_modules"].__file__).parents[1]
BUILD = """
import sys
sys.path.insert(0, sys.argv[1])
from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig
class Env(HermesAgentBaseEnv):
    def __init__(self): self.config = HermesAgentEnvConfig(enabled_toolsets=["file", "terminal"])
Env.__abstractmethods__ = frozenset()
Env()._resolve_tools_for_group()
"""
LOOK = """
import sys
sys.path.insert(0, sys.argv[1])
from environments import agent_loop, hermes_modules
print(hermes_modules.shadowed_modules())
"""


def run(project: Path, code: str = BUILD) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HERMES_HOME": str(project / "home")}
    return subprocess.run(
        [sys.executable, "-c", code, str(project)], env=environment, cwd=project, capture_output=True, text=True, check=False
    )


def test_nothing_is_hidden_here():
    """In a sound installation there is nothing to explain."""
    assert (shadowed_modules(), explain_shadowing()) == ({}, "")


@pytest.mark.parametrize("module", ["utils.py", "tools/__init__.py", "toolsets.py"])
def test_hidden_module_is_named_with_its_file(tmp_path, module):
    """The error names the file that hides hermes' module, and what to do."""
    path = tmp_path / module
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine = True\n")

    finished = run(tmp_path)

    assert finished.returncode == 1
    assert "A module of your project shadows one of hermes-agent's own" in finished.stderr
    assert f"comes from {path}" in finished.stderr
    assert "Rename it" in finished.stderr


def test_hidden_module_is_named_by_a_module_of_a_benchmark(tmp_path):
    """Also one that imports hermes' modules by itself."""
    (tmp_path / "tools.py").write_text("mine = True\n")

    finished = run(
        tmp_path, "import sys\nsys.path.insert(0, sys.argv[1])\nimport environments.benchmarks.terminalbench_2.verification"
    )

    assert f"A module of your project shadows one of hermes-agent's own: `tools` comes from {tmp_path}" in finished.stderr


def test_directory_without_a_package_hides_nothing(tmp_path):
    """A folder of that name is not a module as long as hermes' package is there."""
    (tmp_path / "tools").mkdir()

    finished = run(tmp_path, LOOK)

    assert (finished.returncode, finished.stdout) == (0, "{}\n")
