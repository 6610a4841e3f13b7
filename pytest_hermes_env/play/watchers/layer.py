"""Records every ToolContext and every agent loop of the layer under test; makes a loop fail or hang where the scenario asks for it.

Counts the turns of running loops, too, for the tool seam: hermes' registry gets the task id of a call and not its turn, but the loop's
requests to its server show it, one per turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from pytest_hermes_env.layer import Layer
from pytest_hermes_env.patches import intercept, replace
from pytest_hermes_env.play.buffers import copied
from pytest_hermes_env.play.faults import InjectedFault
from pytest_hermes_env.play.journal import (
    Cleaned,
    ContextOpened,
    Journal,
    LoopEnded,
    LoopStarted,
    Place,
    current_faults,
    current_journal,
    current_rollout,
    last_rollout,
    note,
)
from pytest_hermes_env.play.watchers.call_site import called_by_layer, outside_place
from pytest_hermes_env.sandbox.seam import Turns


@contextlib.contextmanager
def watching_layer(layer: Layer, begun: Callable[[str], object] = lambda _: None) -> Iterator[None]:
    """Record every ToolContext and every loop of the layer while the context lasts. ``begun`` is called with the task id of each."""

    def opened(real: Any, context: Any, task_id: str, *args: Any, **kwargs: Any) -> None:
        real(context, task_id, *args, **kwargs)
        journal = current_journal.get()
        if journal is not None:
            begun(str(task_id))
            context._hermes_env_number = number = journal.next_number()  # noqa: SLF001 - the kit's own mark
            by_layer, place = called_by_layer(layer), outside_place(layer)
            journal.add(ContextOpened(number=number, task_id=str(task_id), by_layer=by_layer, place=place))

    async def run(real: Any, loop: Any, *args: Any, **kwargs: Any) -> Any:
        journal = current_journal.get()
        if journal is None:
            return await real(loop, *args, **kwargs)
        messages = kwargs.get("messages", args[0] if args else ())
        begun(str(getattr(loop, "task_id", "")))
        journal.add(_started(loop, messages, layer))
        with _recorded_end(journal, str(getattr(loop, "task_id", ""))) as results:
            results.append(await real(loop, *args, **kwargs))
            await _after_the_loop()
        return results[0]

    with (
        intercept("ToolContext.__init__", opened, owner=layer.tool_context.ToolContext),
        intercept("ToolContext.cleanup", _cleaned, owner=layer.tool_context.ToolContext),
        intercept("HermesAgentLoop.run", run, owner=layer.agent_loop.HermesAgentLoop),
    ):
        yield


def _cleaned(real: Any, context: Any, *args: Any, **kwargs: Any) -> Any:
    number, task_id = getattr(context, "_hermes_env_number", 0), str(context.task_id)
    in_reward = current_rollout.get() == (task_id, "reward")
    try:
        return real(context, *args, **kwargs)
    finally:
        note(Cleaned(number=number, task_id=task_id, in_reward=in_reward, left_open_by=_left_open_by(context, real)))


def _left_open_by(context: Any, cleanup: Any) -> Place | None:
    """Return where the ``cleanup`` that left the sandbox of ``context`` open is defined; None where it was released, or nobody knows."""
    package = type(context).__module__.rpartition(".")[0]
    is_open = getattr(sys.modules.get(f"{package}.sandbox.isolation"), "is_open", None)  # a former layer has none
    code = getattr(cleanup, "__code__", None)
    if is_open is None or code is None or not is_open(str(context.task_id)):
        return None
    return Place(path=code.co_filename, line=code.co_firstlineno)


def _started(loop: Any, messages: Any, layer: Layer) -> LoopStarted:
    return LoopStarted(
        task_id=str(getattr(loop, "task_id", "")),
        by_layer=called_by_layer(layer),
        tools=tuple(str(schema["function"]["name"]) for schema in getattr(loop, "tool_schemas", None) or ()),
        temperature=getattr(loop, "temperature", None),
        max_turns=getattr(loop, "max_turns", None),
        place=outside_place(layer),
        max_tokens=getattr(loop, "max_tokens", None),
        extra_body=copied(getattr(loop, "extra_body", None)),
        messages=tuple(copied(list(messages))) if isinstance(messages, list | tuple) else (),
    )


@contextlib.contextmanager
def _recorded_end(journal: Journal, task_id: str) -> Iterator[list[Any]]:
    """Record how a loop ended; its result is the first element of the list."""
    error = ""
    results: list[Any] = []
    token = current_rollout.set((task_id, "loop"))
    last_rollout.set(task_id)
    try:
        yield results
    except BaseException as raised:
        error = f"{type(raised).__name__}: {raised}"
        raise
    finally:
        current_rollout.reset(token)
        turns = getattr(results[0], "turns_used", 0) if results else 0
        end = getattr(results[0], "end", None) if results else None
        journal.add(LoopEnded(task_id=task_id, turns_used=turns, error=error, end=str(end) if isinstance(end, str) else ""))


async def _after_the_loop() -> None:
    faults = current_faults()
    if faults.fails("loop_raises"):
        raise InjectedFault("the agent loop failed, as this scenario requires")
    if faults.fault == "loop_hangs":
        faults.reached.set()
        await asyncio.Event().wait()


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

    with intercept("HermesAgentLoop.run", run, owner=layer.agent_loop.HermesAgentLoop):
        yield
