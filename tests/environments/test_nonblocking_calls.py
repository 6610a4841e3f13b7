"""Synchronous tool calls inside a coroutine that do not stop the event loop."""

from __future__ import annotations

import asyncio
import contextvars

import pytest

from environments.sandbox.nonblocking_calls import bridged, is_bridged, wait_for

place = contextvars.ContextVar("place", default="nowhere")


def test_other_tasks_go_on_while_a_synchronous_call_waits():
    """The call waits for an event that another task of the same loop sets: without a bridge this hangs for ever."""
    events: list[str] = []

    async def scenario() -> None:
        signal = asyncio.Event()

        @bridged
        async def reward() -> None:
            events.append("call")
            wait_for(signal.wait())
            events.append("back")

        async def other() -> None:
            events.append("other")
            signal.set()

        await asyncio.gather(reward(), other())

    asyncio.run(scenario())

    assert events == ["call", "other", "back"]


def test_awaiting_and_calling_mix():
    """A judge is awaited and the sandbox called, in any order, many times."""

    @bridged
    async def reward() -> list[int]:
        found = []
        for number in range(0, 6, 2):
            found.append(await asyncio.sleep(0, number))
            found.append(wait_for(asyncio.sleep(0, number + 1)))
        return found

    assert asyncio.run(reward()) == [0, 1, 2, 3, 4, 5]


def test_exceptions_pass_both_ways():
    """What the awaited thing raises is raised at the call; what the coroutine raises is raised in the task."""

    async def fails() -> None:
        raise LookupError("inner")

    @bridged
    async def reward() -> None:
        try:
            wait_for(fails())
        except LookupError as error:
            raise ValueError(f"outer of {error}") from error

    with pytest.raises(ValueError, match="outer of inner"):
        asyncio.run(reward())


@pytest.mark.parametrize("way", ["call", "await"])
def test_cancellation_reaches_the_coroutine(way):
    """A cancelled reward sees CancelledError where it waits, runs its finally, and is cancelled."""
    seen: list[str] = []

    @bridged
    async def reward() -> None:
        try:
            await asyncio.Event().wait() if way == "await" else wait_for(asyncio.Event().wait())
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        finally:
            seen.append("finally")

    async def scenario() -> bool:
        task = asyncio.ensure_future(reward())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return task.cancelled()

    assert asyncio.run(scenario())
    assert seen == ["cancelled", "finally"]


def test_context_variables_are_shared_with_the_task():
    """The coroutine sees what its task set, and its task sees what the coroutine set."""

    async def scenario() -> tuple[str, str]:
        @bridged
        async def reward() -> str:
            found = place.get()
            wait_for(asyncio.sleep(0))
            place.set("inside")
            return found

        place.set("outside")
        return await reward(), place.get()

    assert asyncio.run(scenario()) == ("outside", "inside")


def test_concurrent_rewards_keep_their_own_context():
    """Eight rewards at once never see each other's variables."""

    @bridged
    async def reward(number: int) -> bool:
        place.set(str(number))
        for _ in range(5):
            wait_for(asyncio.sleep(0))
            if place.get() != str(number):
                return False
        return True

    async def scenario() -> list[bool]:
        return await asyncio.gather(*(reward(number) for number in range(8)))

    assert asyncio.run(scenario()) == [True] * 8


def test_bridged_in_bridged_needs_no_second_bridge():
    """super().compute_reward(...) runs in the bridge that is there."""

    @bridged
    async def inner() -> str:
        return wait_for(asyncio.sleep(0, "inner"))

    @bridged
    async def outer() -> str:
        return f"{await inner()} of outer"

    assert asyncio.run(outer()) == "inner of outer"


def test_bridging_twice_or_a_plain_function_changes_nothing():
    """Only a coroutine function is bridged, once; its name stays."""

    def plain() -> None: ...

    async def reward() -> None: ...

    once = bridged(reward)

    assert (bridged(plain), bridged(once), once.__name__) == (plain, once, "reward")


def test_waiting_without_a_bridge_is_an_error():
    """Outside there is nobody who could wait."""
    assert not is_bridged()
    with pytest.raises(RuntimeError, match="needs a bridged coroutine around it"):
        wait_for(None)  # type: ignore[arg-type]
