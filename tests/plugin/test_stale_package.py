"""A leftover ``environments/__init__.py`` of the former layer is named as the cause, with the way out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_hermes_env import stale_package
from pytest_hermes_env.contract.check import check_paths
from pytest_hermes_env.contract.reports.text import report_lines

pytestmark = pytest.mark.usefixtures("warm_python")

FORMER = """
try:
    from environments.agent_loop import AgentResult, HermesAgentLoop
    from environments.tool_context import ToolContext
    from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig
except ImportError:
    pass
"""
BODY = """
class GreetEnv(HermesAgentBaseEnv):
    name = "greet"

    @classmethod
    def config_init(cls):
        return HermesAgentEnvConfig(enabled_toolsets=["file"]), [APIServerConfig(base_url="http://localhost:1/v1")]

    async def setup(self):
        self.eval_items = [{"text": "eve"}]

    async def get_next_item(self):
        return {"text": "ann"}

    def format_prompt(self, item):
        return item["text"]

    async def compute_reward(self, item, result, ctx):
        return 1.0

    async def evaluate(self, *args, **kwargs):
        await self.evaluate_items()
"""
SERVER = "from atroposlib.envs.server_handling.server_manager import APIServerConfig\n"
BY_MODULE = "from environments.hermes_base_env import HermesAgentBaseEnv, HermesAgentEnvConfig\n"
BY_PACKAGE = "from environments import HermesAgentBaseEnv, HermesAgentEnvConfig\n"
LAYER = Path(sys.modules["pytest_hermes_env"].__file__).parents[1]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the former layer's folder, of which only the ``__init__.py`` and an environment of its own are left."""
    folder = tmp_path / "environments"
    folder.mkdir()
    (folder / "__init__.py").write_text(FORMER)
    (folder / "greet_env.py").write_text(SERVER + BY_MODULE + BODY)
    return tmp_path


def run(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(project), str(LAYER)])
    environment = {**os.environ, "PYTHONPATH": paths, "HERMES_HOME": str(project / "home")}
    return subprocess.run([sys.executable, *words], env=environment, cwd=project, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("imported", [BY_MODULE, BY_PACKAGE, "import environments.terminal_test_env.terminal_test_env\n"])
def test_the_plugin_names_the_file_where_an_import_fails(project: Path, imported: str) -> None:
    """Of a test module here; a conftest and --hermes-env import by the same way."""
    (project / "test_greet.py").write_text(f"{imported}\ndef test_nothing():\n    pass\n")

    finished = run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_greet.py")

    assert f"because of {project}/environments/__init__.py. {stale_package.WHY} {stale_package.FIX}" in finished.stdout
    assert finished.returncode == 2


def test_the_plugin_names_the_file_of_a_package_inside(project: Path) -> None:
    """The former folder of benchmarks had one, too."""
    folder = project / "environments"
    (folder / "__init__.py").unlink()
    (folder / "benchmarks").mkdir()
    (folder / "benchmarks" / "__init__.py").touch()
    module = "environments.benchmarks.tblite.tblite_env"
    (project / "test_bench.py").write_text(f"import {module}\ndef test_nothing():\n    pass\n")

    finished = run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_bench.py")

    assert f"environments.benchmarks.tblite cannot be imported because of {folder}/benchmarks/__init__.py. " in finished.stdout


def test_a_module_that_exists_nowhere_is_pythons_own_error(project: Path) -> None:
    """The leftover file is not its cause."""
    (project / "test_typo.py").write_text("import environments.no_such_env\n")

    finished = run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_typo.py")

    assert "No module named 'environments.no_such_env'" in finished.stdout
    assert "because of" not in finished.stdout


def test_a_target_of_a_contract_run_names_the_file(project: Path) -> None:
    """By the rule about imports."""
    finished = run(project, "-m", "pytest", "-p", "no:cacheprovider", "-v", "--hermes-env", "environments/greet_env.py")

    text = " ".join(finished.stdout.split())
    assert "environments/greet_env.py:2:1: HE110" in text
    assert f"/environments/__init__.py. {stale_package.WHY} {stale_package.FIX}" in text


@pytest.mark.parametrize("imported", [BY_MODULE, BY_PACKAGE])
def test_check_names_the_file(project: Path, monkeypatch: pytest.MonkeyPatch, imported: str) -> None:
    """Once, however many files import the layer."""
    monkeypatch.chdir(project)
    for name in ("greet_env.py", "other_env.py"):
        (project / "environments" / name).write_text(SERVER + imported + BODY)

    report = check_paths(["environments"])

    (problem,) = report.problems
    lines = "\n".join(report_lines(report))
    assert (problem.path, problem.id) == ("environments/__init__.py", "stale-package")
    assert "cannot be imported because of this file" in problem.message
    assert " ".join(lines.split()).count(stale_package.FIX) == 1
    assert report.exit_code == 1


@pytest.mark.parametrize("kept", ["a whole fork", "no init file", "a package of the project's own"])
def test_check_says_nothing_of_a_folder_that_hides_no_layer(project: Path, monkeypatch: pytest.MonkeyPatch, kept: str) -> None:
    """A fork with its own layer, a namespace package, and ``project.environments`` are sound."""
    monkeypatch.chdir(project)
    folder = project / "environments"
    if kept == "a whole fork":
        for name in ("hermes_base_env", "agent_loop", "tool_context"):
            (folder / f"{name}.py").write_text("class HermesAgentBaseEnv: ...\nclass HermesAgentEnvConfig: ...\n")
    elif kept == "no init file":
        (folder / "__init__.py").unlink()
    else:
        (project / "mine").mkdir()
        (project / "mine" / "__init__.py").touch()
        folder.rename(project / "mine" / "environments")

    assert check_paths(["."]).problems == ()


def test_the_layer_warns_of_the_file_when_it_was_imported_first(project: Path) -> None:
    """A script that imports the layer before it changes sys.path: its own modules are hidden then."""
    (project / "script.py").write_text(
        "import logging, sys\nlogging.basicConfig()\nhere = sys.path.pop(0)\nsys.path.remove(here)\n"
        + SERVER
        + BY_PACKAGE
        + BODY
        + "sys.path.insert(0, here)\nconfig, servers = GreetEnv.config_init()\nGreetEnv(config, servers, testing=True)\n"
        + "GreetEnv(config, servers, testing=True)\n"
    )

    finished = run(project, "script.py")

    assert finished.stderr.count(f"{project}/environments/__init__.py makes its directory a regular package") == 1
    assert "Delete the file" in finished.stderr


def test_an_environment_beside_the_layer_is_imported_once_the_file_is_gone(project: Path) -> None:
    """The way out is one: the folder then works, and both forms of the import too."""
    (project / "environments" / "__init__.py").unlink()

    code = f"from environments.greet_env import GreetEnv\n{BY_PACKAGE}assert issubclass(GreetEnv, HermesAgentBaseEnv)"

    assert run(project, "-c", code).returncode == 0


def test_check_reads_both_forms_of_the_import_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of the package are those of its modules."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "by_module.py").write_text(SERVER + BY_MODULE + BODY)
    (tmp_path / "by_package.py").write_text(SERVER + BY_PACKAGE + BODY)

    ledgers = check_paths(["by_module.py", "by_package.py"]).ledgers

    outcomes = [[(entry.rule.id, entry.outcome.value) for entry in ledger.entries] for ledger in ledgers]
    assert outcomes[0] == outcomes[1]
    assert dict(outcomes[1])["HE114"] == "passed"  # the methods of the base are known
