"""What a cassette costs: a replayed call, its place on the disk, and its loading."""

from __future__ import annotations

import asyncio
import functools
import gc
import json
import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import openai
import respx
import vcr
from vcr.serializers import yamlserializer

from benchmarks.registry import Figure, Pair, benchmark, best, stopwatch
from pytest_hermes_env.cassette.format import read_tape, text_of
from pytest_hermes_env.cassette.session import replaying
from pytest_hermes_env.cassette.tape import Header, ModelCall, ModelReply, ModelRequest, Tape

MEASURED = 50
"""Calls of a round, spread over the whole cassette."""
TURNS = 3
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

Body = dict[str, Any]


def _words(chance: random.Random, count: int) -> str:
    return " ".join(f"w{chance.randrange(100_000)}" for _ in range(count))


def small(count: int) -> list[Body]:
    """Return bodies of 80 bytes, all different."""
    return [{"model": "m", "messages": [{"role": "user", "content": f"question {number:06d}"}]} for number in range(count)]


def chat(count: int) -> list[Body]:
    """Return bodies of 12 KB: tools, and conversations that grow for three turns."""
    chance = random.Random(1)
    tools = [
        {"type": "function", "function": {"name": f"tool_{number}", "description": _words(chance, 60), "parameters": {}}}
        for number in range(24)
    ]
    bodies, messages = [], []
    for number in range(count):
        if number % TURNS == 0:
            messages = [{"role": "system", "content": "You work."}, {"role": "user", "content": _words(chance, 30)}]
        bodies.append({"model": "m", "messages": list(messages), "tools": tools, "temperature": 1.0})
        output = json.dumps({"output": _words(chance, 80), "exit_code": 0})
        messages += [
            {"role": "assistant", "content": _words(chance, 20)},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": output},
        ]
    return bodies


def tokens(count: int) -> list[Body]:
    """Return bodies of /generate with prompts of 13,000 ids, of which conversations share what the tools need."""
    chance = random.Random(1)
    system, ids, bodies = [chance.randrange(150_000) for _ in range(12_700)], [0], []
    for number in range(count):
        new = [chance.randrange(150_000) for _ in range(150)]
        ids = system + new if number % TURNS == 0 else ids + new
        bodies.append({"prompt": {"prompt_token_ids": ids}, "logprobs": 0, "max_tokens": 512})
    return bodies


KINDS: dict[str, Callable[[int], list[Body]]] = {"80 B": small, "12 KB": chat, "13,000 ids": tokens}


async def ask_chat(bodies: list[Body]) -> float:
    """Return milliseconds per call of the openai client, as environments use it."""
    async with openai.AsyncOpenAI(base_url=URL, api_key="none", max_retries=0) as client:
        await client.chat.completions.create(**bodies[0])
        with stopwatch() as spent:
            for body in bodies[1:]:
                await client.chat.completions.create(**body)
    return spent.wall / (len(bodies) - 1) * 1000


async def ask_tokens(bodies: list[Body], url: str = URL) -> float:
    """Return milliseconds per call of aiohttp, as atroposlib's servers use it."""

    async def ask_once(body: Body) -> None:
        address, headers = f"{url.removesuffix('/v1')}/generate", {"Authorization": "Bearer none"}
        async with aiohttp.ClientSession() as session, session.post(address, json=body, headers=headers) as response:
            await response.json()

    await ask_once(bodies[0])
    with stopwatch() as spent:
        for body in bodies[1:]:
            await ask_once(body)
    return spent.wall / (len(bodies) - 1) * 1000


def ask(bodies: list[Body]) -> float:
    """Ask with the client of this kind of body."""
    gc.collect()
    return asyncio.run(ask_tokens(bodies) if "prompt" in bodies[0] else ask_chat(bodies))


def tape_of(bodies: list[Body]) -> Tape:
    """Return the bodies as recorded calls."""
    path, answer = ("/generate", GENERATED) if "prompt" in bodies[0] else ("/chat/completions", ANSWER)
    reply: Any = functools.partial(ModelReply, headers={"content-type": "application/json"}, body_kind="json")
    calls = (
        ModelCall(
            number=number,
            request=ModelRequest(method="POST", path=path, body=body, body_kind="json"),
            reply=reply(body=answer),
        )
        for number, body in enumerate(bodies, start=1)
    )
    return Tape(header=HEADER, calls=tuple(calls))


