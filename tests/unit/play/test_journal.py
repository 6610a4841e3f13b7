"""The journal of a scenario: what belongs to it, and what rules read from its events."""

from __future__ import annotations

import asyncio
import contextvars
import threading

from pytest_hermes_env.play.journal import (
    Journal,
    LoopStarted,
    Place,
    current_journal,
    recording,
)


def started(*messages: object) -> LoopStarted:
    """Return the start of a loop with these messages."""
    return LoopStarted(
        task_id="a", by_layer=False, tools=(), temperature=None, max_turns=None, place=Place(), messages=messages
    )


def test_tasks_and_threads_of_a_scenario_share_its_journal() -> None:
    """A task that outlives the context, and a thread with its context, still write into it."""

    async def main() -> list[Journal | None]:
        seen: list[Journal | None] = []
        began = asyncio.Event()

        async def later() -> None:
            await began.wait()
            seen.append(current_journal.get())

        with recording() as journal:
            task = asyncio.ensure_future(later())
            context = contextvars.copy_context()
        began.set()
        await task
        thread = threading.Thread(target=lambda: context.run(lambda: seen.append(current_journal.get())))
        thread.start()
        thread.join()
        return [found if found is not journal else None for found in seen]

    assert asyncio.run(main()) == [None, None]


def test_prompts_are_read_from_the_messages() -> None:
    """The first message of each role counts; content that is no text is none."""
    event = started({"role": "user", "content": "one"}, {"role": "system", "content": "s"}, {"role": "user", "content": "two"})
    odd = started({"role": "user", "content": [{"type": "text"}]})

    assert (event.system_prompt, event.prompt, odd.system_prompt, odd.prompt) == ("s", "one", None, None)
