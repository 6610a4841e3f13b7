"""Notes what a reward reads that no record stores: files and programs of the host, the network, the clock, variables, random numbers.

Place in the flow: `rescoring` watches each reward that it computes again. A reward that read any of it gets no number: today's answer need
not be that of the day of the rollout.

Python tells of files, programs and connections by audit events; of the clock and of variables by a profiler, which sees calls of C functions.
Only what the environment's own code asks for counts; a connection counts whoever makes it, and is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import functools
import genericpath
import getpass
import os
import pathlib
import platform
import posixpath
import random
import re
import secrets
import shutil
import socket
import sys
import sysconfig
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator
from types import CodeType, FrameType
from typing import Any

from pytest_hermes_env.patches import auditing
from pytest_hermes_env.play.watchers.call_site import EnvironmentCode

CLOCKS = frozenset(
    {
        time.time,
        time.time_ns,
        time.monotonic,
        time.monotonic_ns,
        time.perf_counter,
        time.perf_counter_ns,
        time.process_time,
        time.process_time_ns,
        time.thread_time,
        time.thread_time_ns,
        *([time.clock_gettime, time.clock_gettime_ns] if hasattr(time, "clock_gettime") else []),
        time.localtime,
        time.gmtime,
        time.ctime,
        time.asctime,
        time.strftime,
    }
)
OF_DATES = frozenset({"now", "utcnow", "today"})
PROGRAMS = {"subprocess.Popen": 0, "os.system": 0, "os.exec": 0, "os.posix_spawn": 0}
_LIBRARIES = tuple(
    {os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, *filter(None, sysconfig.get_paths().values()))}
)
_ENVIRON = os._Environ.__getitem__.__code__  # noqa: SLF001 - what every way to read a variable passes
_WRAPPERS_OF_VARIABLES = (os.__file__, "<frozen os>", "<frozen _collections_abc>")


class Unstored:
    """What one reward read that is not stored; `watching` fills it. ``allowed``: paths, variables and kinds that the user vouches for."""

    def __init__(self, code: EnvironmentCode, allowed: Collection[str] = ()) -> None:
        self._code, self._allowed = code, frozenset(allowed)
        self.found: dict[str, None] = {}
        self.written: set[str] = set()
        self._free: set[int] = set()

    def unwatched(self, call: Callable[..., Any], *given: Any) -> Any:
        """Return what a call gives that is not the reward's own. It runs on this thread, which nothing else uses meanwhile."""
        self._free.add(threading.get_ident())
        try:
            return call(*given)
        finally:
            self._free.discard(threading.get_ident())

    def note(self, what: str, name: str = "", place: Any = None) -> None:
        """Note one thing: ``what`` kind it is, and its name or path."""
        if (
            what in self._allowed
            or name in self._allowed
            or any(name.startswith(f"{path.rstrip('/')}/") for path in self._allowed)
        ):
            return
        where = f" ({os.path.basename(place.path)}:{place.line})" if place is not None else ""
        self.found.setdefault(f"{what} {name}".strip() + where)

    def note_host_file(self, path: str, place: Any = None) -> None:
        """Note a file of the host, unless this reward wrote it or it belongs to Python and its packages."""
        real = os.path.realpath(path)
        is_code = real.startswith(_LIBRARIES) or real.endswith((".py", ".pyc", ".so"))
        if (
            not is_code
            and not any(real == one or real.startswith(f"{one}/") for one in self.written)
            and not real.startswith(("/dev/", "/proc/self/"))
        ):
            self.note("file of the host", path, place)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch while the context lasts. Connections to other processes are refused."""
        before, drawn = sys.getprofile(), _numpy_state()
        with auditing("", self._heard):
            sys.setprofile(self._called)
            threading.setprofile(self._called)
            try:
                yield
            finally:
                sys.setprofile(before)
                threading.setprofile(None)
                now = _numpy_state()
                if now != drawn and (drawn or not now.startswith(_UNUSED)):
                    self.note("random number", "numpy.random")

    def _heard(self, event: str, given: tuple[Any, ...]) -> None:
        if threading.get_ident() in self._free:
            return
        if event == "open" and isinstance(given[0], str | bytes | os.PathLike):
            self._opened(os.fsdecode(given[0]), given[1], given[2] if len(given) > 2 else 0)  # noqa: PLR2004
        elif event in {"tempfile.mkdtemp", "tempfile.mkstemp"}:
            self.written.add(os.path.realpath(os.fsdecode(given[0])))
        elif event == "os.rename" and os.path.realpath(os.fsdecode(given[0])) in self.written:
            self.written.add(os.path.realpath(os.fsdecode(given[1])))
        elif event in PROGRAMS:
            if (place := self._place()) is not None:
                self.note("program of the host", os.fsdecode(str(given[0])), place)
        elif event == "socket.connect":
            held, address = given
            if held.family in {socket.AF_INET, socket.AF_INET6}:
                self.note("network", f"{address[0]}:{address[1]}", self._place())
                raise ConnectionRefusedError(f"a reward that is computed again reaches no network: {address[0]}")
        elif event == "socket.getaddrinfo":
            self.note("network", str(given[0]), self._place())
            raise socket.gaierror(f"a reward that is computed again reaches no network: {given[0]}")
        elif event == "sqlite3.connect":
            self._opened_base(given[0])
        elif event in {"os.listdir", "os.scandir"} and not isinstance(given[0], int) and (place := self._place()) is not None:
            self.note_host_file(os.fsdecode(given[0] or "."), place)

    def _opened(self, path: str, mode: Any, flags: Any) -> None:
        writes = (isinstance(mode, str) and not {*mode} & {"r"}) or (
            isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        )
        if writes:
            self.written.add(os.path.realpath(path))
        elif (place := self._place()) is not None:
            self.note_host_file(path, place)

    def _opened_base(self, name: Any) -> None:
        """Note a database of the host; SQLite opens its file itself, which is no event."""
        text = os.fsdecode(name) if isinstance(name, str | bytes | os.PathLike) else ""
        if text and not _IN_MEMORY.search(text) and (place := self._place()) is not None:
            self.note_host_file(text.removeprefix("file:").partition("?")[0], place)

    def _place(self) -> Any:
        return self._code.place(sys._getframe(2), behind=(__file__, _PATCHES))  # noqa: SLF001 - the frame that caused the event

    def _called(self, frame: FrameType, event: str, given: Any) -> None:
        if threading.get_ident() in self._free:
            return
        if event == "c_call":
            owner = getattr(given, "__self__", None)
            if given in CLOCKS or (
                getattr(given, "__name__", "") in OF_DATES and isinstance(owner, type) and issubclass(owner, dt.date)
            ):
                self._note_clock(f"{getattr(owner, '__name__', '')}.{given.__name__}()", frame)
            elif given in _LOOKS:
                self._looked(given.__name__, frame)
            elif given in _OF_HOST:
                self._note_call("random number" if given is os.urandom else "fact of the host", f"{given.__name__}()", frame)
            elif given is hash:  # of a text, another one in each process
                self._note_call("fact of the process", "hash()", frame)
            elif owner is _RANDOM:
                self._note_call("random number", f"random.{given.__name__}()", frame)
        elif event == "call":
            if _asks_in_words(frame.f_code):
                self._note_call("clock", "'now'", frame)
            if frame.f_code is _ENVIRON:
                caller = frame.f_back
                while caller is not None and caller.f_code.co_filename in _WRAPPERS_OF_VARIABLES:
                    caller = caller.f_back
                self._note_call("environment variable", str(frame.f_locals.get("key")), caller)
            elif frame.f_code.co_filename == platform.__file__:  # which remembers what it asked once
                self._note_call("fact of the host", f"platform.{frame.f_code.co_name}()", frame.f_back)
            elif frame.f_code.co_filename == random.__file__ and (
                frame.f_locals.get("self") is _RANDOM or frame.f_locals.get("x", 0) is None  # a generator without a seed
            ):
                name = "Random" if frame.f_code.co_name == "__init__" else frame.f_code.co_name
                self._note_call("random number", f"random.{name}()", frame.f_back)

    def _looked(self, name: str, caller: FrameType) -> None:
        """Note whether a file of the host is there, which is no event: of a direct call the path is not known."""
        names = caller.f_code.co_varnames[:2] if caller.f_code.co_filename in _OF_PATHS else ()
        given = [one for name in names if isinstance(one := caller.f_locals.get(name), str | bytes | os.PathLike)]
        place = self._code.place(caller)
        if place is not None and given:
            for path in given[:2] if caller.f_code is genericpath.samefile.__code__ else given[:1]:
                self.note_host_file(os.fsdecode(path), place)
        elif place is not None and place.path == caller.f_code.co_filename:
            self.note("file of the host", f"os.{name}()", place)

    def _note_clock(self, name: str, caller: FrameType | None) -> None:
        """Note that the clock was asked, by the environment's own code or by a library that it called, unless that waits or writes logs."""
        place, asked = self._code.place(caller), caller
        while place is not None and caller is not None and caller.f_code.co_filename != place.path:
            is_waiting = str(caller.f_globals.get("__name__")).partition(".")[0] in _WAITING
            if is_waiting and caller.f_code is not asyncio.BaseEventLoop.time.__code__:
                return
            asked, caller = caller, caller.f_back
        if place is not None and asked is not None:
            called = name if asked is caller else f"{asked.f_globals.get('__name__')}.{asked.f_code.co_name}()"
            self.note("clock", called, place)

    def _note_call(self, what: str, name: str, caller: FrameType | None) -> None:
        """Note a call that the environment's own code made: a library asks the clock for its own purposes, unless it only passes on."""
        while caller is not None and caller.f_code.co_filename in _PASSING_ON:
            caller = caller.f_back
        place = self._code.place(caller)
        if place is not None and caller is not None and place.path == caller.f_code.co_filename:
            self.note(what, name, place)


