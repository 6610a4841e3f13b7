"""The child process that plays one class: what it was asked for, how it plays and writes that down, and how it ends.

Place in the flow: `player` forks the child, which runs `child_main`; a debugger's run calls `play` in the pytest process.
"""

from __future__ import annotations

import asyncio.base_events
import atexit
import contextlib
import faulthandler
import gc
import logging
import os
import signal
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TextIO

from pytest_hermes_env.errors import BadTarget, HermesEnvError, NetworkBlocked, shorten
from pytest_hermes_env.patches import intercept
from pytest_hermes_env.play.advice import advice_for
from pytest_hermes_env.play.attack_plan import AttackPlan
from pytest_hermes_env.play.cases.values import Cases
from pytest_hermes_env.play.elsewhere import begin_elsewhere, show_later_day
from pytest_hermes_env.play.evidence_file import VERSION, EvidenceWriter
from pytest_hermes_env.play.journal import Place
from pytest_hermes_env.play.raised import described
from pytest_hermes_env.play.scenario import Collection, ProcessEnd
from pytest_hermes_env.play.watchers.call_site import LIBRARIES
from pytest_hermes_env.shadowing import imported_instead
from pytest_hermes_env.stale_package import stale_package_explained
from pytest_hermes_env.types import RealToolsUse

MOST_TEXT = 600
"""Longest text of an error of an import, in characters."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to play: a target as the user named it, or a class at hand, and the scenarios that are needed.

    ``about`` is what the evidence also says of the class: its names, file and the hash of that. ``lines_of`` are files whose run lines
    are recorded. ``hosts`` may be reached in addition to this machine. ``coverage`` is what `coverage_settings`
    returned. ``cases`` are those that a test declared, ``settings`` replace some of the
    configuration's, ``effort`` is a factor of what is played around gold, ``attack`` the fields of `AttackPlan`. ``is_elsewhere``: see
    `elsewhere`.
    """

    target: str
    scenarios: tuple[str, ...]
    about: dict[str, str] = field(default_factory=dict)
    sandbox: str = "fake"
    real_tools: RealToolsUse = "confined"
    timeout_s: float = 60.0
    server_type: str = "openai"
    lines_of: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    coverage: dict[str, Any] | None = None
    env_class: type | None = None
    cases: Cases | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    effort: int = 1
    attack: dict[str, Any] = field(default_factory=dict)
    is_elsewhere: bool = False


def begin(writer: EvidenceWriter, job: Job) -> None:
    """Write the first line of a class."""
    writer.write("evidence", VERSION, target=job.target, about=job.about, server_type=job.server_type, sandbox=job.sandbox)


def play(job: Job, writer: EvidenceWriter, *, names: Iterable[str], is_sequential: bool, beat: Callable[[], None]) -> None:
    """Import the class, play the scenarios, and write what happened."""
    from pytest_hermes_env.layer import find_class  # noqa: PLC0415 - what a parent does not need
    from pytest_hermes_env.live.network_guard import NetworkGuard  # noqa: PLC0415
    from pytest_hermes_env.play.cases.yaml_file import cases_beside  # noqa: PLC0415
    from pytest_hermes_env.play.driver import Collector  # noqa: PLC0415
    from pytest_hermes_env.play.lines_run import Line, recording_lines  # noqa: PLC0415

    lines: set[Line] = set()

    guard = NetworkGuard(test=f"the contract of {job.target}", allowed=job.hosts)
    with guard, recording_lines(frozenset(job.lines_of), lines):
        env_class = job.env_class
        if env_class is None:
            try:
                with stale_package_explained():
                    (env_class,) = find_class(job.target)
            except BadTarget as error:
                if error.__cause__ is None:  # there is a module, and the class in it cannot be judged
                    raise
                writer.write("class", Collection(import_error=_failed_import(error.__cause__)))
                return
        if job.is_elsewhere:
            show_later_day(env_class)
        collector = Collector(
            env_class,
            sandbox=job.sandbox,
            real_tools=job.real_tools,
            timeout_s=job.timeout_s,
            server_type=job.server_type,
            cases=job.cases if job.cases is not None else cases_beside(env_class),
            settings=job.settings,
            effort=job.effort,
            attack=AttackPlan(**job.attack),
            is_sequential=is_sequential,
            writer=writer,
            beat=beat,
        )
        writer.write("class", collector.collect(()))
        collection = collector.collect(names)
    try:
        guard.verify()
    except NetworkBlocked as error:
        writer.write("blocked", str(error))
    by_file: dict[str, list[int]] = {}
    for path, line in sorted(lines):
        by_file.setdefault(path, []).append(line)
    writer.write("class", collection.without_scenarios(lines_run=by_file))


def _failed_import(error: BaseException) -> ProcessEnd:
    hidden = ("importlib", os.path.dirname(os.path.dirname(__file__)) + os.sep)
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not any(part in frame.filename for part in hidden)
    ]
    frames = [frame for frame in frames if not frame.filename.startswith((*LIBRARIES, "<"))] or frames
    place = Place(path=frames[-1].filename, line=frames[-1].lineno or 1, function=frames[-1].name) if frames else Place()
    if isinstance(error, SyntaxError):
        place = Place(path=error.filename or place.path, line=error.lineno or 1)
    text = f"{type(error).__name__}: {shorten(str(error), MOST_TEXT)}"
    return ProcessEnd(how=f"the module cannot be imported: {text}", place=place, advice=advice_for(error, place))


