"""Counts the turns of running loops, so that the tool seam can write down in which turn a call was made.

The registry is told the task of a call and not its turn. The loop's requests to its server tell: one per turn.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

from pytest_hermes_env.layer import Layer
from pytest_hermes_env.sandbox.seam import Turns

__all__ = ["counting_turns"]


class _CountingServer:
    """A loop's server, which counts what it is asked; everything else is the server's own."""

    def __init__(self, server: Any, task_id: str, turns: Turns) -> None:
        self._server = server
        self._task_id = task_id
        self._turns = turns

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    async def chat_completion(self, *args: Any, **kwargs: Any) -> Any:
        self._turns.next(self._task_id)
        return await self._server.chat_completion(*args, **kwargs)


@contextlib.contextmanager
def counting_turns(layer: Layer, turns: Turns) -> Iterator[None]:
    """Count the turns of every loop of the layer that begins while the context lasts."""
    loop_class: Any = layer.loop_class
    real_run = loop_class.run

    @functools.wraps(real_run)
    async def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        server, task_id = self.server, str(getattr(self, "task_id", ""))
        self.server = _CountingServer(server, task_id, turns)
        try:
            return await real_run(self, *args, **kwargs)
        finally:
            turns.end(task_id)
            self.server = server

    loop_class.run = run
    try:
        yield
    finally:
        loop_class.run = real_run
