"""Helpers for concurrent coroutines: run a group as a whole, and finish a step despite cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def all_or_none(coroutines: list[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Run all; when one raises, cancel and await the others, then re-raise the first error."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await to_the_end(asyncio.gather(*tasks, return_exceptions=True))
        raise


async def to_the_end(awaitable: Any) -> None:
    """Await something that must finish even if the awaiting task is cancelled meanwhile; then re-raise the cancellation."""
    task = asyncio.ensure_future(awaitable)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
