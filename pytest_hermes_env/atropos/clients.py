"""HTTP clients that close with their event loop, and calls that fail at the first failure.

An unclosed openai client fails the next test under ``-W error``, and it can only be closed in the loop that it was used in, which
is gone when a fixture ends. `tame` gives a server a client whose connections close with the loop. It also removes the retries:
three layers of them turn one failing call into 27 requests and 17 seconds.
"""

from __future__ import annotations

import asyncio
import functools
import os
import ssl
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

import httpx

from pytest_hermes_env.patches import assign


class LoopBoundTransport(httpx.AsyncBaseTransport):
    """One connection pool per event loop, closed when its loop shuts down.

    ``asyncio.run`` and every Runner close the asynchronous generators of their loop at the end; a generator's ``finally`` closes
    the pool.
    """

    def __init__(self, *, proxy: str | None = None) -> None:
        self._proxy = proxy
        self._pools: dict[asyncio.AbstractEventLoop, httpx.AsyncHTTPTransport] = {}
        self._guards: dict[asyncio.AbstractEventLoop, AsyncGenerator[None]] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send over the running loop's pool."""
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            context = _tls_context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
            self._pools[loop] = httpx.AsyncHTTPTransport(proxy=self._proxy, verify=context)
            guard = self._guards[loop] = self._close_with(loop)
            await guard.__anext__()
        return await self._pools[loop].handle_async_request(request)

    async def _close_with(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            pool = self._pools.pop(loop, None)
            self._guards.pop(loop, None)
            if pool is not None:
                await pool.aclose()

    async def aclose(self) -> None:
        """Close the running loop's pool; the pools of other loops close with their loops."""
        guard = self._guards.get(asyncio.get_running_loop())
        if guard is not None:
            await guard.aclose()


@functools.cache
def _tls_context(*_places: str | None) -> ssl.SSLContext:
    """Return one context for all pools: reading the certificate authorities, from these places, takes longer than a scripted rollout."""
    return httpx.create_ssl_context()


def tame(server: Any, transport: httpx.AsyncBaseTransport | None = None, *, retries: int = 0) -> None:
    """Make one atroposlib server fail at the first failure, and close its connections with the event loop.

    ``transport`` carries its requests instead of sockets. ``retries`` is the number of the openai client's own retries, which wait
    for the server's ``retry-after``; a mock model needs none.
    """
    from tenacity import stop_after_attempt  # noqa: PLC0415 - atroposlib's own

    kind = type(server)
    for name in dir(kind):
        method: Any = getattr(kind, name, None)
        if hasattr(method, "retry_with"):
            once = method.retry_with(stop=stop_after_attempt(1), reraise=True)
            assign("APIServer.*", once.__get__(server), owner=server, name=name)
    client = getattr(server, "openai", None)
    if client is not None:
        hooks = {"request": [] if retries else [_uncounted]}
        http_client = httpx.AsyncClient(transport=transport or LoopBoundTransport(), timeout=client.timeout, event_hooks=hooks)
        assign("APIServer.openai", client.copy(max_retries=retries, http_client=http_client), owner=server)
        _run_to_end(client.close())


async def _uncounted(request: httpx.Request) -> None:
    """Send no count of retries: where the layer tries a rollout again, the client would call each of its requests the first."""
    request.headers.pop("x-stainless-retry-count", None)


def release(server: Any) -> None:
    """Cancel a server's health check if it still runs in an open loop."""
    task = getattr(server, "check_task", None)
    if task is not None and not task.done() and not task.get_loop().is_closed():
        task.get_loop().call_soon_threadsafe(task.cancel)


def _run_to_end(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that never waits: closing an unused client."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(coroutine)
        finally:
            loop.close()
        return
    try:
        coroutine.send(None)
    except StopIteration:
        return
    coroutine.close()
