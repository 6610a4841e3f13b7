"""The mock model without a socket."""

import asyncio
from typing import Any

import httpx
import openai
import pytest

from pytest_hermes_env import MockServer, call, hang, say
from pytest_hermes_env.inference.transport import IN_PROCESS_URL

TERMINAL: Any = {"type": "function", "function": {"name": "terminal", "parameters": {"type": "object"}}}


def ask(server: MockServer, **request: Any) -> Any:
    """Ask one question with the real openai client on the server's transport."""

    async def run() -> Any:
        http = httpx.AsyncClient(transport=server.transport)
        async with openai.AsyncOpenAI(base_url=IN_PROCESS_URL, api_key="none", http_client=http, max_retries=0) as client:
            question: Any = [{"role": "user", "content": "list the files"}]
            return await client.chat.completions.create(model="mock-model", messages=question, **request)

    return asyncio.run(run())


def test_says_what_the_server_says() -> None:
    """The same script gives the same answer with a socket and without."""
    script = [call("terminal", command="ls")]

    in_process = ask(MockServer(script), tools=[TERMINAL])
    with MockServer(script) as server:
        client = openai.OpenAI(base_url=server.base_url, api_key="none", max_retries=0)
        over_http = client.chat.completions.create(
            model="mock-model", messages=[{"role": "user", "content": "list the files"}], tools=[TERMINAL]
        )
        client.close()

    assert in_process.model_dump(exclude={"created"}) == over_http.model_dump(exclude={"created"})


def test_a_long_delay_is_the_clients_timeout() -> None:
    """A client that waits less than the model takes has a timeout, as over HTTP."""
    server = MockServer([[hang(30), say("late")]], allow_leftovers=True)

    with pytest.raises(openai.APITimeoutError):
        ask(server, timeout=0.05)
