"""Counts the turns of running loops, so that the tool seam can note in which turn a call was made.

hermes' registry gets the task id of a call and not its turn. The loop's requests to its server show it: one per turn.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from pytest_hermes_env.layer import Layer
from pytest_hermes_env.patches import intercept, replace
from pytest_hermes_env.sandbox.seam import Turns


class _CountingServer:
    """A loop's server that counts its chat completions; everything else is the server's own."""

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

    async def run(real: Any, loop: Any, *args: Any, **kwargs: Any) -> Any:
        task_id = str(getattr(loop, "task_id", ""))
        try:
            with replace("HermesAgentLoop.server", _CountingServer(loop.server, task_id, turns), owner=loop):
                return await real(loop, *args, **kwargs)
        finally:
            turns.end(task_id)

    with intercept("HermesAgentLoop.run", run, owner=layer.loop_class):
        yield
