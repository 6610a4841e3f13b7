"""Mistakes that an environment's own code catches."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import threading
from typing import Any

import pytest

from pytest_hermes_env.play.blocking import watching
from pytest_hermes_env.play.watchers.caught_errors import noting_caught_errors, watched_in_thread

HERE = os.path.dirname(__file__)
ITEM = {"question": "2 + 2"}


def helper(one: int) -> int:
    return one


def caught(act: Any) -> None:
    with contextlib.suppress(Exception):
        act(ITEM)


def reads_an_attribute(item: Any) -> None:
    item.question.strip()


def misses_a_key(item: Any) -> None:
    item["answer"].strip()


def asks_for_a_name(item: Any) -> None:
    helper(undefined_name)  # type: ignore[name-defined]  # noqa: F821


def calls_wrongly(item: Any) -> None:
    helper()  # type: ignore[call-arg]


def awaits_nothing(item: Any) -> None:
    asyncio.run(_awaits())


def runs_a_loop_in_a_loop(item: Any) -> None:
    async def outer() -> None:
        inner = _awaits()
        try:
            asyncio.run(inner)
        finally:
            inner.close()

    asyncio.run(outer())


async def _awaits() -> None:
    await helper(1)  # type: ignore[misc]


def misspells_a_method(item: Any) -> None:
    item["question"].spilt()


def takes_the_item_for_text(item: Any) -> None:
    item.strip()


MISTAKES = [
    reads_an_attribute,
    misses_a_key,
    asks_for_a_name,
    calls_wrongly,
    awaits_nothing,
    runs_a_loop_in_a_loop,
    misspells_a_method,
    takes_the_item_for_text,
]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_noted_where_it_was_made(mistake):
    """With the place that caught it."""
    with noting_caught_errors(HERE, ITEM) as noted:
        caught(mistake)

    assert [mistake.caught_at.function for mistake in noted] == ["caught"]
    assert noted[0].place.path == __file__
    assert noted[0].place.function in {mistake.__name__, "_awaits", "outer"}
    assert sys.gettrace() is None


def nothing_there(item: Any) -> None:
    {}.get("content").strip()  # type: ignore[attr-defined]


def not_in_the_answer(item: Any) -> None:
    {"output": ""}["content"].strip()


def no_number(item: Any) -> None:
    int(None)  # type: ignore[call-overload]


def not_there(item: Any) -> None:
    open("/nonexistent")  # noqa: SIM115


def someone_elses(item: Any) -> None:
    os.fspath(item)


def answer_is_a_list(item: Any) -> None:
    json.loads("[4]").get("score")


def answer_is_a_number(item: Any) -> None:
    json.loads("4").get("score")


def number_has_no_keys(item: Any) -> None:
    json.loads("4")["score"]


HONEST = [
    nothing_there,
    not_in_the_answer,
    no_number,
    not_there,
    someone_elses,
    answer_is_a_list,
    answer_is_a_number,
    number_has_no_keys,
]


@pytest.mark.parametrize("honest", HONEST)
def test_what_an_answer_can_cause_is_no_mistake(honest):
    """A check of a file that is not there, or of an answer that is none, scores 0.0 in an honest way. It may be why gold is not paid."""
    with noting_caught_errors(HERE, ITEM) as noted:
        caught(honest)

    assert [one.is_mistake for one in noted] == [False]
    assert noted[0].place.function == honest.__name__


def test_calls_at_the_same_time_keep_apart():
    """The trace function ends with the last of them."""

    async def call(mistake: Any, turn: asyncio.Event, other: asyncio.Event) -> list[str]:
        with noting_caught_errors(HERE, ITEM) as noted:
            turn.set()
            await other.wait()
            caught(mistake)
        return [one.place.function for one in noted]

    async def main() -> list[list[str]]:
        one, two = asyncio.Event(), asyncio.Event()
        return await asyncio.gather(call(misses_a_key, one, two), call(calls_wrongly, two, one))

    assert asyncio.run(main()) == [["misses_a_key"], ["calls_wrongly"]]
    assert sys.gettrace() is None


def test_debugger_is_left_alone():
    """Its trace function stays, and nothing is noted."""

    def debugger(*_: Any) -> None:
        return None

    sys.settrace(debugger)
    try:
        with noting_caught_errors(HERE, ITEM) as noted:
            caught(misses_a_key)
        kept = sys.gettrace()
    finally:
        sys.settrace(None)

    assert (noted, kept) == ([], debugger)


def test_debugger_that_the_reward_starts_goes_on():
    """``breakpoint()`` sets a trace function of its own."""

    def debugger(*_: Any) -> None:
        return None

    with noting_caught_errors(HERE, ITEM):
        sys.settrace(debugger)
    kept = sys.gettrace()
    sys.settrace(None)

    assert kept is debugger


def test_a_reward_that_raises_much_is_not_followed_to_its_end():
    """What is kept is limited, and so is what tracing costs."""
    with noting_caught_errors(HERE, ITEM) as noted:
        for _ in range(50_000):
            with contextlib.suppress(AttributeError):
                helper_of_many(ITEM)

    assert 1 <= len(noted) <= 20
    assert sys.gettrace() is None


def helper_of_many(item: Any) -> None:
    item.question  # noqa: B018


LOCAL = threading.local()


async def reads_in_a_thread(item: Any) -> None:
    LOCAL.gold = item
    await asyncio.to_thread(lambda: LOCAL.gold)


async def waits_too_briefly(item: Any) -> None:
    await asyncio.wait_for(asyncio.sleep(30), timeout=0.001)


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (reads_in_a_thread, "AttributeError: '_thread._local' object has no attribute 'gold'"),
        (waits_too_briefly, "TimeoutError"),
    ],
)
def test_a_mistake_that_no_agent_can_cause_is_certain(act: Any, error: str) -> None:
    """Whoever catches it: it is noted in threads of the reward, too."""

    async def work() -> list[Any]:
        watched = watching(asyncio.get_running_loop(), lambda _: None)
        with watched, noting_caught_errors(HERE, ITEM) as noted, contextlib.suppress(AttributeError, TimeoutError):
            await act(ITEM)
        return noted

    (found,) = asyncio.run(work())

    assert (found.error, found.is_own) == (error, True)


def test_a_thread_is_watched_for_its_own_reward_only() -> None:
    """Outside of a reward nothing is traced."""
    assert watched_in_thread(print) is print
