"""Calls are counted where they leave, whatever the answer looks like."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from pytest_hermes_env.errors import BudgetSpent, CallTimedOut
from pytest_hermes_env.live.counted_calls import counting_calls
from pytest_hermes_env.live.limits import Limits, Spending, Spent, Usage
from pytest_hermes_env.live.metering import Meter, usage_of
from pytest_hermes_env.live.prices import Price
from pytest_hermes_env.live.report import waiting_line
from pytest_hermes_env.patches import intercept

URL = "http://api.test/v1/chat/completions"
USAGE = {"prompt_tokens": 7, "completion_tokens": 3}


def post(
    meter: Meter, answer: Callable[[httpx.Request], Awaitable[httpx.Response]], body: dict[str, Any] | None = None
) -> None:
    """Send one request while calls are counted, and read the answer."""

    async def replied(real: Any, transport: Any, request: httpx.Request) -> httpx.Response:
        del real, transport
        return await answer(request)

    async def send() -> None:
        with intercept("httpx.AsyncHTTPTransport.handle_async_request", replied), counting_calls(meter, "http://api.test/v1"):
            async with httpx.AsyncClient() as client, client.stream("POST", URL, json=body or {}) as received:
                await received.aread()

    asyncio.run(send())


def ask(meter: Meter, response: httpx.Response, body: dict[str, Any] | None = None) -> httpx.Request:
    """Send one request that is answered with ``response``, and return the request as it left."""
    left = []

    async def answer(request: httpx.Request) -> httpx.Response:
        left.append(request)
        return response

    post(meter, answer, body)
    return left[0]


@pytest.fixture
def spending(tmp_path: Path) -> Spending:
    """A file without limits."""
    return Spending(tmp_path / "calls", Limits())


@pytest.mark.parametrize(
    ("response", "spent"),
    [
        (httpx.Response(200, json={"usage": USAGE}), Spent(calls=1, prompt_tokens=7, completion_tokens=3, unpriced=1)),
        (
            httpx.Response(200, json={"usage": USAGE | {"cost": 0.5}}),
            Spent(calls=1, prompt_tokens=7, completion_tokens=3, usd=0.5),
        ),
        (httpx.Response(200, json={}), Spent(calls=1, uncounted=1, unpriced=1)),
        (httpx.Response(200, text="no json"), Spent(calls=1, failed=1)),
        (httpx.Response(200, json={"error": {"message": "upstream failed"}}), Spent(calls=1, failed=1)),
        (httpx.Response(500, json={"usage": USAGE}), Spent(calls=1, failed=1)),
        (
            httpx.Response(
                200,
                headers={"content-type": "text/event-stream"},
                stream=httpx.ByteStream(
                    b'data: {"choices": []}\n\n'
                    b'data: {"usage": {"prompt_tokens": 7, "completion_tokens": 3, "cost": 1}}\n\n'
                    b"data: [DONE]\n\n"
                ),
            ),
            Spent(calls=1, prompt_tokens=7, completion_tokens=3, usd=1.0),
        ),
    ],
    ids=["tokens", "cost", "nothing", "no-json", "error-in-200", "failed", "stream"],
)
def test_what_an_answer_took_is_counted(spending: Spending, response: httpx.Response, spent: Spent) -> None:
    """What it does not say is counted as not said, and a failure costs nothing."""
    ask(Meter(spending=spending, test="t"), response)

    total = spending.total()
    assert total == Spent(**{**vars(spent), "seconds": total.seconds})


def test_a_price_stands_in_for_a_cost(spending: Spending) -> None:
    """Only where the answer says none."""
    meter = Meter(spending=spending, test="t", model="m", prices={"m": Price(input=1_000_000.0, output=0.0)})
    ask(meter, httpx.Response(200, json={"usage": USAGE}))
    ask(meter, httpx.Response(200, json={"usage": USAGE | {"cost": 1}}))

    assert spending.total().usd == 8.0


def test_the_cost_is_asked_for(spending: Spending) -> None:
    """What the meter adds to a body does not replace what is there, and the length is right again."""
    meter = Meter(spending=spending, test="t", extra={"usage": {"include": True}, "model": "other"})
    request = ask(meter, httpx.Response(200, json={}), {"model": "m", "messages": []})

    assert json.loads(request.content) == {"usage": {"include": True}, "model": "m", "messages": []}
    assert request.headers["content-length"] == str(len(request.content))


def test_a_refused_call_is_not_sent(tmp_path: Path) -> None:
    """The refusal is raised at the call, and again when the test is verified."""
    meter = Meter(spending=Spending(tmp_path / "calls", Limits(calls=0)), test="t")
    with pytest.raises(BudgetSpent):
        ask(meter, httpx.Response(200))
    with pytest.raises(BudgetSpent, match="refused   1 call of this test"):
        meter.verify()


def test_progress_names_the_turn(spending: Spending) -> None:
    """A request that offers tools asks for the turn after those that it holds; one that offers none is no turn."""
    seen: list[str] = []
    meter = Meter(spending=spending, test="t", tell=seen.append)
    said = [{"role": "user"}, {"role": "assistant"}, {"role": "tool"}]
    ask(meter, httpx.Response(200, json={"usage": USAGE}), {"messages": said, "tools": [{}]})
    ask(meter, httpx.Response(429), {"messages": said})

    assert [re.sub(r"\d\.\d s", "0.1 s", line) for line in seen] == [
        "  live: rollout 1, turn 2: 10 tokens, 0.1 s (run: 1 call, 10 tokens, cost unknown)",
        "  live: rollout 2, a call: failed (429), 0.1 s (run: 2 calls, 10 tokens, cost unknown, 1 failed)",
    ]


def test_answers_of_generate_have_token_ids() -> None:
    """vLLM's own, and SGLang's, of which there may be several."""
    sglang = {"text": "x", "meta_info": {"prompt_tokens": 7, "completion_tokens": 3}}
    usages = [usage_of({"prompt_token_ids": [1] * 7, "token_ids": [[1, 2], [3]]}), usage_of(sglang), usage_of([sglang, sglang])]

    assert usages == [Usage(prompt_tokens=count, completion_tokens=sampled) for count, sampled in ((7, 3), (7, 3), (14, 6))]


def test_a_key_of_ones_own_costs_upstream_too() -> None:
    """OpenRouter says what the upstream provider takes apart."""
    said = {"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.2}}

    assert usage_of({"usage": USAGE | said}).usd == pytest.approx(0.21)


def send(meter: Meter, answer: asyncio.Event) -> None:
    """Send one request that is answered when ``answer`` is set."""

    async def answered(_: httpx.Request) -> httpx.Response:
        await answer.wait()
        return httpx.Response(200, json={"usage": {"prompt_tokens": 7, "completion_tokens": 3, "cost": 0.5}})

    post(meter, answered)


def test_a_call_that_waits_says_so_again_and_again(tmp_path: Path) -> None:
    """Every reminder names the server; the answer is counted as ever."""
    answer, told = asyncio.Event(), []

    def tell(line: str) -> None:
        told.append(line)
        if len(told) == 2:
            answer.set()

    spending = Spending(tmp_path / "calls", Limits())
    send(Meter(spending=spending, test="t", tell=tell, server="m1 at api.test", reminder_s=0.001), answer)

    assert told[:2] == ["  live: still waiting for m1 at api.test (0 s)"] * 2
    assert waiting_line("m1 at api.test", 12.2) == "  live: still waiting for m1 at api.test (12 s)"
    assert told[-1].endswith(" s (run: 1 call, 10 tokens, $0.5000)")


def test_the_limit_of_a_call_ends_it(tmp_path: Path) -> None:
    """The error names the server, the limit and its option; the call is counted as failed."""
    spending = Spending(tmp_path / "calls", Limits())
    meter = Meter(spending=spending, test="t", server="m1 at api.test", limit_s=0.01)

    with pytest.raises(CallTimedOut) as raised:
        send(meter, asyncio.Event())

    assert str(raised.value) == (
        "m1 at api.test did not answer within 0.01 s (--hermes-call-timeout).\n"
        "  expected  the whole answer\n"
        "  fix       raise --hermes-call-timeout, or see why the server is silent: it may be loading or overloaded"
    )
    assert spending.failures() == {"CallTimedOut": 1}
