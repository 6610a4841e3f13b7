"""What a replayed call costs: milliseconds per call on a cassette, beside vcrpy as it comes, respx, and a server on loopback.

Prints figures and ratios; run it with nothing else on the machine: ``python benchmarks/replay.py [LARGEST_COUNT]``.
Calls go one after the other through the clients that environments have: openai's for chat completions, aiohttp for /generate
with prompts of 13,000 ids. Of several rounds the fastest counts. vcrpy (record_mode none, matched on the body) compares each
request with the recordings before it, and is measured up to the counts that take seconds.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import json
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import openai
import respx
import vcr

from pytest_hermes_env.cassette.format import read_tape, write_tape
from pytest_hermes_env.cassette.player import Player
from pytest_hermes_env.cassette.session import replaying
from pytest_hermes_env.cassette.tape import Header, ModelCall, ModelReply, ModelRequest, Tape
from pytest_hermes_env.inference import MockServer, say

COUNTS = (10, 100, 1_000, 10_000)
MEASURED = 100
"""Calls of a round, at most: spread over the whole cassette."""
ROUNDS = 5
URL = "http://127.0.0.1:9/v1"
HEADER = Header(recorded_at="2026-01-01T00:00:00+00:00", recorded_from="a benchmark")
ANSWER = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
GENERATED = {"text": ["yes"], "finish_reasons": ["stop"], "logprobs": [[[{"7": -0.5}]]]}
STOCK_LIMIT = {"80 B": 1_000, "12 KB": 100, "13,000 ids": 10}

JSON = {"Content-Type": ["application/json"]}

Body = dict[str, Any]


def small(number: int) -> Body:
    """Return a body of 80 bytes."""
    return {"model": "m", "messages": [{"role": "user", "content": f"question {number:06d}, please"}]}


def large(number: int) -> Body:
    """Return a body of 12 KB: tools, and a conversation of some turns."""
    tools, turns = _shared_parts()
    return {"model": "m", "messages": [*turns, {"role": "user", "content": f"question {number:06d}"}], "tools": tools}


def tokens(number: int) -> Body:
    """Return a body of /generate: a prompt of 13,000 ids, whose end differs."""
    return {
        "prompt": {"prompt_token_ids": [*_shared_ids(), *(int(digit) for digit in f"{number:010d}")]},
        "max_tokens": 8,
        "n": 1,
    }


@functools.cache
def _shared_ids() -> list[int]:
    chance = random.Random(1)
    return [chance.randrange(150_000) for _ in range(12_990)]


@functools.cache
def _shared_parts() -> tuple[list[Body], list[Body]]:
    chance = random.Random(1)
    tools = [
        {"type": "function", "function": {"name": f"tool_{each}", "description": _words(chance, 60), "parameters": {}}}
        for each in range(20)
    ]
    turns = [{"role": "user" if each % 2 == 0 else "assistant", "content": _words(chance, 60)} for each in range(8)]
    return tools, turns


def _words(chance: random.Random, count: int) -> str:
    return " ".join(
        chance.choice(("house", "river", "green", "walks", "seven", "under", "while", "stone")) for _ in range(count)
    )


KINDS: dict[str, tuple[Callable[[int], Body], str]] = {
    "80 B": (small, "/chat/completions"),
    "12 KB": (large, "/chat/completions"),
    "13,000 ids": (tokens, "/generate"),
}


async def ask_chat(bodies: list[Body], url: str) -> float:
    """Return seconds per call of the openai client."""
    async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
        await _first(client.chat.completions.create, bodies[0])
        started = time.perf_counter()
        for body in bodies[1:]:
            await client.chat.completions.create(**body)
        return (time.perf_counter() - started) / (len(bodies) - 1)


async def _first(create: Callable[..., Awaitable[Any]], body: Body) -> None:
    await create(**body)


async def ask_tokens(bodies: list[Body], url: str) -> float:
    """Return seconds per call of aiohttp, as atroposlib's servers use it."""
    address = f"{url.removesuffix('/v1')}/generate"
    started = time.perf_counter()
    for number, body in enumerate(bodies):
        if number == 1:
            started = time.perf_counter()
        async with (
            aiohttp.ClientSession() as session,
            session.post(address, json=body, headers={"Authorization": "Bearer none"}) as response,
        ):
            await response.json()
    return (time.perf_counter() - started) / (len(bodies) - 1)


def ask(kind: str, bodies: list[Body], url: str = URL) -> float:
    """Return seconds per call."""
    gc.collect()
    return asyncio.run((ask_tokens if kind == "13,000 ids" else ask_chat)(bodies, url))


