"""The training items one after the other, until they repeat, and the prompt of each."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from typing import Any

from pytest_hermes_env.play.buffers import copied, picture
from pytest_hermes_env.play.raised import described, is_from_outside
from pytest_hermes_env.play.scenario import ItemSeen
from pytest_hermes_env.play.scenarios.family import family
from pytest_hermes_env.play.stage import Stage
from pytest_hermes_env.play.unavailable import ItemsEnd

MOST = 300
"""The most items that are taken."""
MOST_S = 2.0
"""Seconds after which no more items are taken."""
REPEATED_S = 0.5
"""Seconds for which get_next_item is called on, up to `MOST` times, after its items came again: it may count its passes."""
PAUSES = 4
"""How often get_next_item is called again after None, the last time after a group was collected."""
AFTER_REPEAT = 3
"""The number of items that are taken after the first one has come again."""


@family(
    {"items": "get_next_item is called until its items repeat, and format_prompt is called for each"},
    needs="nothing",
)
async def training_items(stage: Stage) -> None:
    """Set up and take items."""
    seen: list[ItemSeen] = []
    held_out: list[ItemSeen] = []
    ended: dict[str, Any] = {}

    def end(reason: ItemsEnd, count: int | None = None) -> None:
        if not ended:  # the first reason counts: a few items are taken after the first one came again
            ended.update(items_end=reason, note=reason.value.format(len(seen) if count is None else count))

    async def take() -> None:
        held_out.extend(await _held_out(stage))
        left, first = MOST, ""
        begun = time.monotonic()
        while left:
            try:
                item = await stage.env.get_next_item()
            except NotImplementedError:
                if seen:
                    raise
                end(ItemsEnd.STUB)
                return
            if item is None and (item := await _after_a_pause(stage, seen)) is None:
                end(ItemsEnd.NONE)
                return
            seen.append(_seen(stage.env, item))
            first = first or seen[0].key
            left -= 1
            if len(seen) > 1 and seen[-1].key == first and left > AFTER_REPEAT:
                end(ItemsEnd.REPEATED, len(seen) - 1)
                left = AFTER_REPEAT
            if time.monotonic() - begun > MOST_S:
                end(ItemsEnd.TIME)
                return
        end(ItemsEnd.LIMIT)

    async def take_more() -> None:
        """Call on without a record: if items end after some passes, that replaces the end that was noted."""
        begun, calls = time.monotonic(), len(seen)
        while ended["items_end"] is ItemsEnd.REPEATED and calls < MOST and time.monotonic() - begun < REPEATED_S:
            if await stage.env.get_next_item() is None:
                if await _after_a_pause(stage, seen) is None:
                    ended.update(items_end=ItemsEnd.NONE, note=ItemsEnd.NONE.value.format(calls))
                return
            calls += 1

    async def take_all() -> None:
        await take()
        await take_more()

    if await stage.set_up("setup of the items"):
        await stage.play("items", take_all, more=lambda _: {"items": tuple(seen), "held_out": tuple(held_out), **ended})


async def _after_a_pause(stage: Stage, seen: list[ItemSeen]) -> Any:
    """Return the item that comes after None, or None where it is an end: also when a rollout of an earlier item has ended."""
    for attempt in range(PAUSES):
        if attempt == PAUSES - 1 and seen and not stage.nothing_to_train:
            with contextlib.suppress(Exception):  # other scenarios report it
                await stage.env.collect_trajectories(copied(seen[0].value))
        await asyncio.sleep(0)
        if (item := await stage.env.get_next_item()) is not None:
            return item
    return None


async def _held_out(stage: Stage) -> list[ItemSeen]:
    """Return the items of get_eval_items; an error of it shows in the evaluation."""
    if not hasattr(stage.env, "get_eval_items"):
        return []
    try:
        items = stage.env.get_eval_items()
        items = await items if inspect.isawaitable(items) else items
        return [_seen(stage.env, item) for item in list(items)[:MOST]]
    except BaseException as error:
        if is_from_outside(error):
            raise
        return []


def _seen(env: Any, item: Any) -> ItemSeen:
    kept = copied(item)
    key = repr(picture(item))
    prompt, error = None, ""
    try:
        prompt = env.format_prompt(item)
    except BaseException as raised:
        if is_from_outside(raised):
            raise
        error = described(raised)
    return ItemSeen(
        value=kept,
        key=key,
        prompt=prompt,
        error=error,
        is_changed=repr(picture(item)) != key,
    )
