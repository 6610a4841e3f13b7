"""How commands are confined is tried, not guessed, and a report gives the reason why nothing better works."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_hermes_env.sandbox import confinement
from pytest_hermes_env.sandbox.cell import Cell, CellError
from pytest_hermes_env.sandbox.confinement import UNCONFINED, Confinement, available, probe
from pytest_hermes_env.sandbox.local import LocalSandbox


@pytest.fixture
def program(tmp_path, monkeypatch):
    """``program(name, script)`` puts a shell script before all other programs of that name."""

    def put(name: str, script: str) -> None:
        path = tmp_path / "programs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")

    return put


@pytest.fixture(autouse=True)
def user(monkeypatch):
    """``user(number)`` is who runs; nobody is root unless a test says so."""

    def become(number: int) -> None:
        monkeypatch.setattr(confinement.os, "geteuid", lambda: number)

    become(1000)
    return become


@pytest.fixture
def no_bubblewrap(monkeypatch):
    """bubblewrap is not installed, whatever this machine has."""
    which = shutil.which
    monkeypatch.setattr(
        confinement.shutil, "which", lambda name, *rest, **more: None if name == "bwrap" else which(name, *rest, **more)
    )


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (
            Confinement(kind="bubblewrap"),
            "local sandbox: confined by bubblewrap (no network, no files of this machine but its programs)",
        ),
        (
            Confinement(kind="unshare", reason="bwrap: not installed"),
            "local sandbox: confined by unshare (no network, no files of this machine but its programs)",
        ),
        (
            Confinement(kind="none", reason="bwrap: not installed; unshare: Operation not permitted"),
            "local sandbox: NOT CONFINED: commands have your files, your processes and your network "
            "(bwrap: not installed; unshare: Operation not permitted)",
        ),
        (UNCONFINED, "local sandbox: NOT CONFINED: commands have your files, your processes and your network (not asked for)"),
    ],
)
def test_header_names_the_confinement_or_the_reason(found, line):
    """The header of a test run shows the confinement in force."""
    assert found.describe() == line


def test_machine_is_tried_once_per_process(monkeypatch):
    """Trying takes time; every sandbox asks."""
    tries = []
    monkeypatch.setattr(confinement, "probe", lambda: tries.append(1) or UNCONFINED)
    available.cache_clear()

    answers = [available(), available()]
    available.cache_clear()

    assert (answers, tries) == ([UNCONFINED, UNCONFINED], [1])


def test_only_linux_can_confine(monkeypatch):
    """Elsewhere the reason is the system's name."""
    monkeypatch.setattr(sys, "platform", "darwin")

    assert probe() == Confinement(kind="none", reason="bwrap and unshare: need Linux, this is darwin")


@pytest.fixture
def no_namespaces(monkeypatch, no_bubblewrap):
    """The kernel refuses to make namespaces, and its settings do not say why."""

    def refuse(_):
        raise CellError("unshare: Operation not permitted")

    monkeypatch.setattr(Cell, "start", refuse)
    for name in ("APPARMOR", "MAXIMUM"):
        monkeypatch.setattr(confinement, name, Path("none"))


@pytest.mark.usefixtures("no_namespaces")
def test_both_reasons_are_named():
    """Without bwrap and namespaces nothing confines."""
    assert probe() == Confinement(kind="none", reason="bwrap: not installed; unshare: Operation not permitted")


@pytest.mark.parametrize(
    ("setting", "value", "hint"),
    [
        ("APPARMOR", "1", "; AppArmor restricts user namespaces: sysctl kernel.apparmor_restrict_unprivileged_userns=1"),
        ("APPARMOR", "0", ""),
        ("MAXIMUM", "0", "; user namespaces are switched off: sysctl user.max_user_namespaces=0"),
        ("MAXIMUM", "5000", ""),
    ],
)
@pytest.mark.usefixtures("no_namespaces")
def test_setting_of_the_kernel_that_is_in_the_way_is_named(monkeypatch, tmp_path, setting, value, hint):
    """Ubuntu 24.04 restricts user namespaces by AppArmor; others switch them off."""
    (tmp_path / "setting").write_text(f"{value}\n")
    monkeypatch.setattr(confinement, setting, tmp_path / "setting")

    assert probe().reason == f"bwrap: not installed; unshare: Operation not permitted{hint}"


