"""Counts the awaits of a coroutine and of the tasks that it starts, and cancels it at one of them.

Source: CPython, ``asyncio.tasks``: a task sends to its coroutine, which yields at every await that suspends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

_run: ContextVar[_Run | None] = ContextVar("hermes_env_counted_run", default=None)


class _Run:
    """One counted run: its root task, and how many awaits are left until it is cancelled."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.root: asyncio.Task[Any] | None = None

    def suspended(self) -> None:
        """Count an await that suspends its task."""
        if self.root is not None and not self.root.done():
            self.left -= 1
            if self.left == 0:
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


async def cancelled_at_await(number: int, coroutine: Coroutine[Any, Any, T]) -> T:
    """Return what ``coroutine`` returns, unless it reaches the await of that number, from 1: there it is cancelled."""
    loop, run = asyncio.get_running_loop(), _Run(number)
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
