"""Several groups at the same time: their rollouts overlap, and no reward begins before all agents have ended."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable
from typing import Any

from pytest_hermes_env.play.buffers import picture
from pytest_hermes_env.play.canaries import Canaries, SharedItems
from pytest_hermes_env.play.faults import Faults
from pytest_hermes_env.play.scenarios.family import family
from pytest_hermes_env.play.stage import Stage

GROUPS = 3
"""Groups at the same time."""
PATIENCE_S = 2.0
"""Seconds without any progress after which rewards wait no longer: rollouts that fail or run one after the other never arrive."""


async def wait_while_working(stage: Stage, tasks: Iterable[asyncio.Task[Any]], steps: Callable[[], int]) -> bool:
    """Wait for tasks as long as the model gets requests or ``steps`` rises, and return whether they have ended."""
    pending, seen = set(tasks), (-1, -1)
    while pending and seen != (now := (len(stage.mock.journal), steps())):
        seen = now
        _, pending = await asyncio.wait(pending, timeout=min(PATIENCE_S, stage.timeout_s / 2))
    return not pending


@family({"concurrent_groups": "three groups are collected at once; every rollout's model uses a unique word"})
async def concurrent_groups(stage: Stage) -> None:
    """Collect several groups at once, of different items if there are any."""
    env = stage.env
    canaries = Canaries()
    items: list[Any] = [stage.item]
    shared: list[SharedItems] = []
    asked = len(stage.mock.journal)
    faults = Faults(fault="reward_waits", look=functools.partial(canaries.look, type(env)))

    def look_before() -> None:
        if faults.waiting == faults.expected:
            shared[0].look()

    faults.look_before = look_before

    async def at_once() -> None:
        for _ in range(GROUPS - 1):
            item = await env.get_next_item()
            items.append(stage.item if item is None else item)
        shared.append(SharedItems(env, items))
        faults.expected = GROUPS * int(getattr(env.config, "group_size", 1))
        groups = [asyncio.ensure_future(env.collect_trajectories(item)) for item in items]
        try:
            await wait_while_working(stage, groups, lambda: faults.waiting)
        finally:
            faults.released.set()
        await asyncio.gather(*groups)

    def more(journal: Any) -> dict[str, Any]:
        requests = [exchange.request for exchange in stage.mock.journal[asked:]]
        different = len({repr(picture(item)) for item in items})
        return {
            "canaries": canaries.given(journal),
            "sightings": (*canaries.sightings(env, journal, requests), *(seen for one in shared for seen in one.sightings)),
            "note": f"{GROUPS} groups of {different} different items, {faults.waiting} of {faults.expected} rewards at once",
        }

    await stage.play("concurrent_groups", at_once, policy=canaries.policy(), faults=faults, more=more)
