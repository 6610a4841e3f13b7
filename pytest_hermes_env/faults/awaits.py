"""Counts the awaits of a coroutine and of the tasks that it starts, and cancels it at one of them.

Source: CPython, ``asyncio.tasks``: a task sends to its coroutine, which yields at every await that suspends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

_run: ContextVar[_Run | None] = ContextVar("hermes_env_counted_run", default=None)


class _Run:
    """One counted run: its root task, and what tells whether an await is the one at which to cancel it."""

    def __init__(self, is_due: Callable[[], bool]) -> None:
        self._is_due = is_due
        self.root: asyncio.Task[Any] | None = None

    def suspended(self) -> None:
        """Count an await that suspends its task."""
        if self.root is not None and not self.root.done() and self._is_due():
            self.root.cancel()


class _Counted(Coroutine[Any, Any, T]):
    """A coroutine that counts each time it suspends its task."""

    def __init__(self, coroutine: Coroutine[Any, Any, T] | Generator[Any, Any, T], run: _Run) -> None:
        self._coroutine = coroutine
        self._counts_in = run

    def send(self, value: Any) -> Any:
        yielded = self._coroutine.send(value)
        self._counts_in.suspended()
        return yielded

    def throw(self, *error: Any) -> Any:
        yielded = self._coroutine.throw(*error)
        self._counts_in.suspended()
        return yielded

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, T]:
        raise NotImplementedError("only a task drives it")


async def run_counted(coroutine: Coroutine[Any, Any, T], is_due: Callable[[], bool]) -> T:
    """Return what ``coroutine`` returns. It is cancelled when ``is_due`` is true, which is asked at each await."""
    loop, run = asyncio.get_running_loop(), _Run(is_due)
    before = loop.get_task_factory()
    token = _run.set(run)

    def factory(loop: asyncio.AbstractEventLoop, coro: Any, **kwargs: Any) -> asyncio.Future[Any]:
        counted_in = _run.get()
        counted = coro if counted_in is None else _Counted(coro, counted_in)
        return asyncio.Task(counted, loop=loop, **kwargs) if before is None else before(loop, counted, **kwargs)

    loop.set_task_factory(factory)
    try:
        root: asyncio.Task[T] = loop.create_task(coroutine)
        run.root = root
        _run.reset(token)
        try:
            return await root
        finally:
            if not root.done():  # the awaiting task was cancelled from outside
                root.cancel()
                await asyncio.wait({root})
    finally:
        loop.set_task_factory(before)
