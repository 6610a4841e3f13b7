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
from pytest_hermes_env.play.faults import Fault, Faults, InjectedFault
from pytest_hermes_env.play.journal import (
    Cleaned,
    ContextOpened,
    Journal,
    LoopEnded,
    LoopStarted,
    Place,
    recording,
)
from pytest_hermes_env.play.watchers.layer import watching_layer

from .bare import HermesAgentLoop, ToolContext, bare_layer
from .small_env import line_of


def played(act: Any, fault: Fault = "none") -> Journal:
    """Run a coroutine function with a watched layer, and return its journal."""
    journal = Journal(faults=Faults(fault=fault))
    with watching_layer(bare_layer()), recording(journal):
        asyncio.run(act())
    return journal


async def use_contexts() -> None:
    """Open two contexts of one task and clean one of them twice."""
    first, _second = ToolContext("task"), ToolContext("task")
    first.cleanup()
    first.cleanup()


def test_contexts_are_recorded_with_their_number_and_line() -> None:
    """Two contexts of one task are told apart, and each cleanup is written down."""
    opened = [event for event in played(use_contexts).events if isinstance(event, ContextOpened)]
    cleaned = [event for event in played(use_contexts).events if isinstance(event, Cleaned)]

    assert [(event.number, event.task_id, event.by_layer) for event in opened] == [(1, "task", False), (2, "task", False)]
    assert (opened[0].place.path, opened[0].place.line) == (__file__, line_of(use_contexts, "first, _second"))
    assert cleaned == [Cleaned(number=1, task_id="task")] * 2


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


MESSAGES: list[Any] = [{"role": "user", "content": "hello"}]


async def run_a_loop() -> None:
    """Run one loop, and change its messages."""
    schemas = [{"function": {"name": "terminal"}}]
    loop = HermesAgentLoop(task_id="task", temperature=0.5, max_turns=3, tool_schemas=schemas, extra_body={"a": [1]})
    messages = [dict(MESSAGES[0])]
    await loop.run(messages)
    messages[0]["content"] = "changed"


def test_a_loop_is_recorded_from_start_to_end() -> None:
    """With its settings, a copy of its messages, its line, and its turns."""
    started, ended = played(run_a_loop).events

    assert isinstance(started, LoopStarted)
    assert (started.task_id, started.tools, started.temperature, started.max_turns, started.max_tokens) == (
        "task",
        ("terminal",),
        0.5,
        3,
        None,
    )
    assert (started.extra_body, started.messages, started.by_layer) == ({"a": [1]}, tuple(MESSAGES), False)
    assert started.place.line == line_of(run_a_loop, "loop.run")
    assert ended == LoopEnded(task_id="task", turns_used=1, error="")


def test_a_loop_that_fails_is_recorded_with_its_error() -> None:
    """The scenario's fault comes after the agent's work."""
    with pytest.raises(InjectedFault):
        played(run_a_loop, "loop_raises")

    journal = Journal(faults=Faults(fault="loop_raises"))
    with watching_layer(bare_layer()), recording(journal), pytest.raises(InjectedFault):
        asyncio.run(run_a_loop())
    assert journal.events[-1] == LoopEnded(
        task_id="task", turns_used=1, error="InjectedFault: the agent loop failed, as this scenario requires"
    )
