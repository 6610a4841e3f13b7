"""Watches what an environment does to the process that it runs in: variables, the working directory, and what it leaves behind.

Only what its own code does is recorded, where that code stands: not what the layer or hermes do for it.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from pytest_hermes_env.layer import Layer
from pytest_hermes_env.rollout.journal import Journal, Place, SurroundingChanged, current_journal
from pytest_hermes_env.rollout.scenario import Left

__all__ = ["OwnCode", "Surroundings"]

CLIENTS = (("aiohttp", "ClientSession"), ("httpx", "AsyncClient"), ("httpx", "Client"))
"""Clients that must be closed: module and class. They are watched where their module is loaded."""


_INSTALLED = frozenset({"site-packages", "dist-packages"})

PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


class OwnCode:
    """Tells the lines of an environment from all others: those of its classes' files, and of files beside them."""

    def __init__(self, env_class: type, layer: Layer) -> None:
        files = {_file_of(cls) for cls in env_class.__mro__[: env_class.__mro__.index(layer.base)]}
        self._layer = {_file_of(layer.base), layer.agent_loop.__file__, layer.tool_context.__file__}
        self._files = {file for file in files if file}
        self._directories = {
            os.path.dirname(file) + os.sep
            for file in self._files
            if os.path.dirname(file) != os.path.dirname(_file_of(layer.base))
        }

    def place(self, frame: FrameType | None) -> Place | None:
        """Return the innermost line of the environment on a stack; None when the layer, an import or this package is nearer."""
        while frame is not None:
            path = frame.f_code.co_filename
            if path in self._layer or path.startswith(("<frozen importlib", PACKAGE)):
                return None
            if path in self._files or (path.startswith(tuple(self._directories)) and "site-packages" not in path):
                return Place(path=path, line=frame.f_lineno, function=frame.f_code.co_name)
            frame = frame.f_back
        return None


def _is_started_by_a_library(frame: FrameType | None) -> bool:
    """Tell whether the nearest code on a stack that is not the standard library's threading is installed code."""
    while frame is not None and frame.f_globals.get("__name__") == "threading":
        frame = frame.f_back
    return frame is not None and not _INSTALLED.isdisjoint(frame.f_code.co_filename.split(os.sep))


def _file_of(cls: type) -> str:
    try:
        return inspect.getsourcefile(cls) or ""
    except TypeError:
        return ""


@dataclass
class Surroundings:
    """What the environment made in this process, until `left` looks what of it is still there."""

    own_code: OwnCode
    _made: list[tuple[str, str, Place, Callable[[], bool]]] = field(default_factory=list)
    _found: dict[str, str | None] = field(default_factory=dict)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Watch while the context lasts."""
        with contextlib.ExitStack() as patches:
            variables: Any = type(os.environ)
            patches.enter_context(_replaced(variables, "__setitem__", self._variable))
            patches.enter_context(_replaced(variables, "__delitem__", self._variable))
            patches.enter_context(_replaced(os, "chdir", self._directory))
            patches.enter_context(_replaced(tempfile, "mkdtemp", self._path("temporary directory")))
            patches.enter_context(_replaced(threading.Thread, "start", self._thread))
            patches.enter_context(_replaced(subprocess.Popen, "__init__", self._process))
            for module, name in CLIENTS:
                if module in sys.modules:
                    patches.enter_context(_replaced(getattr(sys.modules[module], name), "__init__", self._client))
            yield

    def left(self) -> tuple[Left, ...]:
        """Return what the environment made and what is still there."""
        gc.collect()
        return tuple(Left(kind=kind, name=name, place=place) for kind, name, place, is_there in self._made if is_there())

    def _here(self) -> tuple[Journal, Place] | None:
        journal = current_journal.get()
        place = self.own_code.place(sys._getframe(3)) if journal is not None else None
        return (journal, place) if journal is not None and place is not None else None

    def _variable(self, real: Callable[..., None], variables: Any, name: str, *value: str) -> None:
        before = variables.get(name)
        real(variables, name, *value)
        if here := self._here():
            journal, place = here
            self._note(journal, place, name, before, variables.get(name))

    def _directory(self, real: Callable[..., None], path: Any) -> None:
        before = os.getcwd()
        real(path)
        if here := self._here():
            journal, place = here
            self._note(journal, place, "cwd", before, os.getcwd())

    def _note(self, journal: Journal, place: Place, name: str, before: str | None, after: str | None) -> None:
        original = self._found.setdefault(name, before)
        journal.add(SurroundingChanged(name=name, before=before, after=after, place=place, original=original))

    def _path(self, kind: str) -> Callable[..., Any]:
        def made(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            path = real(*args, **kwargs)
            if here := self._here():
                self._made.append((kind, str(path), here[1], functools.partial(os.path.exists, path)))
            return path

        return made

    def _thread(self, real: Callable[..., None], thread: threading.Thread) -> None:
        real(thread)
        if thread.daemon and _is_started_by_a_library(sys._getframe(2)):
            return  # tqdm's monitor and its like: one for the process, kept by the library, gone when the process ends
        if here := self._here():
            self._made.append(("thread", thread.name, here[1], thread.is_alive))

    def _process(self, real: Callable[..., None], process: Any, *args: Any, **kwargs: Any) -> None:
        real(process, *args, **kwargs)
        if here := self._here():
            self._made.append(("process", str(process.args), here[1], lambda: process.poll() is None))

    def _client(self, real: Callable[..., None], client: Any, *args: Any, **kwargs: Any) -> None:
        real(client, *args, **kwargs)
        if here := self._here():

            def is_open() -> bool:
                return not getattr(client, "closed", getattr(client, "is_closed", True))

            self._made.append(("client", f"{type(client).__module__}.{type(client).__name__}", here[1], is_open))


@contextlib.contextmanager
def _replaced(owner: Any, name: str, watch: Callable[..., Any]) -> Iterator[None]:
    """Call ``watch(real, *args)`` in place of a function while the context lasts."""
    real = getattr(owner, name)

    @functools.wraps(real)
    def watched(*args: Any, **kwargs: Any) -> Any:
        return watch(real, *args, **kwargs)

    setattr(owner, name, watched)
    try:
        yield
    finally:
        setattr(owner, name, real)
