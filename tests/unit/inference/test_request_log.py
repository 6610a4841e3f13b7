"""What a mock server remembers of a long run."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc

import httpx
import pytest

from pytest_hermes_env.inference import MockServer
from pytest_hermes_env.inference.conversation import JOURNAL_LIMIT
from pytest_hermes_env.inference.transport import IN_PROCESS_URL


async def send(server: MockServer, requests: range) -> None:
    """Send requests that each begin a conversation, with some KB of text."""
    async with httpx.AsyncClient(transport=server.transport) as client:
        for number in requests:
            body = {"model": "m", "messages": [{"role": "user", "content": f"{number} {'x' * 4000}"}]}
            await client.post(f"{IN_PROCESS_URL}/chat/completions", json=body)


@pytest.mark.parametrize(("limit", "kept"), [(10, 10), (None, 40)])
def test_the_journal_has_a_limit(limit: int | None, kept: int) -> None:
    """The latest requests are kept, or all; the count is always that of all."""
    server = MockServer(lambda _: "done", journal_limit=limit)
    asyncio.run(send(server, range(40)))
    journal = server.journal

    assert (len(journal), journal[-1].conversation is not None, server.request_count) == (kept, True, 40)
    assert journal[-1].conversation is not None
    assert journal[-1].conversation.first_user.startswith("39 ")


def test_memory_is_flat_once_the_journal_is_full() -> None:
    """Of twice as many requests as the journal keeps, the second half adds almost nothing."""
    server = MockServer(lambda _: "done")
    tracemalloc.start()
    try:
        asyncio.run(send(server, range(JOURNAL_LIMIT)))
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        asyncio.run(send(server, range(JOURNAL_LIMIT, 2 * JOURNAL_LIMIT)))
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert after - before < 500 * JOURNAL_LIMIT  # bytes; each request has over 4,000
