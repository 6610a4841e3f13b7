"""A machine of the local sandbox serves without a rollout: its tools, and its files as bytes."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from pytest_hermes_env.sandbox import local
from pytest_hermes_env.sandbox.confinement import UNCONFINED
from pytest_hermes_env.sandbox.context import FakeToolContext
from pytest_hermes_env.sandbox.fake import FakeSandbox
from pytest_hermes_env.sandbox.local import LocalMachine, LocalSandbox
from pytest_hermes_env.sandbox.machine import Machine, NotReadable


@pytest.fixture(params=["confined", "unconfined"])
def machine(request: pytest.FixtureRequest) -> Iterator[LocalMachine]:
    """A machine in a sandbox with and without confinement."""
    if request.param == "confined":
        request.getfixturevalue("namespaces")
    with LocalSandbox(confinement=UNCONFINED if request.param == "unconfined" else None) as sandbox:
        yield sandbox.machine()


@pytest.fixture(params=["in memory", "confined", "unconfined"])
def any_machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    """A machine in memory, or in a sandbox with and without confinement."""
    if request.param != "unconfined":
        request.getfixturevalue("namespaces")
    if request.param == "in memory":
        with contextlib.closing(FakeSandbox()) as sandbox:
            yield sandbox
        return
    with LocalSandbox(confinement=UNCONFINED if request.param == "unconfined" else None) as sandbox:
        yield sandbox.machine()


def run(machine: Machine, command: str, **arguments: Any) -> dict[str, Any]:
    """The result of hermes' terminal."""
    return json.loads(machine.call("terminal", {"command": command, **arguments}))


def test_bytes_come_back_as_they_were_written(any_machine):
    """Whatever they are, and whatever the file is called; missing directories are made."""
    data = bytes(range(256)) * 1000
    names = ["plain", "a dir/b dir/c", "-n", "it's $HOME", "~/in home", "line\nbreak", os.fsdecode(b"no \xff utf-8")]

    for name in names:
        any_machine.write_bytes(name, data)

    assert [any_machine.read_bytes(name) == data for name in names] == [True] * len(names)
    assert run(any_machine, "wc -c < ~/'in home'")["output"] == "256000"


def test_relative_paths_lead_where_the_session_is(any_machine):
    """As for the tools: what the session did with cd counts."""
    before = any_machine.cwd
    run(any_machine, "mkdir -p there; echo here > there/file; cd there")

    assert any_machine.read_bytes("file") == b"here\n"
    assert any_machine.cwd == f"{before}/there"


def test_directory_that_the_session_removed_is_not_its_place(machine):
    """Then it is where it began."""
    run(machine, "mkdir there; cd there")
    run(machine, 'rmdir "$PWD"')

    assert machine.cwd == machine.directory


def test_files_below_a_directory_are_listed(any_machine):
    """Files alone, sorted, relative to it."""
    run(any_machine, "mkdir -p d/e/empty; touch d/b d/e/a d/'a b'")

    assert any_machine.list_files("d") == ["a b", "b", "e/a"]
    assert any_machine.list_files("d/e/empty") == []


def test_link_is_not_listed(machine):
    """It may lead anywhere."""
    run(machine, "mkdir d; ln -s /etc/passwd d/link")

    assert machine.list_files("d") == []


@pytest.mark.parametrize(
    ("act", "kind", "named"),
    [
        (lambda machine: machine.read_bytes("none"), FileNotFoundError, "none"),
        (lambda machine: machine.read_bytes("dir"), IsADirectoryError, "dir"),
        (lambda machine: machine.write_bytes("dir", b""), IsADirectoryError, "dir"),
        (lambda machine: machine.write_bytes("file/below", b""), FileExistsError, "file"),
        (lambda machine: machine.list_files("none"), FileNotFoundError, "none"),
        (lambda machine: machine.list_files("file"), NotADirectoryError, "file"),
    ],
)
def test_what_cannot_be_done_is_an_error_of_the_system(any_machine, act, kind, named):
    """Of the class that Python's own functions would raise."""
    run(any_machine, "mkdir dir; touch file")

    with pytest.raises(kind) as raised:
        act(any_machine)

    assert raised.value.filename.startswith((named, f"{any_machine.cwd}/{named}"))
    assert raised.value.strerror == os.strerror(raised.value.errno)


