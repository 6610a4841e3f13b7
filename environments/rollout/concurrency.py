"""Runs rollouts concurrently: a group as a whole, a step that finishes despite cancellation, and a progress bar."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Coroutine, Iterator
from typing import Any

from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm


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


class ProgressBar(tqdm):
    """A bar that starts no thread, which would outlive it."""

    monitor_interval = 0


@contextlib.contextmanager
def progress_bar(name: str, *, unit: str, total: int) -> Iterator[ProgressBar]:
    """Show a bar for the work in this block, below what is logged meanwhile; the caller advances it with ``update``."""
    with (
        ProgressBar(total=total, desc=name, unit=unit, file=sys.stderr, disable=None, dynamic_ncols=True) as bar,
        contextlib.nullcontext() if bar.disable else logging_redirect_tqdm(tqdm_class=ProgressBar),
    ):
        yield bar
