"""The turn of a rollout's loop is known while it runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pytest_hermes_env.play.watchers.turns import counting_turns
from pytest_hermes_env.sandbox.seam import Turns

from .bare import HermesAgentLoop, bare_layer


class Server:
    """Notes the turn at each request; fails at the second one."""

    model = "mock"

    def __init__(self, turns: Turns) -> None:
        self.turns, self.seen = turns, []

    async def chat_completion(self, **_: Any) -> str:
        """Answer once."""
        self.seen.append(self.turns.of("task"))
        if len(self.seen) > 1:
            raise RuntimeError("out of memory")
        return "answer"


class Loop(HermesAgentLoop):
    """Asks twice."""

    async def run(self, messages: Any) -> Any:
        """Ask, look at the server, and ask again."""
        await self.server.chat_completion(messages=messages)
        self.model = self.server.model
        await super().run(messages)


def test_each_request_is_a_turn() -> None:
    """From 1 on; whatever way the loop ends, it has no turn any more and its server is its own."""
    turns = Turns()
    server = Server(turns)
    loop = Loop(server, "task")
    layer = bare_layer()
    vars(layer.agent_loop)["HermesAgentLoop"] = Loop
    with counting_turns(layer, turns), pytest.raises(RuntimeError, match="out of memory"):
        asyncio.run(loop.run([]))

    assert (server.seen, turns.of("task"), loop.server is server, loop.model) == ([1, 2], 0, True, "mock")