@pytest.mark.parametrize(
    ("script", "reason"), [("exit 1", "it could not be done"), ('echo "x: in $LC_ALL" >&2; exit 1', "in C")]
)
def test_failure_without_a_known_reason_is_told_in_its_words(machine, monkeypatch, tmp_path, script, reason):
    """A shell that cannot even begin; messages are asked for in the language of the system's errors."""
    shell = tmp_path / "bash"
    shell.write_text(f"#!/bin/sh\n{script}\n")
    shell.chmod(0o755)
    directory = machine.directory
    monkeypatch.setattr(machine._sandbox, "shell", shell)

    with pytest.raises(OSError, match=reason) as raised:
        machine.read_bytes(f"{directory}/file")

    assert (raised.value.errno, raised.value.strerror, raised.value.filename) == (errno.EIO, reason, f"{directory}/file")


@pytest.mark.usefixtures("namespaces")
def test_link_that_leads_outside_is_not_followed_by_a_write(tmp_path):
    """What an agent linked cannot make the test process write outside of the sandbox."""
    target = tmp_path / "target"
    target.write_text("before")
    with LocalSandbox() as sandbox:
        machine = sandbox.machine()
        run(machine, f"ln -s {target} tests.py")
        with contextlib.suppress(OSError):
            machine.write_bytes("tests.py", b"after")

    assert target.read_text() == "before"


@pytest.fixture
def long(machine, monkeypatch):
    """Run a command as one that takes longer than hermes allows in the foreground."""
    monkeypatch.setenv("TERMINAL_MAX_FOREGROUND_TIMEOUT", "0")
    return FakeToolContext(machine).terminal


def test_long_command_gives_its_own_output_whole(long):
    """Not what the login shell says around it, and not its end only."""
    result = long("seq 1 3000; exit 7", 60)

    assert result == {"output": "\n".join(str(number) for number in range(1, 3001)), "exit_code": 7, "error": None}


def test_long_command_that_takes_too_long_is_killed(machine, long):
    """With the exit code of a timeout; nothing of it goes on."""
    result = long("sleep 60; touch late", 1)

    assert result == {"output": "", "exit_code": 124, "error": "Command timed out after 1 seconds"}
    assert json.loads(machine.call("process", {"action": "list"}))["processes"][0]["status"] == "exited"


def test_long_command_that_cannot_begin_says_why(machine, long, monkeypatch):
    """hermes' own refusal comes through."""
    monkeypatch.setattr(machine, "call", lambda _name, _arguments: '{"output": "", "exit_code": -1, "error": "refused"}')

    assert long("true", 60) == {"output": "", "exit_code": -1, "error": "refused"}


def test_released_machine_leaves_nothing_and_can_be_used_again(machine):
    """Processes, session and directory are gone; the next call begins anew."""
    from tools.process_registry import process_registry

    first = machine.directory
    session = run(machine, "echo $$ > pid; exec sleep 300.5", background=True)["session_id"]
    run(machine, "export NAME=first; until [ -s pid ]; do :; done")

    machine.release()
    machine.release()

    assert not os.path.exists(first)
    assert process_registry.poll(session)["status"] == "not_found"
    assert json.loads(machine.call("process", {"action": "list"})) == {"processes": []}
    assert run(machine, 'echo "<$NAME>"; pwd')["output"] == f"<>\n{machine.directory}"
    assert machine.directory != first


def test_fifo_is_not_opened(machine, tmp_path):
    """No writer will come: a read would wait forever."""
    ctx = FakeToolContext(machine)
    ctx.terminal("mkfifo pipe; ln -s /dev/zero zero")

    assert [ctx.read_file(name) for name in ("pipe", "zero")] == [
        {"error": "Cannot read pipe: it is not a regular file"},
        {"error": "Cannot read zero: it is not a regular file"},
    ]
    assert ctx.download_file("pipe", str(tmp_path / "x")) == {
        "success": False,
        "error": "Cannot read pipe: it is not a regular file",
    }
    assert ctx.download_dir(".", str(tmp_path)) == []


def test_reading_is_limited(machine):
    """A sparse file is not read."""
    run(machine, "truncate -s 100M huge")
    machine.write_bytes("five", b"12345")

    assert machine.read_bytes("five", 5) == b"12345"
    for name, most in (("five", 4), ("huge", 1_000_000)):
        with pytest.raises(NotReadable, match=f"it exceeds the limit of {most:,} bytes; max_bytes= raises the limit"):
            machine.read_bytes(name, most)


def test_reading_ends_in_time(machine, monkeypatch):
    """A file whose place a FIFO takes in the last moment."""
    monkeypatch.setattr(local, "_READ", 'exec head -c "$2" < "$1"')
    run(machine, "mkfifo pipe")

    with pytest.raises(NotReadable, match=r"it takes longer than 0\.5 seconds; timeout= raises the limit"):
        machine.read_bytes("pipe", timeout=0.5)
