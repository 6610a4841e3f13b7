"""A judge that any client asks is answered by the scenario's model, and says of an error what that client's users wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp
import httpx
import pytest

from pytest_hermes_env import Script
from pytest_hermes_env.inference import MockServer
from pytest_hermes_env.inference.steps import fail
from pytest_hermes_env.play.journal import Journal, recording
from pytest_hermes_env.play.watchers.judges import answering_judges

URL = "http://judge.invalid/v1/chat/completions"
BODY = {"model": "m", "messages": [{"role": "user", "content": "Good?"}]}


async def by_httpx() -> str:
    async with httpx.AsyncClient() as client:
        answer = await client.post(URL, json=BODY)
        answer.raise_for_status()
        return str(answer.json()["choices"][0]["message"]["content"])


async def by_aiohttp() -> str:
    async with aiohttp.ClientSession() as session, session.post(URL, json=BODY) as answer:
        answer.raise_for_status()
        return str((await answer.json())["choices"][0]["message"]["content"])


async def by_strict_session() -> str:
    async with aiohttp.ClientSession(raise_for_status=True) as session, session.post(URL, json=BODY) as answer:
        return str((await answer.json())["choices"][0]["message"]["content"])


async def by_strict_request() -> str:
    async with aiohttp.ClientSession() as session, session.post(URL, json=BODY, raise_for_status=True) as answer:
        return str((await answer.json())["choices"][0]["message"]["content"])


async def by_requests() -> str:
    requests = pytest.importorskip("requests")
    answer = requests.post(URL, json=BODY, timeout=5)
    answer.raise_for_status()
    return str(answer.json()["choices"][0]["message"]["content"])


@pytest.mark.parametrize("ask", [by_httpx, by_aiohttp, by_strict_session, by_strict_request, by_requests])
def test_an_error_of_the_judge_is_that_of_its_client(ask: Callable[[], Any]) -> None:
    """With status and reason; after it, the answer is read as ever."""
    with (
        MockServer(Script(judge=fail(500))) as broken,
        answering_judges(),
        recording(Journal(model=broken)),
        pytest.raises(Exception, match="500") as raised,
    ):
        asyncio.run(ask())
    with MockServer(Script(judge="0.75")) as server, answering_judges(), recording(Journal(model=server)):
        said = asyncio.run(ask())

    assert type(raised.value).__module__.partition(".")[0] in {"httpx", "aiohttp", "requests"}
    assert "Internal Server Error" in str(raised.value)
    assert said == "0.75"
