"""The places for rollouts: some run, some wait, others are refused; a service that shuts down admits none."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from environments.rollout_service.refusals import Refused

__all__ = ["WaitingLine"]

FULL = "as many rollouts wait as may; try again, or another service"
CLOSED = "the service ends; try another"


class WaitingLine:
    """At most ``places`` rollouts run at once, and ``length`` wait for a place, in the order of their arrival."""

    def __init__(self, places: int, length: int) -> None:
        self.places = places
        self.length = length
        self.running = 0
        self.is_closed = False
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def waiting(self) -> int:
        """How many rollouts wait."""
        return len(self._waiting)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold a place for the block. Raises: Refused."""
        await self._acquire()
        self._empty.clear()
        try:
            yield
        finally:
            self._release()

    async def _acquire(self) -> None:
        if self.is_closed:
            raise Refused(503, "shutting_down", CLOSED)
        if self.running < self.places:
            self.running += 1
            return
        if len(self._waiting) >= self.length:
            raise Refused(429, "queue_full", FULL)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn in self._waiting:
                self._waiting.remove(turn)
            elif not turn.cancelled() and turn.exception() is None:
                self._release()  # the place was handed over while the client went away
            raise

    def _release(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.running -= 1
        if not self.running:
            self._empty.set()

    def close(self) -> None:
        """Admit no further rollouts, and refuse those that wait."""
        self.is_closed = True
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(Refused(503, "shutting_down", CLOSED))

    async def empty(self) -> None:
        """Return when no rollout runs."""
        await self._empty.wait()