_NOW = re.compile(
    r"\b(?:date|time|datetime|julianday|unixepoch|strftime)\(.*'now'|\bcurrent_(?:timestamp|date|time)\b",
    re.IGNORECASE | re.DOTALL,
)


_OF_SQL = re.compile(r"\b(?:select|insert|update|delete|values|where)\b", re.IGNORECASE)


@functools.lru_cache(maxsize=4096)
def _asks_in_words(code: CodeType) -> bool:
    """Whether a function says ``now`` to something that asks the clock in C, where no call is seen: SQL, or numpy."""
    texts = [one for one in code.co_consts if isinstance(one, str)]
    return any(_NOW.search(text) and _OF_SQL.search(text) for text in texts) or (
        "datetime64" in code.co_names and not {"now", "today"}.isdisjoint(texts)
    )


_WAITING = frozenset(
    ["aiohttp", "anyio", "asyncio", "concurrent", "contextlib", "http", "httpcore", "httpx", "importlib", "litellm", "logging", "loguru", "multiprocessing", "openai", "queue", "requests", "sched", "selectors", "socketserver", "sqlite3", "ssl", "subprocess", "tempfile", "tenacity", "threading", "tools", "tqdm", "gzip", "zipfile", "tarfile", "unittest", "filelock", "absl", "structlog", "rich", "wandb", "urllib3", "warnings"]
)  # fmt: skip
"""Libraries that ask the clock how long to wait, or when a line of a log was written, and not what time it is."""
_UNUSED = "624 "
"""The state of numpy's generator from which nothing was drawn."""


