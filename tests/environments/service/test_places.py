"""Places for rollouts, clients that go away, and a service that shuts down."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from environments.service.app import build_app

pytestmark = pytest.mark.hermes_allow_leftovers


class Held:
    """The reward waits until it is allowed; what was started and released is known."""

    async def setup(self) -> None:
        await super().setup()
        self.started = asyncio.Semaphore(0)
        self.go = asyncio.Event()

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        self.started.release()
        await self.go.wait()
        return 1.0


def test_rollouts_wait_for_a_place_and_too_many_are_refused(served, error_of):
    async def test(here: Any, _server: Any) -> Any:
        env = here.service.env
        first = asyncio.create_task(here.rollout())
        await env.started.acquire()
        second = asyncio.create_task(here.rollout())
        while here.service.line.waiting != 1:
            await asyncio.sleep(0)
        third = await here.rollout()
        health = (await here.client.get("/health")).json()
        env.go.set()
        return error_of(third), third.headers["retry-after"], health, [(await one).status_code for one in (first, second)]

    refused, retry_after, health, statuses = served(test, Held, places=1, queue=1)

    assert (refused, retry_after) == ((429, "queue_full"), "1")
    assert (health["running"], health["waiting"]) == (1, 1)
    assert statuses == [200, 200]


def test_a_crowd_is_served_or_told_to_wait(served):
    """Nobody gets another answer, and all places are free again."""

    async def test(here: Any, _server: Any) -> Any:
        answers = await asyncio.gather(*(here.rollout() for _ in range(90)))
        told = {(answer.status_code, answer.headers.get("retry-after")) for answer in answers}
        served_now = [answer.status_code for answer in answers].count(200)
        return told, served_now >= 24, here.service.line.running, here.service.line.waiting, (await here.rollout()).status_code

    assert served(test, places=4, queue=20) == ({(200, None), (429, "1")}, True, set(), 0, 200)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


class HeldWithSandbox(Held):
    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        ctx.terminal("true")
        return await super().compute_reward(item, result, ctx)


def test_a_client_that_goes_away_cancels_its_rollout_and_its_sandbox_is_gone(served, cleaned):
    async def test(here: Any, _server: Any) -> Any:
        env = here.service.env
        going = asyncio.create_task(here.rollout())
        await env.started.acquire()
        going.cancel()
        await _until(lambda: not here.service.line.running)
        env.go.set()
        return list(cleaned), (await here.rollout()).status_code, dict(here.service.counts)

    released, status, counts = served(test, HeldWithSandbox, places=1, config={"enabled_toolsets": ["terminal"]})

    assert len(released) == 1
    assert (status, counts) == (200, {"cancelled": 1, "finished": 1})


def test_a_closed_line_refuses_who_waits_and_who_comes_and_lets_the_rest_finish(served, error_of):
    async def test(here: Any, _server: Any) -> Any:
        env, line = here.service.env, here.service.line
        running = asyncio.create_task(here.rollout())
        await env.started.acquire()
        waiting = asyncio.create_task(here.rollout())
        await _until(lambda: line.waiting == 1)
        line.close()
        refused = [error_of(await waiting), error_of(await here.rollout())]
        status = (await here.client.get("/health")).json()["status"]
        env.go.set()
        await line.empty()
        return refused, status, (await running).json()["reward"]

    assert served(test, Held, places=1) == ([(503, "shutting_down")] * 2, "draining", 1.0)


def test_the_table_of_paths_is_that_of_the_reference(make_env):
    page = (Path(__file__).parents[3] / "docs" / "reference" / "rollout-service.md").read_text(encoding="utf-8")
    app = build_app(None, token="t", max_body=1)  # type: ignore[arg-type]  # only its routes are read

    for route in app.routes:
        assert f"`{'POST' if 'POST' in route.methods else 'GET'} {route.path}" in page  # type: ignore[attr-defined]
    assert json.loads(page.split("```json\n")[1].split("```")[0])["endpoint"]
