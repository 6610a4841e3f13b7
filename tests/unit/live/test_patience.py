"""A call that waits says so, and its limit ends it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from pytest_hermes_env.errors import CallTimedOut
from pytest_hermes_env.live.limits import Limits, Spending
from pytest_hermes_env.live.metering import Meter, MeteredTransport, Progress
from pytest_hermes_env.live.patience import Patience, Waiting
from pytest_hermes_env.live.report import progress_line

URL = "http://api.test/v1/chat/completions"


def send(meter: Meter, answer: asyncio.Event) -> None:
    """Send one request that is answered when ``answer`` is set."""

    async def answered(request: httpx.Request) -> httpx.Response:
        await answer.wait()
        return httpx.Response(200, json={"usage": {"prompt_tokens": 7, "completion_tokens": 3, "cost": 0.5}})

    async def post() -> None:
        async with httpx.AsyncClient(transport=MeteredTransport(httpx.MockTransport(answered), meter)) as client:
            await client.post(URL, json={})

    asyncio.run(post())


def test_a_call_that_waits_says_so_again_and_again(tmp_path: Path) -> None:
    """Every reminder names the server; the answer is counted as ever."""
    answer, told = asyncio.Event(), []

    def tell(event: Progress | Waiting) -> None:
        told.append(event)
        if len(told) == 2:
            answer.set()

    patience = Patience(server="m1 at api.test", reminder_s=0.001)
    send(Meter(spending=Spending(tmp_path / "calls", Limits()), test="t", tell=tell, patience=patience), answer)

    assert [type(event) for event in told[:2]] == [Waiting, Waiting]
    assert progress_line(Waiting(server="m1 at api.test", seconds=12.2)) == "  live: still waiting for m1 at api.test (12 s)"
    assert progress_line(told[-1]).endswith(" s (run: 1 call, 10 tokens, $0.5000)")


def test_the_limit_of_a_call_ends_it(tmp_path: Path) -> None:
    """The error names the server, the limit and its option; the call is counted as failed."""
    spending = Spending(tmp_path / "calls", Limits())
    meter = Meter(spending=spending, test="t", patience=Patience(server="m1 at api.test", limit_s=0.01))

    with pytest.raises(CallTimedOut) as raised:
        send(meter, asyncio.Event())

    assert str(raised.value) == (
        "m1 at api.test did not answer within 0.01 s (--hermes-call-timeout).\n"
        "  expected  the whole answer, or the beginning of a stream\n"
        "  fix       raise --hermes-call-timeout, or see why the server is silent: it may be loading or overloaded"
    )
    assert spending.failures() == {"CallTimedOut": 1}
