"""What real clients see of each fault on the connection of the mock model and of run-api."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import httpx
import openai
import pytest

from pytest_hermes_env import FaultPlan, MockServer, say
from pytest_hermes_env.errors import NoBatch, UsageError

QUESTION = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
TIMEOUT_S = 0.5

HTTPX = {
    "refused": httpx.ConnectError,
    "reset": httpx.ReadError,
    "rate_limited": 429,
    "server_error": 500,
    "slow": 200,
    "hangs": httpx.ReadTimeout,
    "cut": httpx.RemoteProtocolError,
    "broken_json": json.JSONDecodeError,
}
AIOHTTP = {
    "refused": aiohttp.ClientConnectorError,
    "reset": aiohttp.ClientOSError,
    "rate_limited": 429,
    "server_error": 500,
    "slow": 200,
    "hangs": TimeoutError,
    "cut": aiohttp.ClientPayloadError,
    "broken_json": json.JSONDecodeError,
}


async def over_httpx(url: str, timeout: float | None) -> Any:
    async with httpx.AsyncClient(timeout=timeout) as client:
        response = await client.post(f"{url}/chat/completions", json=QUESTION)
        response.json()
        return response


async def over_aiohttp(url: str, timeout: float | None) -> Any:
    limit = aiohttp.ClientTimeout(total=timeout)
    async with (
        aiohttp.ClientSession(timeout=limit) as client,
        client.post(f"{url}/chat/completions", json=QUESTION) as response,
    ):
        await response.json()
        response.status_code = response.status
        return response


@pytest.mark.parametrize("kind", HTTPX)
@pytest.mark.parametrize(("ask", "expected"), [(over_httpx, HTTPX), (over_aiohttp, AIOHTTP)], ids=["httpx", "aiohttp"])
def test_client_sees_the_real_error_once(ask, expected, kind):
    """The second request is struck; those before and after it are answered."""
    plan = FaultPlan().on("model", kind, at=2, times=1)

    async def scenario() -> list[Any]:
        found: list[Any] = []
        for number in range(3):
            try:
                response = await ask(server.base_url, TIMEOUT_S if kind == "hangs" and number == 1 else None)
                found.append(response.status_code)
                if found[-1] == 429:
                    assert response.headers["retry-after"] == "1"
            except Exception as error:  # noqa: BLE001 - compared below
                found.append(type(error))
        return found

    with MockServer([say("hi")], faults=plan) as server:
        before, struck, after = asyncio.run(scenario())
    plan.verify()

    assert (before, after) == (200, 200)
    assert struck == expected[kind] or issubclass(struck, expected[kind])
    assert [strike.fault.kind for strike in plan.strikes] == [kind]


def test_request_is_matched_by_its_text():
    """Method, path and body."""
    plan = (
        FaultPlan()
        .on("model", "server_error", where='POST /v1/chat/completions\n{"model":"m"')
        .on("model", "reset", where="nobody says this", at=9)
    )

    with MockServer([say("hi")], faults=plan) as server:
        models = httpx.get(f"{server.base_url}/models").status_code
        chat = httpx.post(f"{server.base_url}/chat/completions", json=QUESTION).status_code

    assert (models, chat) == (200, 500)


def test_model_without_a_connection_cannot_play_a_plan():
    """It would be green without having played anything."""
    with pytest.raises(UsageError, match="leave out in_process=True, or the fault plan"):
        _ = MockServer([say("hi")], faults=FaultPlan()).transport


@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        ("refused", "Connection refused"),
        ("reset", "no longer answers"),
        ("rate_limited", "answered with 429"),
        ("server_error", "answered with 500"),
        ("cut", "no longer answers"),
        ("broken_json", "answered with 200"),
    ],
)
def test_trainer_names_what_it_met(fault_plan, trainer, kind, seen):
    """A trainer that has no batch says why, whatever broke its request."""
    trainer.register()
    trainer.poll()
    fault_plan.on("trainer", kind, where="GET /batch", times=1)

    with pytest.raises(NoBatch, match=seen):
        trainer.poll()
    assert trainer.poll() is None


def test_trainer_and_environments_have_faults_of_their_own(fault_plan, run_api, trainer):
    """Requests are assigned by their path."""
    fault_plan.on("run_api", "server_error", where="GET /info").on("trainer", "slow", where="POST /register")
    trainer.register()

    assert httpx.get(f"{run_api.url}/info").status_code == 500
    assert httpx.get(f"{run_api.url}/status").status_code == 200
    assert [strike.fault.place for strike in fault_plan.strikes] == ["trainer", "run_api"]


def test_a_client_that_leaves_while_it_sends_meets_nothing(fault_plan):
    """It was cancelled: its request is no request, and the planned fault is for the next one."""
    import socket
    from urllib.parse import urlsplit

    fault_plan.on("model", "server_error", times=1)
    with MockServer(lambda _: say("hello"), faults=fault_plan, allow_leftovers=True) as server:
        address = urlsplit(server.base_url)
        with socket.create_connection((address.hostname, address.port)) as client:
            client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
        statuses = [httpx.post(f"{server.base_url}/chat/completions", json=QUESTION).status_code for _ in range(2)]

        server.verify()

    assert statuses == [500, 200]


def test_a_plain_client_is_refused_too():
    """Once, and then answered."""
    plan = FaultPlan().on("model", "refused", at=1, times=1)
    with MockServer(say("ok"), faults=plan) as server, httpx.Client() as client:
        with pytest.raises(httpx.ConnectError):
            client.post(f"{server.base_url}/chat/completions", json=QUESTION)
        assert client.post(f"{server.base_url}/chat/completions", json=QUESTION).status_code == 200


def test_a_stream_with_broken_json_has_half_an_event():
    """With an end, so that a client reads it."""
    plan = FaultPlan().on("model", "broken_json", at=1, times=1)
    with (
        MockServer(say("several words of an answer"), faults=plan) as server,
        openai.OpenAI(base_url=server.base_url, api_key="k", max_retries=0) as client,
        pytest.raises(json.JSONDecodeError),
    ):
        list(client.chat.completions.create(model="m", messages=[{"role": "user", "content": "a"}], stream=True))
