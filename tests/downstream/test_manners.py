"""Three projects as other people write them, under the plugins and settings that other people use, from the installed wheel.

Each cell runs the project's own tests and the contract of one class with a planted fault: all is green but the rule that owns the fault.
`tox run -e downstream` runs all; without its plugins one project runs once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

PROJECTS = Path(__file__).parent / "projects"
OLDEST = "HERMES_OLDEST_PYTEST"
"""The variable with the Python of a virtual environment that has the oldest pytest supported."""
PYTHONS = {"newest": sys.executable if OLDEST in os.environ else "", "oldest": os.environ.get(OLDEST, "")}
LIMIT_S = 600


@dataclass(frozen=True, kw_only=True)
class Project:
    """A project; ``fault`` is the class with the planted fault, ``found`` the test that fails.

    ``own`` is how many tests it has besides contracts, two of them async, in ``tests``.
    """

    name: str
    fault: str
    found: str
    own: int
    tests: str = "tests"


FOREIGN = (
    Project(
        name="fork",
        fault="src/acme_rl/words_without_super.py",
        found="SilentWordsEnv[HE801-awaits-super-wandb-log]",
        own=4,
    ),
    Project(
        name="own_environments",
        fault="environments/dates_on_training_items.py",
        found="KnownDatesEnv[HE203-eval-is-held-out]",
        own=5,
    ),
    Project(name="monorepo", fault="envs/spell/env.py", found="SpellEnv[HE401-reward-is-a-finite-number]", own=4, tests="."),
)

MANNERS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "asyncio_auto": ("-o", "asyncio_mode=auto"),
    "asyncio_strict": ("-o", "asyncio_mode=strict"),
    "without_anyio": ("-p", "no:anyio", "--ignore-glob", "*anyio.py"),
    "without_asyncio": ("-p", "no:asyncio", "--ignore-glob", "*asyncio.py"),
    "xdist": ("-n", "2"),
    "xdist_loadscope": ("-n", "2", "--dist", "loadscope"),
    "randomly": ("-p", "randomly"),
    "timeout": ("--timeout", "300"),
    "timeout_in_threads": ("--timeout", "300", "--timeout-method", "thread"),
    "cov": ("--cov", ".", "--cov-branch"),
    "warnings_are_errors": ("-W", "error", "-o", "asyncio_default_fixture_loop_scope=function"),
    "importlib": ("--import-mode", "importlib"),
    "unraisable_is_an_error": ("-W", "error::pytest.PytestUnraisableExceptionWarning", "-W", "error::ResourceWarning"),
}


@pytest.fixture(params=PYTHONS)
def python(request: pytest.FixtureRequest) -> str:
    """The Python of an installation with the plugins, and with the newest, or oldest, pytest."""
    if not PYTHONS[request.param]:
        pytest.skip("the plugins are not installed: tox run -e downstream")
    return PYTHONS[request.param]


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A run: exit code, output, the tests that did not pass, and how many passed."""

    code: int
    output: str
    bad: frozenset[str]
    passed: frozenset[str]


def run(python: str, project: Project, directory: Path, *args: str) -> Finished:
    """Run pytest as the project's author would, in a copy of the project."""
    copy = directory / project.name
    shutil.copytree(PROJECTS / project.name, copy)
    report = directory / "report.xml"
    command = [python, "-m", "pytest", "--hermes-env", project.fault, f"--junitxml={report}", "-p", "no:cacheprovider"]
    command += ["-p", "no:randomly"] * ("randomly" not in args)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "HERMES_", "COV_"))}
    finished = subprocess.run(
        [*command, *args, project.tests],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    cases = list(ET.parse(report).iter("testcase")) if report.exists() else []
    bad = {case.get("name", "") for case in cases if case.find("failure") is not None or case.find("error") is not None}
    skipped = {case.get("name", "") for case in cases if case.find("skipped") is not None}
    return Finished(
        code=finished.returncode,
        output=f"{finished.stdout}\n{finished.stderr}",
        bad=frozenset(bad),
        passed=frozenset(
            f"{case.get('classname')}.{case.get('name')}" for case in cases if case.get("name") not in bad | skipped
        ),
    )


@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("project", FOREIGN, ids=lambda project: project.name)
def test_only_the_planted_fault_is_red(python: str, project: Project, manner: str, tmp_path: Path) -> None:
    """Whatever the manner, the project's own tests pass, and the fault is found by its rule."""
    quick = ("-m", "not slow") if project.name == "monorepo" and manner != "plain" else ()
    without_some = manner.startswith("without")

    finished = run(python, project, tmp_path, *MANNERS[manner], *quick)

    assert (finished.code, finished.bad) == (1, {project.found}), finished.output
    own = [name for name in finished.passed if "[HE" not in name]
    assert len(own) == project.own - without_some, own


def test_a_layer_of_another_hand_is_judged(tmp_path: Path) -> None:
    """The fork's base, loop and context are its own; this needs no plugin but ours."""
    (project, *_) = FOREIGN

    finished = run(sys.executable, project, tmp_path, "--ignore-glob", "*_with_*")

    assert (finished.code, finished.bad) == (1, {project.found}), finished.output
    assert len([name for name in finished.passed if "[HE" not in name]) == project.own - 2, finished.output


def test_a_module_that_hides_one_of_hermes_is_named(python: str, tmp_path: Path) -> None:
    """A project's utils.py on the path would leave hermes without tools; the error says which file to rename."""
    project = FOREIGN[2]
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "utils.py").write_text("mine = True\n")

    finished = run(python, project, tmp_path, "-o", f"pythonpath=. {hidden}")

    assert finished.code != 0
    assert f"`utils` comes from {hidden / 'utils.py'}" in finished.output.replace("\n", ""), finished.output