def replayed(n: int, bodies: list[Body], file: Path) -> float:
    """Return milliseconds per call on a cassette of the bodies."""
    file.write_text(text_of(tape_of(bodies)), encoding="utf-8")
    chosen, times = bodies[:: max(1, len(bodies) // MEASURED)], []
    for _ in range(n):
        with replaying(file, allow_leftovers=True):
            times.append(ask(chosen))
    return min(times)


def on_respx(n: int, bodies: list[Body]) -> float:
    """Return milliseconds per call of respx, which knows one answer for all."""
    with respx.mock(base_url=URL) as router:
        router.post("/chat/completions").mock(side_effect=lambda _: httpx.Response(200, json=ANSWER))
        return min(ask(bodies[:MEASURED]) for _ in range(n))


async def on_loopback(n: int, bodies: list[Body]) -> float:
    """Return milliseconds per call on the smallest server there is, which reads the body and says one answer."""
    from aiohttp import web

    async def generate(request: web.Request) -> web.Response:
        await request.read()
        return web.json_response(GENERATED)

    app = web.Application(client_max_size=10_000_000)
    app.router.add_post("/generate", generate)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        return min([await ask_tokens(bodies[:MEASURED], url) for _ in range(n)])
    finally:
        await runner.cleanup()


def interactions(bodies: list[Body]) -> Any:
    """Return the same calls in vcrpy's form."""
    path, answer = ("/generate", GENERATED) if "prompt" in bodies[0] else ("/chat/completions", ANSWER)
    kind = {"Content-Type": ["application/json"]}
    response = {"status": {"code": 200, "message": "OK"}, "headers": kind, "body": {"string": json.dumps(answer)}}
    asked = ({"method": "POST", "uri": URL + path, "headers": kind, "body": json.dumps(body)} for body in bodies)
    return {"version": 1, "interactions": [{"request": request, "response": response} for request in asked]}


def on_vcrpy(bodies: list[Body], file: Path) -> float:
    """Return milliseconds per call on vcrpy's own cassette, matched on the body."""
    file.write_text(json.dumps(interactions(bodies)))
    player = vcr.VCR(record_mode="none", match_on=["method", "path", "body"], serializer="json")
    with player.use_cassette(str(file)):
        return ask(bodies[:MEASURED])


@benchmark(
    Figure(
        "a replayed call of 12 KB, 100 recorded",
        "ms",
        "vcrpy compares each request with the recordings before it.",
        "vcrpy, matched on the body",
    ),
    *(
        Figure(
            f"a replayed call of {kind}, 1,000 recorded",
            "ms",
            "Finding the recording costs little compared with the client's own work, which both have to do.",
            "aiohttp on loopback" if kind == "13,000 ids" else "respx",
        )
        for kind in KINDS
    ),
    Figure(
        "a replayed call of 80 B, 10,000 recorded",
        "ms",
        "How much a call costs more on a cassette that is a hundred times as long.",
        "100 recorded",
    ),
)
def replay(n: int) -> Iterator[Pair]:
    """Ask for calls one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "tape.json")
        bodies = chat(100)
        yield replayed(n, bodies, file), on_vcrpy(bodies, file.with_name("stock.json"))
        for kind, make in KINDS.items():
            bodies = make(1_000)
            peer = asyncio.run(on_loopback(n, bodies)) if kind == "13,000 ids" else on_respx(n, bodies)
            yield replayed(n, bodies, file), peer
        yield replayed(n, small(10_000), file), replayed(n, small(100), file)


@benchmark(
    *(
        figure
        for kind in KINDS
        for figure in (
            Figure(
                f"a cassette of 100 calls of {kind}, its size",
                "kB",
                "What calls share is written once, so that you can review and commit it.",
                "plain JSON",
            ),
            Figure(
                f"a cassette of 100 calls of {kind}, its loading",
                "ms CPU",
                "What a test waits for before its first call.",
                "JSON",
            ),
            Figure(
                f"a cassette of 100 calls of {kind}, its loading", "ms CPU", "The same, compared with YAML.", "vcrpy's YAML"
            ),
        )
    )
)
def cassette_format(n: int) -> Iterator[Pair]:
    """Write and load the same calls in each format."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "tape.json")
        for make in KINDS.values():
            tape = tape_of(make(100))
            file.write_text(text_of(tape), encoding="utf-8")
            plain = json.dumps([{"request": asdict(call.request), "reply": asdict(call.reply)} for call in tape.calls])
            yield file.stat().st_size / 1000, len(plain) / 1000
            load = best(n, lambda: read_tape(file)).cpu * 1000
            yield load, best(n, lambda plain=plain: json.loads(plain)).cpu * 1000
            some = [call.request.body for call in tape.calls[:10]]  # YAML is too slow for all of them
            text = yamlserializer.serialize(interactions(some))
            yield load, best(1, lambda text=text: yamlserializer.deserialize(text)).cpu * 1000 * 10
