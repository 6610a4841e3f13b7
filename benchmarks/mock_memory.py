"""The memory that a mock server keeps in a long run: ``python benchmarks/mock_memory.py``.

Each request begins a conversation of its own, with a prompt of 4 KB. The journal keeps 1,000 requests and the server 8,192
conversations, so beyond that the memory must not grow. Takes some minutes.
"""

from __future__ import annotations

import asyncio
import gc
import tracemalloc

import httpx

from pytest_hermes_env.inference import MockServer
from pytest_hermes_env.inference.transport import IN_PROCESS_URL

COUNTS = (1_000, 5_000, 10_000, 20_000)
PROMPT = "x" * 4_000


async def ask(client: httpx.AsyncClient, number: int, template: str | None) -> None:
    """Send one request, in chat mode or in token mode."""
    if template is None:
        body: dict[str, object] = {"model": "m", "messages": [{"role": "user", "content": f"{number} {PROMPT}"}]}
        answer = await client.post(f"{IN_PROCESS_URL}/chat/completions", json=body)
    else:
        answer = await client.post(f"{IN_PROCESS_URL}/generate", json={"prompt": f"{number} {PROMPT}", "max_tokens": 9})
    answer.raise_for_status()


async def run(template: str | None) -> list[float]:
    """Return the memory in MB after each count of requests."""
    server = MockServer(lambda _: "done", template=template)
    seen: list[float] = []
    async with httpx.AsyncClient(transport=server.transport) as client:
        for number in range(1, COUNTS[-1] + 1):
            await ask(client, number, template)
            if number in COUNTS:
                gc.collect()
                seen.append(tracemalloc.get_traced_memory()[0] / 1e6)
    return seen


if __name__ == "__main__":
    tracemalloc.start()
    print("requests  " + "  ".join(f"{count:>7,}" for count in COUNTS))
    for name, template in (("chat", None), ("tokens", "chatml")):
        tracemalloc.clear_traces()
        print(f"{name:<9} " + "  ".join(f"{size:>5.1f} MB" for size in asyncio.run(run(template))))
