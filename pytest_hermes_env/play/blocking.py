"""Notes what blocks the event loop that scenarios run in, and which tasks belong to a scenario.

A thread samples the stack of the loop's thread: samples in which the loop runs the same step are one step. One that stays in the
environment's code for too long goes into the journal of its scenario.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent import futures
from contextvars import Context
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from pytest_hermes_env.garbage_collection import no_garbage_collection
from pytest_hermes_env.play.journal import Blocked, Journal, Place, current_journal
from pytest_hermes_env.play.watchers.caught_errors import watched_in_thread

BLOCKED_S = 0.1
"""Seconds in the environment's code, without a return to the loop, that are recorded."""
SAMPLE_S = 0.01
"""Seconds between two samples."""
TELLS_STATES = Path("/proc/self/task").is_dir()
"""Whether the system tells a thread that waits from one that computes; elsewhere every sample of a step counts as a wait."""

_STEP = asyncio.Handle._run.__code__  # noqa: SLF001 - each step of a loop is one call of this function


@dataclass
class _Step:
    """One step of the loop, by the frame that runs it: ``waited`` of its samples found the thread waiting.

    ``journal`` is that of its scenario, which may be over when the next sample is taken.
    """

    frame: FrameType
    busy_s: float
    journal: Journal | None = None
    waited: int = 0
    places: list[Place] = field(default_factory=list)


@contextlib.contextmanager
def watching(loop: asyncio.AbstractEventLoop, place_of: Callable[[FrameType | None], Place | None]) -> Iterator[None]:
    """Watch a loop that runs in this thread; ``place_of`` returns the environment's line on a stack."""
    loop.set_task_factory(_noted_task)  # type: ignore[arg-type]  # typeshed does not know the further arguments
    loop.set_default_executor(_WatchedThreads())
    ended = threading.Event()
    sampler = threading.Thread(
        target=_sample,
        args=(threading.get_ident(), threading.get_native_id(), place_of, ended),
        name="hermes-env-sampler",
        daemon=True,
    )
    sampler.start()
    try:
        yield
    finally:
        ended.set()
        sampler.join()


def _sample(
    thread_id: int, native_id: int, place_of: Callable[[FrameType | None], Place | None], ended: threading.Event
) -> None:
    step: _Step | None = None
    while not ended.wait(SAMPLE_S):
        top = _stack_of(thread_id)
        frame = top
        while frame is not None and frame.f_code is not _STEP:
            frame = frame.f_back
        if frame is not (step.frame if step is not None else None):
            _note(step, thread_id)
            step = _Step(frame, _busy_s(thread_id)) if frame is not None else None
        elif step is not None and (place := place_of(top)) is not None:
            step.places.append(place)
            step.journal = step.journal or _journal_of(frame)
            step.waited += _is_waiting(native_id)
    _note(step, thread_id)


def _note(step: _Step | None, thread_id: int) -> None:
    """Put a step that has ended into its journal, if it took too long. Waiting for a processor is not the environment's fault."""
    if step is None or not step.places:
        return
    seconds = (step.waited + 1) * SAMPLE_S + (_busy_s(thread_id) - step.busy_s if TELLS_STATES else 0.0)
    if step.journal is not None and seconds >= BLOCKED_S:
        step.journal.add(Blocked(seconds=round(seconds, 2), place=max(set(step.places), key=step.places.count)))


def _journal_of(frame: FrameType | None) -> Journal | None:
    context: Context | None = getattr(frame.f_locals.get("self"), "_context", None) if frame is not None else None
    return context.get(current_journal) if context is not None else None


def _busy_s(thread_id: int) -> float:
    """Return the CPU time of a thread, in seconds."""
    return time.clock_gettime(time.pthread_getcpuclockid(thread_id)) if TELLS_STATES else 0.0


def _stack_of(thread_id: int) -> FrameType | None:
    """Return the stack of a thread, without the deadlock of sys._current_frames() with others (gh-106883) before CPython 3.12.

    The function holds the interpreter's lock on its list of threads while it allocates; a garbage collection in there runs Python
    code, may give up the GIL, and a thread that starts or ends then waits for that lock with the GIL in its hands. CPython's own fix
    is the same: no collection meanwhile. From 3.12 on, collections never run inside of an allocation. May go with Python 3.11.
    """
    with no_garbage_collection():
        return sys._current_frames().get(thread_id)  # noqa: SLF001 - the only way to another thread's stack


def _is_waiting(native_id: int) -> bool:
    """Return whether a thread of this process waits for something other than a processor; True where that is unknown."""
    if not TELLS_STATES:
        return True
    status = Path(f"/proc/self/task/{native_id}/stat").read_text(encoding="utf-8", errors="replace")
    return status.rpartition(")")[2].split()[0] != "R"


def _noted_task(
    loop: asyncio.AbstractEventLoop, coroutine: Generator[Any, None, Any], *, context: Context | None = None, **rest: Any
) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, context=context, **rest)
    journal = current_journal.get() if context is None else context.get(current_journal)
    if journal is not None:
        journal.tasks.add(task)
    return task


class _WatchedThreads(futures.ThreadPoolExecutor):
    """Lets what a reward calls in a thread count to that reward."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        """Start the call."""
        return super().submit(watched_in_thread(functools.partial(function, *args, **kwargs)))