def child_main(job: Job, part: str, stack: str, names: frozenset[str], pipe: int, *, is_sequential: bool) -> None:
    """Be the child: play, run what was registered for the exit, and end."""
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    atexit._clear()  # noqa: SLF001 - what the parent registered is the parent's
    weakref.finalize._registry.clear()  # type: ignore[attr-defined]  # noqa: SLF001 - so are its temporary directories
    weakref.finalize._registered_with_atexit = False  # type: ignore[attr-defined]  # noqa: SLF001
    gc.freeze()
    # pytest's rewriting of asserts parses each module that is imported; what is played is not a test
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "AssertionRewritingHook"]
    _leave_terminal()
    writer, process = EvidenceWriter(part), os.getpid()

    def beat(sign: bytes = b".") -> None:
        if os.getpid() == process:  # a process that the environment forked is not the player
            os.write(pipe, sign)

    def note_place(leave: Callable[[int], Any], status: int) -> None:
        if os.getpid() == process:
            _write_frames(stacks, traceback.extract_stack())
        leave(status)

    def note_stop(stop: Callable[[Any], None], loop: Any) -> None:
        stack = traceback.extract_stack()
        if (
            stack[-3].filename != asyncio.base_events.__file__
        ):  # which stops each loop at its end; the last two frames are the patch
            _write_frames(stacks, stack)
        stop(loop)

    with (
        open(stack, "a", encoding="utf-8") as stacks,
        intercept("os._exit", note_place),
        intercept("asyncio.base_events.BaseEventLoop.stop", note_stop),
    ):
        faulthandler.enable(stacks)
        faulthandler.register(signal.SIGUSR1, stacks)
        with _measuring(job.coverage):
            try:
                if job.is_elsewhere:
                    begin_elsewhere(os.path.dirname(part))
                play(job, writer, names=names, is_sequential=is_sequential, beat=beat)
            except HermesEnvError as error:
                writer.write("refused", str(error), type=type(error).__name__)
            except BaseException as error:  # what ends a loop, such as SystemExit in a task of the environment
                if own := _own_fault(error):
                    writer.write("refused", own, type="PlayerStopped")
                _write_frames(stacks, traceback.extract_tb(error.__traceback__))
                writer.write("died", described(error))
                raise
        beat(b"d")
        threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - as the interpreter does before it ends
        atexit._run_exitfuncs()  # noqa: SLF001
        beat(b"e")
    os._exit(0)


def _own_fault(error: BaseException) -> str:
    """Return what to say of an error that this package raised itself, which is a bug of it; empty for any other."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    package = os.path.dirname(os.path.dirname(__file__)) + os.sep
    if (
        not isinstance(error, Exception)
        or isinstance(error, RuntimeError | MemoryError)
        or not last.filename.startswith(package)
    ):
        return ""
    if instead := imported_instead():
        return f"playing failed with {described(error)}: {instead}."
    place = f"{last.filename.removeprefix(package)}, line {last.lineno}"
    return f"playing failed with {described(error)} ({place}). This is a bug of pytest-hermes-env, not of your class: please report it."


def _leave_terminal() -> None:
    """Let nothing that is printed reach the parent's output, nothing be read from its input, and no debugger wait for either."""

    def refuse(*_: Any, **__: Any) -> None:
        raise HermesEnvError("breakpoint() has no terminal in the process that plays: add --hermes-player here -s to pytest")

    sys.breakpointhook = refuse
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open for the life of the process
    logging.disable(logging.CRITICAL)


def _write_frames(stacks: TextIO, frames: traceback.StackSummary) -> None:
    """Write frames as faulthandler does, the last call first."""
    stacks.writelines(f'  File "{frame.filename}", line {frame.lineno} in {frame.name}\n' for frame in reversed(frames))
    stacks.flush()


def coverage_settings() -> dict[str, Any] | None:
    """Return how the coverage of this process is measured, so that a child's can be; None where it is not."""
    coverage = sys.modules.get("coverage")
    current = coverage.Coverage.current() if coverage is not None else None
    if current is None:
        return None
    config = current.config
    return {
        "data_file": os.path.abspath(config.data_file),
        "config_file": config.config_file or False,
        "source": config.source,
        "include": config.run_include,
        "omit": config.run_omit,
        "branch": config.branch,
    }


@contextlib.contextmanager
def _measuring(settings: dict[str, Any] | None) -> Iterator[None]:
    """Measure coverage into a file of its own next to the parent's, which coverage combines."""
    if settings is None:
        yield
        return
    import coverage  # noqa: PLC0415 - where the parent has it, too

    if inherited := coverage.Coverage.current():
        inherited.stop()
    measuring = coverage.Coverage(**settings, data_suffix=True)
    measuring.start()
    try:
        yield
    finally:
        measuring.stop()
        measuring.save()
