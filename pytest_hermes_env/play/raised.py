"""What the environment's code raised: anything at all, SystemExit, KeyboardInterrupt and pytest's own exceptions included.

Whoever plays a scenario catches BaseException and asks `is_from_outside` first.
"""

from __future__ import annotations

import asyncio
import traceback
from asyncio import runners
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

from pytest_hermes_env.errors import shorten

noting: ContextVar[Callable[[str, BaseException], None] | None] = ContextVar("hermes_env_noting", default=None)
"""Hears each error that is described, with its text."""

CANCELLATIONS, CANCELLED_S = 3, 1.0
"""How often a call that does not end in time is cancelled, and the seconds that it gets each time."""

EXTENSIONS = 4
"""How many limits a call gets that goes on."""


class Ended(Exception):
    """Stands for a SystemExit or KeyboardInterrupt of the environment (its cause), which would end the event loop."""


async def awaited(answer: Awaitable[Any]) -> Any:
    """Await what an environment returned. Raises: whatever it raises; SystemExit and KeyboardInterrupt → Ended."""
    try:
        return await answer
    except (SystemExit, KeyboardInterrupt) as error:
        if is_from_outside(error):
            raise
        raise Ended(str(error)) from error


class NeverEnded(Exception):
    """A call did not end in time; its cause was raised at the line where the call waited."""


async def within(
    limit_s: float,
    answer: Awaitable[Any],
    *,
    late: Callable[[], None] = lambda: None,
    progress: Callable[[], object] = lambda: 0,
) -> Any:
    """Await what an environment returned, in a task of its own; ``late`` is called before one that does not end is cancelled.

    While ``progress`` changes the limit begins again, a few times: on a busy machine everything takes longer.

    Raises: what it raises, see `awaited`; it does not end in time → NeverEnded.
    """
    call = asyncio.ensure_future(awaited(answer))
    try:
        for _ in range(EXTENSIONS):
            before = progress()
            await asyncio.wait({call}, timeout=limit_s)
            if call.done():
                return call.result()
            if progress() == before:
                break
        late()
    finally:
        await _stopped(call)
    cause = None
    if call.done():
        try:
            call.result()
        except BaseException as error:  # noqa: BLE001 - tells where the call waited
            cause = error
    raise NeverEnded(f"did not finish within {limit_s:g} s") from cause


async def _stopped(call: asyncio.Future[Any]) -> None:
    """Cancel a call until it ends; one that catches every cancellation is given up."""
    for _ in range(CANCELLATIONS):
        if call.done():
            return
        call.cancel()
        await asyncio.wait({call}, timeout=CANCELLED_S)


def is_from_outside(error: BaseException) -> bool:
    """Return whether an exception cancels the scenario's own task or interrupts the run, and is not the environment's."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and bool(task.cancelling())
    return is_interrupt(error)


def is_interrupt(error: BaseException) -> bool:
    """Return whether an exception is Ctrl-C: the handler that asyncio installs for it raises from its own file."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return isinstance(error, KeyboardInterrupt) and bool(frames) and frames[-1].f_code.co_filename == runners.__file__


def first_error(error: BaseException) -> BaseException:
    """Return the first error inside of an exception group, which a TaskGroup raises, and the cause of `Ended`."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error.__cause__ if isinstance(error, Ended) and error.__cause__ is not None else error


def described(error: BaseException) -> str:
    """Return type and text of an error."""
    text = shorten(str(error))
    if not isinstance(error, NeverEnded):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if (note := noting.get()) is not None:
        note(text, error)
    return text
