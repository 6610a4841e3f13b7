"""Commands see the project only when asked for, as a copy without what looks like a key."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.sandbox import local_cell
from pytest_hermes_env.sandbox.local import LocalSandbox
from pytest_hermes_env.sandbox.local_cell import copy_project

SHOWN = ("src/main.py", "src/token.py", "README.md", ".git/HEAD", ".env.example", "data/credentials.md", "data/public.crt")
KEYS = (
    ".env",
    ".env.local",
    ".envrc",
    ".git/config",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".aws/credentials",
    ".ssh/id_rsa",
    "sub/.env",
    "sub/.git/config",
    "deploy.pem",
    "server.key",
    "id_ed25519",
    "id_rsa.old",
    "store.p12",
    "credentials.json",
    "gcp-service-account.json",
    "secrets.yaml",
    "terraform.tfstate",
    "token",
    "notes.txt",
    "venv/pyvenv.cfg",
    "venv/lib/package.py",
)


@pytest.fixture
def project(tmp_path):
    """A project with keys in it, also one in a file with an innocent name."""
    path = Path(os.path.realpath(tmp_path)) / "project"
    for name in (*SHOWN, *KEYS):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(f"content of {name}")
    (path / "notes.txt").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nabc")
    (path / "link").symlink_to("src/main.py")
    (path / "out").symlink_to(tmp_path)
    os.mkfifo(path / "fifo")
    return path


def files_below(directory: Path) -> set[str]:
    """Everything below a directory but directories, without opening it."""
    return {str((Path(place) / name).relative_to(directory)) for place, _, names in os.walk(directory) for name in names}


def test_copy_has_what_does_not_look_like_a_key(project, tmp_path, monkeypatch):
    """Names, contents, virtual environments; sockets and FIFOs are no files."""
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(project)  # the path of a socket is short
        server.bind("socket")
        copied = copy_project(project, tmp_path / "copy")

    assert files_below(tmp_path / "copy") - {"out"} == {*SHOWN, "link"}
    assert (copied.path, copied.source) == (str(project), str(tmp_path / "copy"))
    assert (tmp_path / "copy" / "src" / "main.py").read_text() == "content of src/main.py"


def test_commands_read_the_project_only_when_asked_for(confinement, project):
    """At its own path, read-only, as it was at the start."""
    command = f"cat {project}/src/main.py; cat {project}/.env {project}/new; echo x > {project}/src/main.py"

    seen = []
    for shown in (None, project):
        with LocalSandbox(confinement=confinement, project=shown) as sandbox:
            machine = sandbox.machine("task")
            machine.call("terminal", {"command": "true"})
            (project / "new").write_text("content of new")
            seen.append(json.loads(machine.call("terminal", {"command": command}))["output"])
            (project / "new").unlink()

    assert "content" not in seen[0]
    assert seen[1].startswith("content of src/main.py")
    assert seen[1].count("content") == 1
    assert (project / "src" / "main.py").read_text() == "content of src/main.py"


@pytest.mark.parametrize(("most", "name", "seen"), [(100, "", "more than 100 bytes"), (1 << 20, "missing", "no directory")])
def test_project_that_cannot_be_shown_is_an_error(project, tmp_path, monkeypatch, most, name, seen):
    """It is copied, so it must not be too large."""
    monkeypatch.setattr(local_cell, "MOST_BYTES", most)

    with pytest.raises(UsageError) as raised:
        copy_project(project / name, tmp_path / "copy")

    assert str(raised.value) == (
        f"LocalSandbox cannot show the project {project / name}.\n"
        f"  expected  a directory of at most {most} bytes\n"
        f"  seen      {seen}\n"
        "  fix       give the directory of the files that commands need: LocalSandbox(project=...)"
    )
