"""Records what an environment does to its process: variables and the working directory that it sets, resources that it creates.

Only the environment's own code counts: what the layer or hermes does for it is not recorded.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import psutil

from pytest_hermes_env.patches import intercept
from pytest_hermes_env.play.journal import Journal, Left, Place, SurroundingChanged, current_journal
from pytest_hermes_env.play.watchers.call_site import EnvironmentCode, calling_frame

CLIENTS = ("aiohttp.ClientSession", "httpx.AsyncClient", "httpx.Client")
"""Clients that must be closed. They are watched where their module is loaded."""

_INSTALLED = frozenset({"site-packages", "dist-packages"})


@dataclass
class ProcessWatcher:
    """Records changes into the current journal, and remembers what was created until `leaked` checks what still exists."""

    environment_code: EnvironmentCode
    _created: list[tuple[str, str, Place, Callable[[], bool]]] = field(default_factory=list)
    _originals: dict[str, str | None] = field(default_factory=dict)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch while the context lasts."""
        handlers: dict[str, Callable[..., Any]] = {
            "os._Environ.__setitem__": self._variable,
            "os._Environ.__delitem__": self._variable,
            "os.chdir": self._directory,
            "tempfile.mkdtemp": self._temporary,
            "threading.Thread.start": self._thread,
            "subprocess.Popen.__init__": self._process,
            "os.fork": self._fork,
            **{f"{client}.__init__": self._client for client in CLIENTS if client.partition(".")[0] in sys.modules},
        }
        with contextlib.ExitStack() as patches:
            for target, handler in handlers.items():
                patches.enter_context(intercept(target, handler))
            yield

    def leaked(self) -> tuple[Left, ...]:
        """Return what the environment created and what still exists, except what only a cycle of references keeps."""
        if left := self._existing():
            gc.collect()
            left = self._existing()
        return left

    def _existing(self) -> tuple[Left, ...]:
        return tuple(Left(kind=kind, name=name, place=place) for kind, name, place, exists in self._created if exists())

    def _caller(self) -> tuple[Journal, Place] | None:
        """Return the current journal and the environment's line; None where something else made the call."""
        journal = current_journal.get()
        place = self.environment_code.place(calling_frame()) if journal is not None else None
        return (journal, place) if journal is not None and place is not None else None

    def _variable(self, real: Callable[..., None], variables: Any, name: str, *value: str) -> None:
        before = variables.get(name)
        real(variables, name, *value)
        self._note_change(name, before, variables.get(name))

    def _directory(self, real: Callable[..., None], path: Any) -> None:
        before = os.getcwd()
        real(path)
        self._note_change("cwd", before, os.getcwd())

    def _note_change(self, name: str, before: str | None, after: str | None) -> None:
        if caller := self._caller():
            journal, place = caller
            original = self._originals.setdefault(name, before)
            journal.add(SurroundingChanged(name=name, before=before, after=after, place=place, original=original))

    def _temporary(self, real: Callable[..., str], *args: Any, **kwargs: Any) -> str:
        path = real(*args, **kwargs)
        self._note_created("temporary directory", path, functools.partial(os.path.exists, path))
        return path

    def _thread(self, real: Callable[..., None], thread: threading.Thread) -> None:
        real(thread)
        # not tqdm's monitor and the like: one per process, owned by the library, ends with the process
        if not (thread.daemon and _is_started_by_a_library(calling_frame())):
            self._note_created("thread", thread.name, thread.is_alive)

    def _process(self, real: Callable[..., None], process: Any, *args: Any, **kwargs: Any) -> None:
        real(process, *args, **kwargs)
        self._note_created("process", str(process.args), lambda: process.poll() is None)

    def _fork(self, real: Callable[[], int]) -> int:
        if pid := real():
            self._note_created("process", f"a fork, process {pid}", functools.partial(_is_running, pid))
        return pid

    def _client(self, real: Callable[..., None], client: Any, *args: Any, **kwargs: Any) -> None:
        real(client, *args, **kwargs)
        kind = type(client)

        def is_open() -> bool:
            return not getattr(client, "closed", getattr(client, "is_closed", True))

        self._note_created("client", f"{kind.__module__}.{kind.__name__}", is_open)

    def _note_created(self, kind: str, name: str, exists: Callable[[], bool]) -> None:
        if caller := self._caller():
            self._created.append((kind, str(name), caller[1], exists))


def _is_running(pid: int) -> bool:
    """Return whether a process has not ended; one that nobody has waited for has."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _is_started_by_a_library(frame: FrameType | None) -> bool:
    """Return whether the nearest code on a stack, past the standard library's threading, is installed code."""
    while frame is not None and frame.f_globals.get("__name__") == "threading":
        frame = frame.f_back
    return frame is not None and not _INSTALLED.isdisjoint(frame.f_code.co_filename.split(os.sep))
