"""The shell that hermes finds passes few variables on, and changes nothing else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.sandbox.local_cell import PASSED_VARIABLES, check_variables, write_shell

BASH = shutil.which("bash") or "/bin/bash"
KEYS = {
    "ANTHROPIC_API_KEY": "key",
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "key",
    "GITHUB_TOKEN": "key",
    "HF_TOKEN": "key",
    "OPENROUTER_API_KEY": "key",
    "SSH_AUTH_SOCK": "/run/agent",
    "SUDO_PASSWORD": "key",
    "WANDB_API_KEY": "key",
    "MY_OWN_SECRET": "key",
}


@pytest.fixture
def shell(tmp_path):
    """A shell without a cell."""
    return write_shell(tmp_path / "it's own", bash=BASH, enter_command=[], variables={"HOME": "/home/of it", "TMPDIR": "/t"})


def variables(shell: Path, given: dict[str, str]) -> dict[str, str]:
    """What a command sees when the shell is started with ``given``."""
    ran = subprocess.run([str(shell), "-c", "env -0"], check=True, capture_output=True, text=True, env=given)
    seen = dict(line.split("=", 1) for line in ran.stdout.split("\0") if line)
    return {name: value for name, value in seen.items() if name not in {"_", "PWD", "OLDPWD", "SHLVL"}}


def test_no_key_of_the_test_run_is_passed_on(shell):
    """A command gets PATH, the language, the terminal and the defined variables; no key."""
    language = {"LANG": "C.UTF-8", "LC_TIME": "C", "TERM": "dumb", "TZ": "UTC", "USER": "me", "PYTHONUNBUFFERED": "1"}

    seen = variables(shell, {"PATH": "/usr/bin:/bin", "HOME": "/root", **KEYS, **language})

    assert seen == {"PATH": "/usr/bin:/bin", "HOME": "/home/of it", "TMPDIR": "/t", "SHELL": BASH, **language}


def test_variables_that_are_not_set_stay_unset(shell):
    """An empty TERM and no TERM are not the same."""
    seen = variables(shell, {"PATH": "/usr/bin:/bin", "LANG": ""})

    assert seen == {"PATH": "/usr/bin:/bin", "HOME": "/home/of it", "TMPDIR": "/t", "SHELL": BASH, "LANG": ""}


def test_variable_of_the_sandbox_wins(tmp_path):
    """What the author gives is what every command sees."""
    given = {"LANG": "de_DE.UTF-8", "HF_TOKEN": "a 'test' key; $HOME"}
    shell = write_shell(tmp_path / "bin", bash=BASH, enter_command=[], variables=given)

    seen = variables(shell, {"PATH": "/usr/bin:/bin", "LANG": "C", "HF_TOKEN": "real"})

    assert seen == {"PATH": "/usr/bin:/bin", "SHELL": BASH, **given}


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        ("{own}:/usr/bin:/bin", "/usr/bin:/bin"),
        ("/usr/bin:{own}:/bin", "/usr/bin:/bin"),
        ("/usr/bin:/bin:{own}", "/usr/bin:/bin"),
        ("/usr/bin:/bin", "/usr/bin:/bin"),
        ("/usr/bin:{own}-other:/bin", "/usr/bin:{own}-other:/bin"),
    ],
)
def test_shell_takes_itself_off_the_path(shell, path, seen):
    """A bash that a command starts is the real one: inside, nothing can be entered once more."""
    own = str(shell.parent)

    assert variables(shell, {"PATH": path.format(own=own)})["PATH"] == seen.format(own=own)


def test_arguments_input_exit_code_and_directory_come_through(shell, tmp_path):
    """It is bash, for all that hermes can see."""
    script = 'printf "%s|" "$PWD" "$@"; cat; exit 7'

    ran = subprocess.run(
        [str(shell), "-c", script, "name", "two words", "", "$HOME"],
        check=False,
        capture_output=True,
        text=True,
        input="input",
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (7, f"{tmp_path}|two words||$HOME|input", "")


def test_entering_gets_the_directory_of_the_caller_and_the_command(tmp_path):
    """The words that enter a cell are followed by the directory and by bash with its arguments."""
    enter_command = ["/bin/sh", "-c", 'printf "%s|" "$@"', "entered"]
    shell = write_shell(tmp_path / "bin", bash=BASH, enter_command=enter_command, variables={"HOME": str(tmp_path)})
    words = [str(shell), "-c", "true", "a b"]

    ran = subprocess.run(words, check=True, capture_output=True, text=True, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"})

    assert ran.stdout == f"{tmp_path}|{BASH}|-c|true|a b|"


def test_no_passed_variable_has_the_name_of_a_key():
    """The list is short, and none of it is secret."""
    assert [name for name in PASSED_VARIABLES if any(word in name for word in ("KEY", "TOKEN", "SECRET", "PASS", "AUTH"))] == []


@pytest.mark.parametrize(
    ("name", "value", "seen"),
    [("A B", "x", "A B = 'x'"), ("1A", "x", "1A = 'x'"), ("", "x", " = 'x'"), ("A", 5, "A = 5"), ("A", "x\0", "A = 'x\\x00'")],
)
def test_variable_that_no_command_can_have_is_refused(name, value, seen):
    """Names are names of a shell, values are text."""
    with pytest.raises(UsageError) as raised:
        check_variables({name: value})

    assert str(raised.value) == (
        f"LocalSandbox cannot give commands the variable {seen}.\n"
        "  expected  a name of letters, digits and _, and text as the value\n"
        '  fix       for example LocalSandbox(variables={"DATABASE": "sqlite:///data.db"})'
    )
