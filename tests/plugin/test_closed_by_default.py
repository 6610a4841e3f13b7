"""A machine that cannot confine commands: nothing runs on it unless the run says so, and `hermes-env doctor` says what it needs.

The machine is a user namespace in which no other may be made.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT_NAMESPACES = (
    "unshare",
    "--user",
    "--map-root-user",
    "sh",
    "-c",
    'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"',
    "sh",
)
OPEN = "local sandbox: NOT CONFINED: commands have your files, your processes and your network"

PROJECT = """
import os


def test_local(local_sandbox, tool_context):
    assert tool_context.terminal(f"cat {os.getcwd()}/outside")["output"] == "a file of the user"


def test_real_line_of_fake(fake_sandbox, tool_context):
    assert tool_context.terminal("printf '%s' $((20 + 1))")["output"] == "21"


def test_in_memory(fake_sandbox, tool_context):
    assert tool_context.terminal("echo 21")["output"] == "21"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Tests of both sandboxes, beside a file that no command may read."""
    if subprocess.run([*WITHOUT_NAMESPACES, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine gives no namespaces")
    (tmp_path / "outside").write_text("a file of the user")
    (tmp_path / "test_sandboxes.py").write_text(PROJECT)
    return tmp_path


def run(directory: Path, *words: str) -> tuple[int, str]:
    """Run a program in the directory, on that machine, and return its exit code and its output in one line."""
    command = [*WITHOUT_NAMESPACES, sys.executable, "-m", *words]
    ran = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=directory, env={**os.environ, "COLUMNS": "400"}
    )
    return ran.returncode, " ".join((ran.stdout + ran.stderr).split())


def test_nothing_runs_that_nothing_confines(project: Path) -> None:
    """Both sandboxes say how it would."""
    code, text = run(project, "pytest", "-p", "no:cacheprovider")

    assert (code, "1 failed, 1 passed" in text, "1 error" in text or "2 errors" in text) == (1, True, True), text
    assert "UsageError: this machine cannot confine the commands of a local sandbox." in text
    assert "real bash cannot be confined on this machine (bwrap: " in text
    assert text.count("`hermes-env doctor` says how this machine could; --hermes-confine=off runs commands") >= 2
    assert OPEN not in text


@pytest.mark.parametrize("how", ["flag", "ini"])
def test_unconfined_commands_are_asked_for_by_name(how: str, project: Path) -> None:
    """And the header says it."""
    if how == "ini":
        (project / "pytest.ini").write_text("[pytest]\nhermes_confine = off\n")

    code, text = run(project, "pytest", "-p", "no:cacheprovider", *(["--hermes-confine=off"] if how == "flag" else []))

    assert (code, "3 passed" in text, OPEN in text) == (0, True, True), text


def test_an_unknown_value_is_refused(project: Path) -> None:
    """A word that is no choice must not open anything."""
    (project / "pytest.ini").write_text("[pytest]\nhermes_confine = no\n")

    code, text = run(project, "pytest", "-p", "no:cacheprovider")

    assert (code != 0, "hermes_confine is 'no'. Known: required, off" in text) == (True, True), text


def test_the_contract_says_it_once(project: Path) -> None:
    """A rule that needs the local sandbox is not judged on another one."""
    target = "environments.terminal_test_env.terminal_test_env:TerminalTestEnv"
    words = ("pytest", "-p", "no:cacheprovider", "--hermes-env", target, "--hermes-sandbox=local", "--hermes-rules=HE301")

    code, text = run(project, *words)

    assert (code != 0, "this machine cannot confine the commands of a local sandbox" in text) == (True, True), text


def test_the_doctor_names_what_is_wrong(project: Path) -> None:
    """Confinement, a module of hermes that the project hides, and a stale package."""
    (project / "tools.py").touch()
    (project / "environments").mkdir()
    (project / "environments" / "__init__.py").touch()

    code, text = run(project, "pytest_hermes_env.cli", "doctor")

    assert code == 1
    for seen in (
        f"! confinement {OPEN} (bwrap: ",
        "-> Allow user namespaces: sudo sysctl -w user.max_user_namespaces=10000.",
        "! modules tools.py hides an installed module of that name -> Rename it",
        "! modules environments/__init__.py hides an installed module of that name -> Delete the file",
    ):
        assert seen in text, text


def test_the_doctor_names_what_killed_runs_left(tmp_path: Path) -> None:
    """And what could not be removed; it removes neither."""
    script = "import sys; from hermes_env_shared.abandoned import claim; claim(sys.argv[1], 'x'); import os; os._exit(1)"
    temporary = tmp_path / "temporary"
    (temporary / "hermes-set-aside-1").mkdir(parents=True)
    (temporary / "sandbox").mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary), "HERMES_HOME": str(tmp_path / "home")}
    subprocess.run([sys.executable, "-c", script, str(temporary / "sandbox")], check=False, env=environment)

    words = [sys.executable, "-m", "pytest_hermes_env.cli", "doctor"]
    ran = subprocess.run(words, check=False, capture_output=True, text=True, cwd=tmp_path, env=environment)

    text = " ".join(ran.stdout.split())
    assert (ran.returncode, f"of killed processes: {temporary}/sandbox" in text) == (1, True), text
    assert f"could not be removed: {temporary}/hermes-set-aside-1" in text
    assert sorted(path.name for path in temporary.iterdir() if not path.name.startswith(".")) == [
        "hermes-set-aside-1",
        "sandbox",
    ]
