"""The first set-up of a class in a run: all other instances wait for it, and none is set up when it fails."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from pytest_hermes_env.play.unavailable import Unavailable


@dataclass
class Gate:
    """``reason`` is why nothing more can be played: the class could not be built, or its first set-up failed."""

    reason: Unavailable | None = None
    beside: Unavailable | None = None
    """Why a set-up failed after the first one had succeeded, while other instances were alive."""
    hangs: int = 0
    """How many scenarios of the class did not end in time: the others get less."""
    _is_taken: bool = False
    _is_open: asyncio.Event = field(default_factory=asyncio.Event)

    @contextlib.asynccontextmanager
    async def passing(self) -> AsyncIterator[bool]:
        """Yield whether this is the first set-up; every other one waits until the first one has ended."""
        if self._is_taken:
            await self._is_open.wait()
            yield False
            return
        self._is_taken = True
        try:
            yield True
        finally:
            self._is_open.set()
