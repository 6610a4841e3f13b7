"""What a cassette takes: kilobytes per 100 calls and milliseconds to load, beside plain JSON and vcrpy's YAML of the same calls.

Prints figures and ratios; run it with nothing else on the machine: ``python benchmarks/cassette_format.py [LARGEST_COUNT]``.
A conversation has three turns; each request repeats what was said before, as an agent's does. YAML is measured up to 100 calls,
with prompts of 13,000 ids up to 10: it is too slow for more.
"""

from __future__ import annotations

import gc
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from pytest_hermes_env.cassette.format import read_tape, text_of, write_tape
from pytest_hermes_env.cassette.tape import Header, ModelCall, ModelReply, ModelRequest, Tape

COUNTS = (100, 1_000, 10_000)
TURNS = 3
HEADER = Header(recorded_at="2026-01-01T00:00:00+00:00", recorded_from="a benchmark")


def small(count: int) -> Tape:
    """Return calls with bodies of 80 bytes, all different."""
    bodies = [{"model": "m", "messages": [{"role": "user", "content": f"question {number:06d}"}]} for number in range(count)]
    return _tape("/chat/completions", bodies, [{"choices": [{"message": {"content": "yes"}}]}] * count)


def chat(count: int) -> Tape:
    """Return calls with bodies of 12 KB: tools, and a conversation that grows."""
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
        output = "\n".join(_words(chance, 8) for _ in range(10))
        messages += [
            {"role": "assistant", "content": _words(chance, 20)},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": json.dumps({"output": output, "exit_code": 0})},
        ]
    return _tape("/chat/completions", bodies, [{"choices": [{"message": {"content": _words(chance, 20)}}]}] * count)


def tokens(count: int) -> Tape:
    """Return calls of /generate with prompts of 13,000 ids, of which conversations share what the tools need."""
    chance = random.Random(1)
    system = [chance.randrange(150_000) for _ in range(12_700)]
    bodies, replies, ids = [], [], []
    for number in range(count):
        if number % TURNS == 0:
            ids = system + [chance.randrange(150_000) for _ in range(200)]
        answer = [chance.randrange(150_000) for _ in range(100)]
        bodies.append({"prompt": {"prompt_token_ids": ids}, "logprobs": 0, "max_tokens": 512})
        replies.append({"logprobs": [[[{str(one): -chance.random()}] for one in answer]], "finish_reasons": ["stop"]})
        ids = ids + answer + [chance.randrange(150_000) for _ in range(50)]
    return _tape("/generate", bodies, replies)


def _words(chance: random.Random, count: int) -> str:
    return " ".join(f"w{chance.randrange(100_000)}" for _ in range(count))


def _tape(path: str, bodies: list, replies: list) -> Tape:
    calls = tuple(
        ModelCall(
            number=number,
            request=ModelRequest(method="POST", path=path, body=body, body_kind="json"),
            reply=ModelReply(headers={"content-type": "application/json"}, body=reply, body_kind="json"),
        )
        for number, (body, reply) in enumerate(zip(bodies, replies, strict=True), start=1)
    )
    return Tape(header=HEADER, calls=calls)


def _plain(tape: Tape) -> str:
    return json.dumps([{"request": asdict(call.request), "reply": asdict(call.reply)} for call in tape.calls])


def _yaml(tape: Tape) -> str:
    from vcr.serializers import yamlserializer

    interactions = [
        {
            "request": {
                "method": "POST",
                "uri": f"http://x{call.request.path}",
                "body": json.dumps(call.request.body),
                "headers": {},
            },
            "response": {
                "status": {"code": 200, "message": "OK"},
                "headers": {},
                "body": {"string": json.dumps(call.reply.body)},
            },
        }
        for call in tape.calls
    ]
    return yamlserializer.serialize({"version": 1, "interactions": interactions})


def _milliseconds(work: Callable[[], object]) -> float:
    gc.collect()
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def _line(what: str, count: int, size: int, load: float, ours: tuple[int, float]) -> str:
    ratio = "" if (size, load) == ours else f"   {size / ours[0]:6.1f} x the size, {load / ours[1]:6.1f} x the time"
    return f"  {what:<12} {count:>6} calls  {size / count / 10:10.1f} kB per 100 calls  {load:10.1f} ms to load{ratio}"


def main() -> None:
    """Print size and load time for each kind of body and each count."""
    from vcr.serializers import yamlserializer

    largest = int(sys.argv[1]) if len(sys.argv) > 1 else COUNTS[-1]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "x.json")
        for title, make, most_yaml in (("80 B", small, 100), ("12 KB", chat, 100), ("13,000 ids", tokens, 10)):
            print(f"bodies of {title}")
            for count in sorted({most_yaml, *COUNTS}):
                if count > largest:
                    continue
                tape = make(count)
                writing = _milliseconds(lambda tape=tape: write_tape(path, tape))
                ours = (path.stat().st_size, _milliseconds(lambda: read_tape(path)))
                assert len(text_of(tape).encode()) == ours[0]
                plain = _plain(tape)
                print(_line("cassette", count, *ours, ours) + f"   ({writing / count:.2f} ms per call to write)")
                print(_line("json.dumps", count, len(plain), _milliseconds(lambda plain=plain: json.loads(plain)), ours))
                if count == most_yaml:
                    text = _yaml(tape)
                    print(
                        _line(
                            "vcrpy's YAML",
                            count,
                            len(text),
                            _milliseconds(lambda text=text: yamlserializer.deserialize(text)),
                            ours,
                        )
                    )


if __name__ == "__main__":
    main()
