"""How long one call to the real server may take: its observer hears that it still waits, and a limit ends it.

Place in the flow: a `Meter` has the `Patience` of the run, and every awaited call passes through `in_time`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from pytest_hermes_env.errors import CallTimedOut

REMINDER_S = 10.0
"""How long a call waits before it says so, and says so again."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A call that has no answer yet."""

    server: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Patience:
    """``server`` is the model and its host, for texts. ``limit_s`` is the limit of one call in seconds; None means no limit."""

    server: str = "the model"
    limit_s: float | None = None
    reminder_s: float = REMINDER_S


async def in_time(answer: Awaitable[Answer], patience: Patience, tell: Callable[[Waiting], None]) -> Answer:
    """Return the answer of a call. ``tell`` hears of each reminder. Raises: the limit is reached → CallTimedOut."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    reminder: asyncio.TimerHandle

    def remind() -> None:
        nonlocal reminder
        tell(Waiting(server=patience.server, seconds=loop.time() - began))
        reminder = loop.call_later(patience.reminder_s, remind)

    reminder = loop.call_later(patience.reminder_s, remind)
    try:
        async with asyncio.timeout(patience.limit_s) as clock:
            return await answer
    except TimeoutError:
        if not clock.expired():
            raise
        raise CallTimedOut(
            f"{patience.server} did not answer within {patience.limit_s:g} s (--hermes-call-timeout).\n"
            "  expected  the whole answer, or the beginning of a stream\n"
            "  fix       raise --hermes-call-timeout, or see why the server is silent: it may be loading or overloaded"
        ) from None
    finally:
        reminder.cancel()
