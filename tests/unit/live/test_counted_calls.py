"""Clients are counted and limited where their requests leave the process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest
from openai import AsyncOpenAI, OpenAI

from pytest_hermes_env import MockServer, say
from pytest_hermes_env.cassette.session import recording, replaying
from pytest_hermes_env.errors import BudgetSpent, LiveModeError
from pytest_hermes_env.live.counted_calls import asks_a_model, counting_calls
from pytest_hermes_env.live.limits import Limits, Spending
from pytest_hermes_env.live.metering import Meter
from pytest_hermes_env.live.prices import Price

BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Grade it."}]}
CHAT = "/chat/completions"


@pytest.fixture
def provider() -> Iterator[MockServer]:
    """A server on a socket that says 7."""
    with MockServer(judge=lambda _: say("7"), model="m", allow_leftovers=True) as server:
        yield server


def meter_for(tmp_path: Path, **settings: Any) -> Meter:
    """Return a meter; ``calls`` limits it."""
    return Meter(spending=Spending(tmp_path / "calls", Limits(calls=settings.pop("calls", None))), test="t", **settings)


def by_openai(url: str) -> str:
    """Ask with the openai client for async code."""

    async def ask() -> str:
        async with AsyncOpenAI(base_url=url, api_key="x", max_retries=0) as client:
            return (await client.chat.completions.create(**BODY)).choices[0].message.content or ""

    return asyncio.run(ask())


def by_openai_sync(url: str) -> str:
    """Ask with the openai client."""
    with OpenAI(base_url=url, api_key="x", max_retries=0) as client:
        return client.chat.completions.create(**BODY).choices[0].message.content or ""


def by_openai_stream(url: str) -> str:
    """Ask for a stream."""
    with OpenAI(base_url=url, api_key="x", max_retries=0) as client:
        chunks = client.chat.completions.create(**BODY, stream=True, stream_options={"include_usage": True})
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def by_httpx(url: str) -> str:
    """Ask with httpx."""
    with httpx.Client() as client:
        return str(client.post(url + CHAT, json=BODY).json()["choices"][0]["message"]["content"])


def by_aiohttp(url: str) -> str:
    """Ask with aiohttp."""

    async def ask() -> str:
        async with aiohttp.ClientSession() as session, session.post(url + CHAT, json=BODY) as response:
            return str((await response.json())["choices"][0]["message"]["content"])

    return asyncio.run(ask())


def by_requests(url: str) -> str:
    """Ask with requests."""
    import requests

    return str(requests.post(url + CHAT, json=BODY, timeout=10).json()["choices"][0]["message"]["content"])


@pytest.mark.parametrize("ask", [by_openai, by_openai_sync, by_openai_stream, by_httpx, by_aiohttp, by_requests])
def test_each_client_is_counted_and_refused(ask: Callable[[str], str], provider: MockServer, tmp_path: Path) -> None:
    """The first call is answered, counted with its tokens and priced by its own model; the second is not sent."""
    meter = meter_for(tmp_path, calls=1, prices={"m": Price(input=1e6, output=1e6)})
    with counting_calls(meter, provider.base_url):
        said = ask(provider.base_url)
        with pytest.raises(Exception, match=r"Connection error|--hermes-max-calls 1 is reached"):
            ask(provider.base_url)
    ask(provider.base_url)

    spent = meter.spent()
    assert said == "7"
    assert (spent.calls, spent.uncounted, spent.usd) == (1, 0, spent.tokens)
    assert spent.tokens > 0
    assert len(provider.journal) == 2
    with pytest.raises(BudgetSpent, match="refused   1 call of this test"):
        meter.verify()


@pytest.mark.parametrize(
    ("url", "is_counted"),
    [
        ("http://localhost:8000/v1/chat/completions", True),
        ("http://127.0.0.1:8000/generate", True),
        ("http://127.0.0.1:8001/v1/chat/completions", False),
        ("http://localhost:8000/register-env", False),
        ("https://api.openai.com/v1/responses", True),
        ("https://api.wandb.ai/graphql", False),
    ],
)
def test_what_costs_is_counted(url: str, is_counted: bool) -> None:
    """Models of the run's server and of other machines; not doubles on other ports, nor what is no model."""
    assert asks_a_model(url, "http://127.0.0.1:8000/v1") is is_counted


def test_a_test_without_any_answer_is_told(tmp_path: Path) -> None:
    """It showed nothing about a model; one answer is enough to pass."""
    meter = meter_for(tmp_path)
    meter.verify_answered()
    for status in (429, 429, "ConnectError"):
        meter.end(meter.begin(), None, status=status, seconds=0.0, turn=1)
    with pytest.raises(LiveModeError) as error:
        meter.verify_answered()

    assert str(error.value) == (
        "the real server answered no call of this test, so the test says nothing about a model.\n"
        "  seen      3 failed calls: 429 (2), ConnectError (1)\n"
        "  fix       see the server's messages in the captured log; if the test is about failures:\n"
        "            @pytest.mark.hermes_live(may_fail=True)"
    )
    assert meter.spending.failures() == {"429": 2, "ConnectError": 1}


@pytest.mark.parametrize("ask", [by_openai, by_openai_sync, by_openai_stream])
def test_calls_are_counted_and_recorded_at_the_same_time(
    ask: Callable[[str], str], provider: MockServer, tmp_path: Path
) -> None:
    """Whoever records reads an answer again that was read to count it."""
    cassette = tmp_path / "calls.json"

    with counting_calls(meter_for(tmp_path), provider.base_url), recording(cassette, recorded_from="a mock server"):
        said = ask(provider.base_url)
    provider.stop()
    with replaying(cassette):
        again = ask(provider.base_url)

    assert (said, again) == ("7", "7")
