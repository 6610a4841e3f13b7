"""What the environment's own code does to its process is recorded, and what it leaves is found."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from pytest_hermes_env.play.journal import Journal, SurroundingChanged, recording
from pytest_hermes_env.play.watchers.call_site import EnvironmentCode
from pytest_hermes_env.play.watchers.process import ProcessWatcher

from .bare import HermesAgentBaseEnv, bare_layer


class Env(HermesAgentBaseEnv):
    """Its file is this one."""


def watcher() -> ProcessWatcher:
    """Return a watcher of the code in this file."""
    return ProcessWatcher(EnvironmentCode(Env, bare_layer()))


def changes(act: Any) -> list[Any]:
    """Return what is recorded while a function runs."""
    with watcher().watching(), recording() as journal:
        act()
    return journal.events


def set_twice() -> None:
    """Set a variable, set it again, delete it."""
    os.environ["HERMES_ENV_TEST"] = "1"
    os.environ["HERMES_ENV_TEST"] = "2"
    del os.environ["HERMES_ENV_TEST"]


def test_the_first_value_is_remembered_over_rollouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second rollout finds what the first one left."""
    monkeypatch.setenv("HERMES_ENV_TEST", "old")
    process, journals = watcher(), [Journal(), Journal()]
    with process.watching():
        for number, journal in enumerate(journals):
            with recording(journal):
                os.environ["HERMES_ENV_TEST"] = str(number)

    events = [event for journal in journals for event in journal.events if isinstance(event, SurroundingChanged)]
    assert [(event.before, event.original) for event in events] == [("old", "old"), ("0", "old")]


def test_the_working_directory_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a change of `cwd`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inner").mkdir()

    (event,) = changes(lambda: os.chdir("inner"))

    assert (event.name, event.before, event.after) == ("cwd", str(tmp_path), str(tmp_path / "inner"))


def test_what_others_do_is_not_recorded() -> None:
    """Neither code that is not the environment's, nor the environment's outside of a scenario."""
    namespace = {"os": os}
    exec(compile("def act(): os.environ['HERMES_ENV_TEST'] = '1'", "/layer/agent_loop.py", "exec"), namespace)
    with watcher().watching():
        set_twice()

    assert changes(namespace["act"]) == []
    del os.environ["HERMES_ENV_TEST"]


def test_resources_that_still_exist_are_leaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory, a thread, a process and a client, each with its line; those that are gone are none."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stop = threading.Event()
    process = watcher()
    with process.watching(), recording():
        kept, removed = tempfile.mkdtemp(prefix="kept"), tempfile.mkdtemp(prefix="removed")
        running, ended = threading.Thread(target=stop.wait, name="running"), threading.Thread(target=int, name="ended")
        running.start()
        ended.start()
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        opened, closed = httpx.Client(), httpx.Client()
    Path(removed).rmdir()
    ended.join()
    closed.close()
    leaked = process.leaked()
    stop.set()
    running.join()
    child.communicate()
    opened.close()

    assert {(found.kind, found.name) for found in leaked} == {
        ("temporary directory", kept),
        ("thread", "running"),
        ("process", str(child.args)),
        ("client", "httpx.Client"),
    }
    assert {found.place.path for found in leaked} == {__file__}
    assert {found.kind for found in process.leaked()} == {"temporary directory"}


def test_a_daemon_thread_of_a_library_is_no_leak() -> None:
    """tqdm's monitor and the like are one for the process, and end with it."""
    source = "def start(thread): thread.start()"
    namespace: dict[str, Any] = {}
    exec(compile(source, "/x/site-packages/library.py", "exec"), namespace)
    stop, process = threading.Event(), watcher()
    threads = [threading.Thread(target=stop.wait, name=str(daemon), daemon=daemon) for daemon in (True, False)]
    with process.watching(), recording():
        for thread in threads:
            namespace["start"](thread)
    leaked = [found.name for found in process.leaked()]
    stop.set()
    for thread in threads:
        thread.join()

    assert leaked == ["False"]