def _numpy_state() -> str:
    """Return where the generator that all users of numpy share is; empty where it is not loaded."""
    numpy: Any = sys.modules.get("numpy.random")
    state = numpy.get_state(legacy=False)["state"] if numpy is not None else {}
    return f"{state['pos']} {state['key'].tobytes().hex()[:64]}" if state else ""


_IN_MEMORY = re.compile(r"^(?:file:)?:memory:|[?&]mode=memory\b")
_LOOKS = frozenset({os.stat, os.lstat, os.access, os.readlink})
_OF_HOST = frozenset(
    getattr(module, name)
    for module, names in (
        (
            os,
            "cpu_count uname getloadavg getcwd getpid getppid getuid geteuid getgid getlogin urandom statvfs times sysconf sched_getaffinity",
        ),
        (socket, "gethostname"),
    )
    for name in names.split()
    if hasattr(module, name)
)
_PASSING_ON = frozenset(
    {one.__file__ for one in (getpass, genericpath, os, pathlib, platform, posixpath, random, secrets, shutil, socket, uuid)}
    | {f"<frozen {name}>" for name in ("os", "genericpath", "posixpath")}
    | {pathlib.Path.home.__code__.co_filename}
)
"""Modules whose functions say what the host says."""
_OF_PATHS = frozenset(
    {
        genericpath.__file__,
        posixpath.__file__,
        "<frozen genericpath>",
        "<frozen posixpath>",
        pathlib.__file__,
        pathlib.Path.stat.__code__.co_filename,
    }
)
_RANDOM: Any = random._inst  # noqa: SLF001 - the generator that all modules share
_PATCHES = os.path.join(os.path.dirname(os.path.dirname(__file__)), "patches.py")