def chosen(count: int) -> list[int]:
    """Return which of ``count`` recordings are asked for: some of all parts."""
    step = max(1, count // MEASURED)
    return list(range(0, count, step))[: MEASURED + 1]


def on_cassette(kind: str, count: int, directory: Path) -> tuple[float, float, int]:
    """Return seconds per call on a cassette, seconds to load it, and its bytes."""
    make, path = KINDS[kind]
    answer = GENERATED if path == "/generate" else ANSWER
    calls = tuple(
        ModelCall(
            number=number + 1,
            request=ModelRequest(method="POST", path=path, body=make(number), body_kind="json"),
            reply=ModelReply(headers={"content-type": "application/json"}, body=answer, body_kind="json"),  # type: ignore[arg-type]
        )
        for number in range(count)
    )
    file = directory / f"{kind.replace(' ', '')}-{count}.json"
    write_tape(file, Tape(header=HEADER, calls=calls))
    del calls
    gc.collect()
    started = time.perf_counter()
    Player(read_tape(file))
    loading = time.perf_counter() - started
    bodies = [make(number) for number in chosen(count)]
    best = float("inf")
    for _ in range(ROUNDS if count < COUNTS[-1] else 2):
        with replaying(file, allow_leftovers=True):
            best = min(best, ask(kind, bodies))
    return best, loading, file.stat().st_size


def on_stock_vcrpy(kind: str, count: int, directory: Path) -> float:
    """Return seconds per call on vcrpy's own cassette, all recordings asked for in order."""
    make, path = KINDS[kind]
    answer = json.dumps(GENERATED if path == "/generate" else ANSWER)
    is_dict = path == "/generate"  # vcrpy's stub of aiohttp keeps what the client was given as `json`
    root = URL.removesuffix("/v1") if path == "/generate" else URL
    interactions = [
        {
            "request": {
                "method": "POST",
                "uri": root + path,
                "body": make(number) if is_dict else json.dumps(make(number)),
                "headers": JSON,
            },
            "response": {
                "status": {"code": 200, "message": "OK"},
                "headers": {"Content-Type": ["application/json"]},
                "body": {"string": answer},
            },
        }
        for number in range(count)
    ]
    file = directory / f"stock-{count}.json"
    file.write_text(json.dumps({"version": 1, "interactions": interactions}))
    player = vcr.VCR(record_mode="none", match_on=["method", "path", "body"], serializer="json")
    with player.use_cassette(str(file)):
        return ask(kind, [make(number) for number in chosen(count)][:20])


def on_respx(kind: str, count: int) -> float:
    """Return seconds per call of respx, which knows one answer for all; it has no part in aiohttp."""
    make, _ = KINDS[kind]
    bodies = [make(number) for number in chosen(count)]
    with respx.mock(base_url=URL) as router:
        router.post("/chat/completions").mock(side_effect=lambda _: httpx.Response(200, json=ANSWER))
        return min(ask(kind, bodies) for _ in range(ROUNDS))


def on_loopback(kind: str, count: int) -> float:
    """Return seconds per call of a mock server on a socket."""
    make, _ = KINDS[kind]
    bodies = [make(number) for number in chosen(count)]
    with MockServer(lambda _: say("yes"), allow_leftovers=True) as server:
        return min(ask(kind, bodies, server.base_url) for _ in range(2))


def main() -> None:
    """Print a table per kind of body."""
    largest = int(sys.argv[1]) if len(sys.argv) > 1 else COUNTS[-1]
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        for kind in KINDS:
            has_respx = kind != "13,000 ids"
            beside = on_respx(kind, 1_000) if has_respx else on_loopback_of_tokens()
            loopback = on_loopback(kind, 100) if has_respx else beside
            what = "respx" if has_respx else "aiohttp, loopback"
            print(
                f"{kind}: {what} {beside * 1000:.2f} ms per call"
                + (f", loopback {loopback * 1000:.2f} ms" if has_respx else "")
            )
            for count in COUNTS:
                if count > largest:
                    continue
                seconds, loading, size = on_cassette(kind, count, directory)
                stock = on_stock_vcrpy(kind, count, directory) if count <= STOCK_LIMIT[kind] else None
                print(
                    f"  {count:>6} recorded  {seconds * 1000:7.2f} ms per call, {seconds / beside:4.1f} x {what};  "
                    f"vcrpy {'not measured: too slow' if stock is None else f'{stock * 1000:.1f} ms'};  "
                    f"load {loading * 1000 * 100 / count:.1f} ms and {size * 100 / count / 1000:.1f} KB per 100 calls",
                    flush=True,
                )


def on_loopback_of_tokens() -> float:
    """Return seconds per call of /generate on the smallest server there is, which reads the body and says one answer."""
    from aiohttp import web

    async def scenario() -> float:
        async def generate(request: web.Request) -> web.Response:
            await request.read()
            return web.json_response(GENERATED)

        app = web.Application(client_max_size=10_000_000)
        app.router.add_post("/generate", generate)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        try:
            bodies = [tokens(number) for number in range(MEASURED + 1)]
            return min([await ask_tokens(bodies, f"http://127.0.0.1:{port}/v1") for _ in range(ROUNDS)])
        finally:
            await runner.cleanup()

    return asyncio.run(scenario())


if __name__ == "__main__":
    main()
