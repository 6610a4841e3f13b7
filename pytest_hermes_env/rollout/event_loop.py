"""The event loop that scenarios run in: an environment can neither stop it nor end it with SystemExit, and blocking it is recorded.

The loop registers each task with the journal that is current, so that tasks which outlive their scenario can be awaited. A thread
samples the stack of the loop's thread every few milliseconds; too long a step in the environment's code goes into the journal.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import signal
import sys
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Generator, Iterator
from concurrent import futures
from contextvars import Context
from pathlib import Path
from types import FrameType
from typing import Any

from pytest_hermes_env.garbage_collection import no_garbage_collection
from pytest_hermes_env.rollout.journal import Blocked, Place, current_journal
from pytest_hermes_env.rollout.raised import CANCELLATIONS, CANCELLED_S, Hung, is_interrupt
from pytest_hermes_env.rollout.watchers.caught_errors import watched_in_thread

BLOCKED_S = 0.1
"""Seconds in the environment's code, without a return to the loop, that are recorded."""
SAMPLE_S = 0.01
"""Seconds between two samples."""
HUNG_AGAIN_S = 3.0
"""Seconds that code may block the loop after other code had to be interrupted: one hang is enough to know."""
TICK_S = 1.0
"""Seconds of CPU time between two looks at a step that the sampler may not see."""
TELLS_STATES = Path("/proc/self/task").is_dir()
"""Whether the system tells a thread that waits from one that computes; elsewhere every sample of a step counts as a wait."""
THREADS_S = 5.0
"""Seconds that calls in threads get to return when the loop closes."""


class ScenarioLoop(asyncio.SelectorEventLoop):
    """An event loop for code that may block or stop it.

    ``place_of`` returns the environment's line on a stack; ``hang_s`` is how long code may block the loop, in seconds. ``hangs``
    counts how often code was interrupted.
    """

    def __init__(self, place_of: Callable[[FrameType | None], Place | None], hang_s: float) -> None:
        super().__init__()
        self.running: _Step | None = None
        self._place_of = place_of
        self._hang_s = hang_s
        self._is_guarded = False
        self._signal = 0
        self.hangs = 0
        self.set_default_executor(_DaemonThreads())
        self.set_task_factory(_registered_task)  # type: ignore[arg-type]  # typeshed knows no further arguments

    async def guarded(self, work: Awaitable[None]) -> None:
        """Await ``work``; meanwhile nothing stops the loop, and a thread samples it."""
        self._is_guarded = True
        ended = threading.Event()
        threads = (threading.get_ident(), threading.get_native_id(), ended)
        sampler = threading.Thread(target=self._sample, args=threads, name="hermes-env-sampler", daemon=True)
        sampler.start()
        try:
            with self._handling_signal():
                await work
        finally:
            await _end_all_tasks()
            self._is_guarded = False
            ended.set()
            sampler.join()

    def stop(self) -> None:
        """Stop. Raises, while guarded, what `asyncio.run` would raise at its end → RuntimeError."""
        if self._is_guarded:
            raise RuntimeError("Event loop stopped before Future completed: the trainer's loop is no rollout's to stop")
        super().stop()

    def _run_once(self) -> None:
        """Continue after a task that raised SystemExit or KeyboardInterrupt: the task has the exception, for whoever awaits it."""
        try:
            super()._run_once()  # type: ignore[misc]
        except (SystemExit, KeyboardInterrupt) as error:
            if not self._is_guarded or is_interrupt(error):
                raise

    def _call_soon(self, callback: Any, args: Any, context: Context | None) -> asyncio.Handle:
        handle = _Step(callback, args, self, context)
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    def _sample(self, thread_id: int, native_id: int, ended: threading.Event) -> None:
        while not ended.wait(SAMPLE_S):
            step = self.running
            if step is None:
                continue
            seconds = time.perf_counter() - step.begun_s
            if seconds > 2 * SAMPLE_S:
                place = self._place_of(_stack_of(thread_id))
                if place is not None and step is self.running:
                    step.seen.append(place)
                    step.waited += _is_waiting(native_id)
            if self._is_too_long(step, seconds):
                self._interrupt(thread_id)

    def _interrupt(self, thread_id: int) -> None:
        """Raise Hung in the loop's thread: in the main thread also in code that waits in C, elsewhere when it returns."""
        if self._signal:
            signal.pthread_kill(thread_id, self._signal)
        else:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), ctypes.py_object(Hung))

    @contextlib.contextmanager
    def _handling_signal(self) -> Iterator[None]:
        """Let a signal that nothing else uses raise Hung in the step that runs too long, where there are such signals."""
        if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGRTMAX"):
            yield
            return

        def interrupt(number: int, frame: FrameType | None) -> None:
            del number, frame
            if self.running is not None and self.running.interrupted_s:
                raise Hung

        number = signal.SIGRTMAX - 3
        previous = signal.signal(number, interrupt)
        self._signal = number
        with self._ticking():
            try:
                yield
            finally:
                self._signal = 0
                signal.signal(number, previous)

    @contextlib.contextmanager
    def _ticking(self) -> Iterator[None]:
        """Raise Hung where the sampler cannot: C code that computes without giving up the GIL, such as a pattern that backtracks.

        The system sends the signal after a second of CPU time; where the code asks for signals, as `re` does, the handler runs.
        """

        def tick(number: int, frame: FrameType | None) -> None:
            del number, frame
            step = self.running
            if step is not None and self._is_too_long(step, time.perf_counter() - step.begun_s - TICK_S):
                raise Hung

        previous = signal.signal(signal.SIGVTALRM, tick)
        signal.setitimer(signal.ITIMER_VIRTUAL, TICK_S, TICK_S)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, previous)

    def _is_too_long(self, step: _Step, seconds: float) -> bool:
        """Whether a step that has run for this long must be interrupted, now or again; count it then."""
        if seconds <= (step.interrupted_s + HUNG_AGAIN_S if step.interrupted_s else self._hang_s):
            return False
        step.interrupted_s = seconds
        self.hangs += 1
        self._hang_s = min(self._hang_s, HUNG_AGAIN_S)
        return True


