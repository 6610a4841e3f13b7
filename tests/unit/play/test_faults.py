"""Steps that fail, wait or hang where a scenario asks for it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from pytest_hermes_env.play.faults import Faults


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        (Faults(fault="reward_raises"), [True, True, True]),
        (Faults(fault="reward_raises", most=1), [True, False, False]),
        (Faults(fault="loop_raises"), [False, False, False]),
    ],
    ids=["always", "once", "another step"],
)
def test_a_step_fails_as_often_as_it_should(faults: Faults, expected: list[bool]) -> None:
    """The number of failures is counted down, for that step only."""
    assert [faults.fails("reward_raises") for _ in range(3)] == expected


def test_the_last_expected_reward_releases_all() -> None:
    """Rewards wait for each other, so that they overlap."""

    async def main() -> tuple[list[int], int]:
        faults = Faults(fault="reward_waits", expected=3)
        order: list[int] = []

        async def reward(number: int) -> None:
            await faults.wait_in_reward()
            order.append(number)

        tasks = [asyncio.ensure_future(reward(number)) for number in range(2)]
        await faults.reached.wait()
        before = len(order)
        await asyncio.gather(*tasks, reward(2))
        return sorted(order), before

    assert asyncio.run(main()) == ([0, 1, 2], 0)


def test_a_waiting_reward_is_released_by_the_scenario() -> None:
    """Without an expected number nobody else releases it."""

    async def main() -> tuple[bool, bool]:
        faults = Faults(fault="reward_waits")
        waiting = asyncio.ensure_future(faults.wait_in_reward())
        await faults.reached.wait()
        before = waiting.done()
        faults.released.set()
        await waiting
        return before, waiting.done()

    assert asyncio.run(main()) == (False, True)


def test_a_tool_hangs_in_a_thread_until_it_is_released() -> None:
    """The scenario learns that the tool was reached, and lets it go."""

    async def main() -> tuple[bool, bool]:
        faults = Faults(fault="tool_hangs", loop=asyncio.get_running_loop())
        thread = threading.Thread(target=faults.hang_in_thread)
        thread.start()
        await faults.reached.wait()
        before = thread.is_alive()
        faults.tool_released.set()
        await asyncio.to_thread(thread.join)
        return before, thread.is_alive()

    assert asyncio.run(main()) == (True, False)


def test_a_tool_in_the_loops_own_thread_does_not_hang() -> None:
    """Nothing could release it."""

    async def main() -> bool:
        faults = Faults(fault="tool_hangs")
        faults.hang_in_thread()
        return faults.reached.is_set()

    assert asyncio.run(main()) is False
