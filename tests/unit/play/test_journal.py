"""The journal of a scenario: what belongs to it, and what rules read from its events."""

from __future__ import annotations

import asyncio
import contextvars
import threading

from pytest_hermes_env.play.faults import Faults
from pytest_hermes_env.play.journal import (
    Cleaned,
    Journal,
    LoopStarted,
    Place,
    current_faults,
    current_journal,
    recording,
)


def started(*messages: object) -> LoopStarted:
    """Return the start of a loop with these messages."""
    return LoopStarted(
        task_id="a", by_layer=False, tools=(), temperature=None, max_turns=None, place=Place(), messages=messages
    )


def test_the_innermost_journal_is_current() -> None:
    """A scenario inside of another writes into its own journal, and the outer one is current again."""
    outer, inner = Journal(), Journal()
    with recording(outer):
        with recording(inner):
            seen = [current_journal.get()]
        seen.append(current_journal.get())
    seen.append(current_journal.get())

    assert [found is expected for found, expected in zip(seen, (inner, outer, None), strict=True)] == [True, True, True]


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


def test_events_and_numbers_come_from_any_thread() -> None:
    """Nothing is lost or given twice."""
    journal = Journal()

    def work() -> None:
        for _ in range(100):
            journal.add(Cleaned(number=journal.next_number(), task_id=""))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(event.number for event in journal.events if isinstance(event, Cleaned)) == list(range(1, 401))


def test_prompts_are_read_from_the_messages() -> None:
    """The first message of each role counts; content that is no text is none."""
    event = started({"role": "user", "content": "one"}, {"role": "system", "content": "s"}, {"role": "user", "content": "two"})
    odd = started({"role": "user", "content": [{"type": "text"}]})

    assert (event.system_prompt, event.prompt, odd.system_prompt, odd.prompt) == ("s", "one", None, None)


def test_nothing_fails_outside_of_a_scenario() -> None:
    """Faults are those of the current journal."""
    faults = Faults(fault="loop_raises")
    with recording(Journal(faults=faults)):
        inside = current_faults()

    assert (inside is faults, current_faults().fault) == (True, "none")
