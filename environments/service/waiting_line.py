"""The places for rollouts: some run, some wait, others are refused; a service that shuts down admits none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any


class Refused(Exception):
    """A request that is not served: the HTTP status and the code of the answer. Its text quotes no secret."""

    def __init__(self, status: int, code: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.code = code


class WaitingLine:
    """At most ``places`` rollouts run at once, and ``length`` wait for a place, in the order of their arrival."""

    def __init__(self, places: int, length: int) -> None:
        self.places = places
        self.length = length
        self.running: set[asyncio.Task[Any]] = set()
        self.waiting = 0
        self.is_closed = False
        self._free = asyncio.Semaphore(places)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold a place for the block, which is all that the current task runs. Raises: Refused."""
        self._admit()
        if self.waiting >= self.length and self._free.locked():
            raise Refused(429, "queue_full", "as many rollouts wait as may; try again, or another service")
        self.waiting += 1
        try:
            await self._free.acquire()
        finally:
            self.waiting -= 1
        task = asyncio.current_task()
        assert task is not None
        try:
            self._admit()
            self.running.add(task)
            yield
        finally:
            self.running.discard(task)
            self._free.release()

    def _admit(self) -> None:
        if self.is_closed:
            raise Refused(503, "shutting_down", "the service ends; try another")

    def close(self) -> None:
        """Admit no further rollouts, and refuse those that wait."""
        self.is_closed = True
        for _ in range(self.waiting):
            self._free.release()

    async def empty(self) -> None:
        """Return when the rollouts that run have ended."""
        if self.running:
            await asyncio.wait(self.running)

    async def cancel(self) -> None:
        """Cancel the rollouts that run, and return when their sandboxes are released."""
        for task in self.running:
            task.cancel()
        await self.empty()
