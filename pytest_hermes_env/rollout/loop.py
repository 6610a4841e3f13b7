"""The event loop that scenarios run in: an environment can neither stop it nor end it with SystemExit.

It remembers which task was begun in which scenario, so that what a scenario leaves running can be waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from contextvars import Context
from typing import Any

from pytest_hermes_env.rollout.journal import current_journal

__all__ = ["ScenarioLoop"]


class ScenarioLoop(asyncio.SelectorEventLoop):
    """An event loop for code that cannot be trusted to leave it alone."""

    def __init__(self) -> None:
        super().__init__()
        self._is_guarded = False
        self.set_task_factory(_task_of_its_journal)  # type: ignore[arg-type]  # typeshed knows no further arguments

    async def guarded(self, work: Awaitable[None]) -> None:
        """Wait for ``work``; meanwhile nothing stops the loop."""
        self._is_guarded = True
        try:
            await work
        finally:
            self._is_guarded = False

    def stop(self) -> None:
        """Stop, but not while guarded."""
        if not self._is_guarded:
            super().stop()

    def _run_once(self) -> None:
        """Go on after a task that raised SystemExit: the exception is in the task, for whoever waits for it."""
        try:
            super()._run_once()  # type: ignore[misc]
        except SystemExit:
            if not self._is_guarded:
                raise


def _task_of_its_journal(
    loop: asyncio.AbstractEventLoop, coroutine: Generator[Any, None, Any], *, context: Context | None = None, **rest: Any
) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, context=context, **rest)
    journal = current_journal.get() if context is None else context.get(current_journal)
    if journal is not None:
        journal.tasks.add(task)
    return task
