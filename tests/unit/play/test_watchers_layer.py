"""Contexts and loops of a layer are recorded, and a loop fails or hangs where the scenario asks for it."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from environments import tool_context
from environments.hermes_base_env import HermesAgentBaseEnv
from environments.sandbox.isolation import close_sandbox, open_sandbox
from pytest_hermes_env.layer import layer_of
from pytest_hermes_env.play.faults import Faults
from pytest_hermes_env.play.journal import (
    Cleaned,
    Journal,
    Place,
    recording,
)
from pytest_hermes_env.play.watchers.layer import watching_layer

from .small_env import line_of


def test_a_cleanup_that_leaves_the_sandbox_open_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the place of the function that somebody put in its stead; the real one closes what it is asked to."""

    def forgets(context: Any) -> None:
        """Leave it to the operating system."""

    async def clean() -> None:
        context = tool_context.ToolContext(uuid.uuid4().hex)
        open_sandbox(context.task_id)
        context.cleanup()
        close_sandbox(context.task_id)

    def told() -> list[Place | None]:
        journal = Journal(faults=Faults())
        with watching_layer(layer_of(HermesAgentBaseEnv)), recording(journal):
            asyncio.run(clean())
        return [event.left_open_by for event in journal.events if isinstance(event, Cleaned)]

    assert told() == [None]
    monkeypatch.setattr(tool_context.ToolContext, "cleanup", forgets)
    assert told() == [Place(path=__file__, line=line_of(forgets, "def forgets"))]
