"""setup() and the training items that it prepares: until they repeat, with other random numbers, and without a network."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import random
import socket
import sys
from typing import Any

from pytest_hermes_env.atropos.dataset_hub import hub_offline_without_caches
from pytest_hermes_env.live.network_guard import NetworkGuard
from pytest_hermes_env.play.buffers import copied, picture
from pytest_hermes_env.play.raised import described, is_from_outside
from pytest_hermes_env.play.scenario import ItemSeen, ItemsEnd
from pytest_hermes_env.play.scenarios.family import family
from pytest_hermes_env.play.stage import Stage

MOST = 300
"""The most items that are taken."""
PAUSES = 4
"""How often get_next_item is called again after None, the last time after a group was collected."""
AFTER_REPEAT = 3
"""The number of items that are taken after the first one has come again."""
SEED = 20_260_117
"""The seed of the shared generators: any state other than the one at the first setup."""
MOST_AGAIN = 40
"""The most items that are taken after the second set-up."""


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
            seen.append(seen_item(stage.env, item))
            first = first or seen[0].key
            left -= 1
            if len(seen) > 1 and seen[-1].key == first and left > AFTER_REPEAT:
                end(ItemsEnd.REPEATED, len(seen) - 1)
                left = AFTER_REPEAT
            stage.step()
        end(ItemsEnd.LIMIT)

    async def take_more() -> None:
        """Call on without a record, up to `MOST` times: if items end after some passes, that replaces the end that was noted."""
        calls = len(seen)
        while ended["items_end"] is ItemsEnd.REPEATED and calls < MOST:
            stage.step()
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
        return [seen_item(stage.env, item) for item in list(items)[:MOST]]
    except BaseException as error:
        if is_from_outside(error):
            raise
        return []


def seen_item(env: Any, item: Any) -> ItemSeen:
    """Return an item as it is compared, with its prompt."""
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


@family(
    {"setup_again": "setup() is called on a second instance, and its items are taken, with other random numbers"},
    needs="nothing",
    is_alone=True,
)
async def second_setup(stage: Stage) -> None:
    """Set up again and take items."""
    seen: list[ItemSeen] = []

    async def take() -> None:
        _reseed()
        await stage.env.setup()
        while len(seen) < MOST_AGAIN and (item := await stage.next_item()) is not None:
            seen.append(seen_item(stage.env, item))

    if stage.may_begin():
        await stage.play("setup_again", take, more=lambda _: {"items": tuple(seen)})


def _reseed() -> None:
    """Reseed the generators of `random`, and of numpy if it is loaded."""
    random.seed(SEED)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(SEED)


class _NoNetwork(NetworkGuard):
    """Raises the errors of a machine without a network."""

    def _error(self, host: str, what: str) -> OSError:
        text = f"no network in this scenario: {host} was requested"
        return socket.gaierror(socket.EAI_NONAME, text) if what.startswith("get") else ConnectionError(text)


@family(
    {
        "setup_offline": "setup() is called, and an item is taken, while no other machine can be reached and no dataset is cached"
    },
    needs="nothing",
    is_alone=True,
)
async def offline_setup(stage: Stage) -> None:
    """Set up without a network, and take an item."""
    if not stage.may_begin():
        return
    with _NoNetwork(test="") as network, hub_offline_without_caches():
        await stage.play(
            "setup_offline",
            stage.take_first_item,
            more=lambda _: {"note": f"requested {', '.join(network.hosts)}" if network.hosts else ""},
        )
