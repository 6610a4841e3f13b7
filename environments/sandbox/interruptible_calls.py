"""Runs blocking tool calls in threads so that a cancelled rollout interrupts its own call, and waits for its end.

Place in the flow: `agent_loop` runs every tool of an agent or a verifier with `run_interruptibly`, in its pool.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import logging
import threading
from collections.abc import Callable
from typing import Any, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")

INTERRUPT_GRACE_S = 5.0
"""Seconds that a cancelled rollout waits for its running tool to notice the interrupt."""


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
