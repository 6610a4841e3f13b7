"""The seam at hermes' tool registry."""

import asyncio
import json
import threading
from typing import Any

import model_tools
import pytest
from tools.registry import registry

from pytest_hermes_env.errors import UnexpectedToolCall
from pytest_hermes_env.sandbox.seam import ToolCall, ToolSeam, Turns, offering


class Machine:
    """A sandbox that says its name, lets `todo` through, and refuses `refused`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def call(self, name: str, arguments: dict[str, Any]) -> str | None:
        if name == "refused":
            raise UnexpectedToolCall("nobody scripted this")
        return None if name == "todo" else json.dumps({"machine": self.name, **arguments})


class Machines:
    """One machine per rollout."""

    backend = "fake"

    def sandbox_of(self, task_id: str) -> Machine:
        return Machine(task_id)


def dispatch(name: str, task_id: str, **arguments: Any) -> Any:
    return registry.dispatch(name, arguments, task_id=task_id)


def test_the_sandbox_of_the_task_answers() -> None:
    """Each task is answered by its own sandbox."""
    with ToolSeam(Machines()):
        answers = [json.loads(dispatch("terminal", task, command="ls")) for task in ("a", "b")]

    assert answers == [{"machine": "a", "command": "ls"}, {"machine": "b", "command": "ls"}]


def test_every_call_is_in_the_journal() -> None:
    """A call is kept with its task, turn, arguments, result and duration, also when it was refused."""
    seam = ToolSeam(Machines())
    seam.turns.next("a")
    seam.turns.next("a")

    with seam:
        dispatch("terminal", "a", command="ls")
        seam.turns.end("a")
        with pytest.raises(UnexpectedToolCall):
            dispatch("refused", "a")

    first, second = seam.calls
    assert first == ToolCall(
        task_id="a",
        name="terminal",
        arguments={"command": "ls"},
        result='{"machine": "a", "command": "ls"}',
        seconds=first.seconds,
        turn=2,
    )
    assert (first.by_agent, second.by_agent) == (True, False)
    assert (second.name, str(second.result)) == ("refused", "nobody scripted this")


def test_lets_the_real_tool_answer() -> None:
    """Where the sandbox has no answer, hermes' own tool gives it."""
    import model_tools  # noqa: F401 - registers hermes' tools

    with ToolSeam(Machines()) as seam:
        answer = dispatch("todo", "a", todos=[])

    assert "error" in json.loads(answer) or "todos" in json.loads(answer)
    assert seam.calls[0].result == answer


def test_restores_itself() -> None:
    """Closing gives back what stood there, also with one seam inside the other and after an exception."""
    outer, inner = ToolSeam(Machines()), ToolSeam(Machines())

    with outer:
        with pytest.raises(RuntimeError), inner:
            raise RuntimeError
        dispatch("terminal", "a")

    assert (len(outer.calls), len(inner.calls)) == (1, 0)
    assert "dispatch" not in vars(registry)


def test_works_from_threads_and_the_event_loop() -> None:
    """Calls from pool threads and from the loop itself are all answered and noted."""

    async def run() -> None:
        dispatch("terminal", "loop")
        await asyncio.gather(*(asyncio.to_thread(dispatch, "terminal", f"thread-{n}") for n in range(20)))

    with ToolSeam(Machines()) as seam:
        asyncio.run(run())

    assert {call.task_id for call in seam.calls} == {"loop", *(f"thread-{n}" for n in range(20))}


def test_turns_are_counted_per_rollout() -> None:
    """Many threads counting many rollouts lose none."""
    turns = Turns()

    def count(task_id: str) -> None:
        for _ in range(1000):
            turns.next(task_id)

    threads = [threading.Thread(target=count, args=(task,)) for task in "aabb"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (turns.of("a"), turns.of("b"), turns.of("c")) == (2000, 2000, 0)


def test_tools_that_are_offered_already_are_not_computed_again() -> None:
    """hermes reads its configuration for it, and each of a contract run's environments offers the same tools."""
    names, withheld = ("web_search", "terminal"), ("kanban_show",)
    with offering(names, withheld=withheld):
        model_tools.get_tool_definitions(enabled_toolsets=["web", "terminal"], quiet_mode=True)
        memo = dict(model_tools._tool_defs_cache)
        with offering(names, withheld=withheld):
            inside = dict(model_tools._tool_defs_cache)
        after = dict(model_tools._tool_defs_cache)
        with offering((*names, "vision_analyze"), withheld=withheld):
            others = dict(model_tools._tool_defs_cache)

    assert memo
    assert (inside, after, others) == (memo, memo, {})


def test_a_seam_requires_a_sandbox_which_may_be_falsy() -> None:
    """A collection of no sandboxes is one, too."""

    class Empty(Machines):
        def __len__(self) -> int:
            return 0

    assert ToolSeam(empty := Empty()).sandbox is empty