@pytest.mark.usefixtures("namespaces")
def test_bubblewrap_that_fails_gives_way_to_unshare(program):
    """A bwrap that the system does not let work is not the end; its last words are the reason."""
    program("bwrap", "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")

    assert probe() == Confinement(kind="unshare", reason="bwrap: setting up uid map: Permission denied")


@pytest.mark.usefixtures("namespaces")
def test_root_takes_bubblewrap_last(user, program, monkeypatch):
    """With it, the machine's devices belong to the cell's root."""
    program("bwrap", "exit 1")
    user(0)
    first = probe()
    monkeypatch.setattr(confinement, "_problem_of", lambda tried: "" if tried.kind == "bubblewrap" else "refused")

    assert (first, probe().kind) == (Confinement(kind="unshare"), "bubblewrap")


@pytest.mark.parametrize(
    ("entering", "reason"),
    [
        ('shift; exec "$@"', "files outside of the sandbox can be seen"),
        ("exit 1", "a command cannot be run in it"),
    ],
)
@pytest.mark.usefixtures("namespaces", "no_bubblewrap")
def test_cell_that_does_not_confine_is_not_used(monkeypatch, entering, reason):
    """The probe looks for a file outside and writes one inside; it does not trust exit codes of the set-up."""
    monkeypatch.setattr(Cell, "enter_command", lambda _: ["/bin/sh", "-c", entering, "sh"])
    monkeypatch.setattr(confinement, "APPARMOR", Path("none"))

    assert probe() == Confinement(kind="none", reason=f"bwrap: not installed; unshare: {reason}")


@pytest.mark.usefixtures("namespaces")
def test_kernel_that_refuses_is_quoted(tmp_path):
    """In a container without privileges, the reason is the kernel's error."""
    script = (
        "import pathlib; from pytest_hermes_env.sandbox import confinement\n"
        "confinement.APPARMOR = pathlib.Path('none'); print(confinement.available().describe())"
    )
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    unshare = shutil.which("unshare") or "unshare"
    if shutil.which("bwrap", path=variables["PATH"]):
        pytest.skip("bubblewrap has reasons of its own")

    ran = subprocess.run(
        [unshare, "--user", sys.executable, "-c", script], check=True, capture_output=True, text=True, env=variables
    )

    assert ran.stdout.endswith("your network (bwrap: not installed; unshare: Operation not permitted)\n")


@pytest.mark.usefixtures("namespaces")
def test_namespaces_that_the_machine_gives_confine():
    """Where its own programs can make them, so can this one."""
    assert probe().is_in_force


def test_probing_leaves_nothing(tmp_path, monkeypatch):
    """The directory that was tried is gone."""
    monkeypatch.setattr(confinement.tempfile, "tempdir", str(tmp_path))

    probe()

    assert list(Path(tmp_path).iterdir()) == []


def test_nothing_of_the_whole_machine_is_read_from_proc(confinement):
    """Where the tests run as root, a command may open what only root may read."""
    private = [
        name for name in os.listdir("/proc") if os.path.isfile(f"/proc/{name}") and not os.stat(f"/proc/{name}").st_mode & 0o077
    ]
    with LocalSandbox(confinement=confinement) as sandbox:
        machine = sandbox.machine("task")
        read = [machine.call("terminal", {"command": f"head -c 8 /proc/{name} | wc -c", "timeout": 20}) for name in private]

    assert {json.loads(answer)["output"] for answer in read} <= {"0"}
