"""Runs blocking tool calls without blocking the event loop, also those of synchronous code inside a coroutine.

A reward function is a coroutine, but `ToolContext` has plain methods: ``ctx.terminal("pytest -q")`` returns a dict, not an
awaitable. Called on the event loop's thread, such a call would block every other rollout until the command ends. Here the
coroutine runs in its own greenlet; a synchronous call inside it passes an awaitable to the surrounding task, which awaits
it, and the greenlet continues with the result. SQLAlchemy's asyncio layer works the same way.

The calls themselves run in threads, so that a cancelled rollout interrupts its own call, and waits for its end.

Place in the flow: `hermes_base_env` wraps every ``compute_reward`` with `bridged`; `tool_context` calls `wait_for`. `agent_loop` runs
every tool of an agent or a verifier with `run_interruptibly`, in its pool.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import contextvars
import functools
import inspect
import logging
import os
import threading
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, TypeVar

import greenlet

logger = logging.getLogger(__name__)

T = TypeVar("T")

_YIELD, _AWAIT, _DONE, _RAISED = range(4)


class _Carrier(greenlet.greenlet):
    """The greenlet that runs one coroutine, with the context variables of the task that drives it."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        driver = greenlet.getcurrent()
        super().__init__(self._step_to_the_end, driver)
        self.gr_context = driver.gr_context
        self._coroutine = coroutine

    def _step_to_the_end(self) -> tuple[int, Any]:
        coroutine = self._coroutine
        error: BaseException | None = None
        while True:
            try:
                yielded = coroutine.send(None) if error is None else coroutine.throw(error)
            except StopIteration as stop:
                return _DONE, stop.value
            except BaseException as raised:  # noqa: BLE001 - carried to the driver, which raises it in the task
                return _RAISED, raised
            try:
                self.parent.switch((_YIELD, yielded))
                error = None
            except BaseException as thrown:  # noqa: BLE001 - a cancellation: it belongs to the coroutine
                error = thrown


@types.coroutine
def _driven(coroutine: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Run a coroutine in a `_Carrier`, driven from the task that awaits it."""
    carrier = _Carrier(coroutine)
    kind, value = carrier.switch()
    while True:
        if kind == _DONE:
            return value  # type: ignore[no-any-return]
        if kind == _RAISED:
            raise value
        try:
            if kind == _AWAIT:
                answer = yield from value.__await__()
            else:
                answer = yield value
        except BaseException as error:  # noqa: BLE001 - raised again inside the coroutine, where it happened
            kind, value = carrier.throw(error)
        else:
            kind, value = carrier.switch(answer)


def is_bridged() -> bool:
    """Return whether the current frame runs inside a bridged coroutine."""
    return isinstance(greenlet.getcurrent(), _Carrier)


def wait_for(awaitable: Awaitable[T]) -> T:
    """Await ``awaitable`` from a synchronous frame of a bridged coroutine, without blocking the event loop: the driving task does.

    Raises: RuntimeError when the current frame is not inside one; see `is_bridged`.
    """
    carrier = greenlet.getcurrent()
    if not isinstance(carrier, _Carrier):
        raise RuntimeError("wait_for() needs a bridged coroutine around it; see environments.sandbox.nonblocking_calls.bridged")  # noqa: TRY004 - wrong place of the call, not wrong type
    return carrier.parent.switch((_AWAIT, awaitable))  # type: ignore[no-any-return]


def bridged(function: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., Coroutine[Any, Any, T]]:
    """Return ``function`` wrapped so that synchronous tool calls in it do not block the event loop.

    A function that is not a coroutine function, or is already bridged, is returned unchanged.
    """
    if not inspect.iscoroutinefunction(function) or getattr(function, "__bridged__", False):
        return function

    @functools.wraps(function)
    async def run(*args: Any, **kwargs: Any) -> T:
        coroutine = function(*args, **kwargs)
        if is_bridged():
            return await coroutine
        return await _driven(coroutine)

    run.__bridged__ = True  # type: ignore[attr-defined]
    return run


# ---------------------------------------------------------------------- calls in threads that can be interrupted

INTERRUPT_GRACE_S = 5.0
"""Seconds that a cancelled rollout waits for its running tool to notice the interrupt."""


_hanging: set[asyncio.Future[Any]] = set()
"""Calls that did not stop when they were interrupted."""


def end_despite_hanging_calls(code: int, grace_s: float = INTERRUPT_GRACE_S) -> None:
    """End the process with ``code``, in ``grace_s`` seconds, where calls hang: Python would wait for their threads for ever."""

    def end() -> None:
        atexit._run_exitfuncs()
        os._exit(code)

    if _hanging:
        logger.warning("%d tools hang; the process ends without them", len(_hanging))
        timer = threading.Timer(grace_s, end)
        timer.daemon = True
        timer.start()


class ToolPoolError(RuntimeError):
    """No tool can run: the pool takes no call, or the rollout's sandbox cannot be opened."""


async def run_interruptibly(executor: concurrent.futures.Executor, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Run a blocking tool function in ``executor``. Cancelling the awaiting task interrupts the tool and waits until it has stopped.

    Context variables of the caller are visible to ``function``. Raises: ToolPoolError when the pool does not run it.
    """
    worker = _Worker()
    context = contextvars.copy_context()
    try:
        running = executor.submit(lambda: context.run(worker.run, function, *args, **kwargs))
    except RuntimeError as error:
        raise ToolPoolError(f"the tool pool takes no calls: {error}") from error
    future = asyncio.wrap_future(running)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if running.cancelled() and task is not None and not task.cancelling():
            raise ToolPoolError("the tool pool was shut down before the call began") from None
        worker.interrupt()
        if not running.cancel():
            await _until_stopped(future)
        raise


async def _until_stopped(future: asyncio.Future[Any]) -> None:
    """Wait until an interrupted tool has stopped, at most `INTERRUPT_GRACE_S`, even if the task is cancelled again."""
    future.add_done_callback(
        lambda done: done.cancelled() or done.exception()
    )  # marks its exception as retrieved: an interrupted tool often fails
    loop = asyncio.get_running_loop()
    deadline = loop.time() + INTERRUPT_GRACE_S
    while not future.done() and loop.time() < deadline:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({future}, timeout=deadline - loop.time())
    if not future.done():
        _hanging.add(future)
        future.add_done_callback(_hanging.discard)
        logger.warning("A tool did not stop within %s s of its rollout's cancellation", INTERRUPT_GRACE_S)


class _Worker:
    """The thread that runs one call, so that a cancelled rollout can interrupt only that call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread_id: int | None = None
        self._is_cancelled = False

    def run(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run ``function`` in the current thread. Raises: CancelledError when the rollout was cancelled before the call began."""
        with self._lock:
            if self._is_cancelled:
                raise concurrent.futures.CancelledError
            self._thread_id = threading.get_ident()
        try:
            return function(*args, **kwargs)
        except SystemExit as error:  # it would end the event loop, and with it all other rollouts
            raise RuntimeError(f"SystemExit: {error.code}") from error
        finally:
            with self._lock:
                self._thread_id = None
                _set_interrupt(False, threading.get_ident())

    def interrupt(self) -> None:
        """Interrupt the running tool, and prevent a call that has not begun from starting."""
        with self._lock:
            self._is_cancelled = True
            if self._thread_id is not None:
                _set_interrupt(True, self._thread_id)


def _set_interrupt(active: bool, thread_id: int) -> None:
    from tools.interrupt import set_interrupt  # noqa: PLC0415 - hermes' module, replaced as a whole in some tests

    set_interrupt(active, thread_id)
