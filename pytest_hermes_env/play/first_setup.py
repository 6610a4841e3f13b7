"""The first set-up of a class in a run, for which all other instances wait.

Place in the flow: the driver makes one for a class, and each stage passes it before it sets up.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from pytest_hermes_env.play.scenario import Unavailable


@dataclass
class FirstSetup:
    """The first set-up of a class in a run, for which all other instances wait: none is set up when it fails.

    ``reason`` is why nothing more can be played: the class could not be built, or its first set-up failed. ``blocked_by`` is why a
    set-up failed after the first one had succeeded, while other instances were alive. ``hangs`` counts the scenarios of the class
    that did not end in time: the others get less.
    """

    reason: Unavailable | None = None
    blocked_by: Unavailable | None = None
    hangs: int = 0
    _is_taken: bool = False
    _has_ended: asyncio.Event = field(default_factory=asyncio.Event)

    @contextlib.asynccontextmanager
    async def passing(self) -> AsyncIterator[bool]:
        """Yield whether this is the first set-up; every other one waits until the first one has ended."""
        if self._is_taken:
            await self._has_ended.wait()
            yield False
            return
        self._is_taken = True
        try:
            yield True
        finally:
            self._has_ended.set()
