"""The places for rollouts: some run, some wait, others are refused; a service that shuts down admits none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


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
        self.running = 0
        self.waiting = 0
        self.is_closed = False
        self._free = asyncio.Semaphore(places)
        self._empty = asyncio.Event()
        self._empty.set()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold a place for the block. Raises: Refused."""
        self._admit()
        if self.waiting >= self.length and self._free.locked():
            raise Refused(429, "queue_full", "as many rollouts wait as may; try again, or another service")
        self.waiting += 1
        try:
            await self._free.acquire()
        finally:
            self.waiting -= 1
        try:
            self._admit()
            self.running += 1
            self._empty.clear()
            try:
                yield
            finally:
                self.running -= 1
                if not self.running:
                    self._empty.set()
        finally:
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
        """Return when no rollout runs."""
        await self._empty.wait()