class _Step(asyncio.Handle):
    """One step of a task, or one callback, which is timed."""

    __slots__ = ("begun_s", "interrupted_s", "seen", "waited")

    def __init__(self, callback: Any, args: Any, loop: ScenarioLoop, context: Context | None) -> None:
        super().__init__(callback, args, loop, context)
        self.seen: list[Place] = []
        self.waited = 0
        self.interrupted_s = 0.0
        self.begun_s = 0.0

    def _run(self) -> None:
        loop: Any = self._loop  # type: ignore[attr-defined]
        context: Context = self._context  # type: ignore[attr-defined]
        self.begun_s, busy_s = time.perf_counter(), time.thread_time()
        loop.running = self
        try:
            super()._run()
        finally:
            loop.running = None
            if self.seen:
                # on a busy machine the thread also waits for a processor, which is not the environment's fault
                seconds = self.waited * SAMPLE_S + (time.thread_time() - busy_s if TELLS_STATES else 0.0)
                journal = context.get(current_journal)
                if journal is not None and seconds >= BLOCKED_S:
                    place = max(set(self.seen), key=self.seen.count)
                    journal.add(Blocked(seconds=round(seconds, 2), place=place))


class _DaemonThreads(futures.ThreadPoolExecutor):
    """Runs each call in a daemon thread of its own: a call that never returns keeps neither the loop nor the process from ending."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: weakref.WeakSet[futures.Future[Any]] = weakref.WeakSet()

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        """Start the call."""
        call: futures.Future[Any] = futures.Future()
        self._calls.add(call)
        watched = watched_in_thread(functools.partial(function, *args, **kwargs))

        def run() -> None:
            if call.set_running_or_notify_cancel():
                try:
                    call.set_result(watched())
                except BaseException as error:  # noqa: BLE001 - whoever awaits the call gets it
                    call.set_exception(error)

        threading.Thread(target=run, name="hermes-env-call", daemon=True).start()
        return call

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for a few seconds until the calls have returned."""
        del cancel_futures
        futures.wait(list(self._calls), timeout=THREADS_S if wait else 0)


def _stack_of(thread_id: int) -> FrameType | None:
    """Return the stack of a thread, without the deadlock of sys._current_frames() with others (gh-106883) before CPython 3.12.

    The function holds the interpreter's lock on its list of threads while it allocates; a garbage collection in there runs Python
    code, may give up the GIL, and a thread that starts or ends then waits for that lock with the GIL in its hands. CPython's own fix
    is the same: no collection meanwhile. From 3.12 on, collections never run inside of an allocation. May go with Python 3.11.
    """
    with no_garbage_collection():
        return sys._current_frames().get(thread_id)


def _is_waiting(native_id: int) -> bool:
    """Return whether a thread of this process waits for something other than a processor; True where that is unknown."""
    if not TELLS_STATES:
        return True
    status = Path(f"/proc/self/task/{native_id}/stat").read_text(encoding="utf-8", errors="replace")
    return status.rpartition(")")[2].split()[0] != "R"


async def _end_all_tasks() -> None:
    """Cancel what still runs, as asyncio does when a loop closes; a task that catches every cancellation is left behind."""
    own = {asyncio.current_task()}
    for _ in range(CANCELLATIONS):
        pending = asyncio.all_tasks() - own
        if not pending:
            return
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=CANCELLED_S)
    for task in asyncio.all_tasks() - own:
        asyncio._unregister_task(task)  # asyncio documents it for makers of tasks
        ctypes.pythonapi.Py_IncRef(
            ctypes.py_object(task)
        )  # never collected: its code would catch GeneratorExit, too, and go on


def _registered_task(
    loop: asyncio.AbstractEventLoop, coroutine: Generator[Any, None, Any], *, context: Context | None = None, **rest: Any
) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, context=context, **rest)
    journal = current_journal.get() if context is None else context.get(current_journal)
    if journal is not None:
        journal.tasks.add(task)
    else:
        asyncio._unregister_task(task)  # the player's own: an environment that cancels or awaits all tasks must not meet it
    return task
