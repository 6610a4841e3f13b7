"""An httpx transport that passes requests to the mock model directly, without a socket.

Place in the flow: an alternative to `MockServer`, for the openai client and other httpx clients. It needs no thread and no port, and
a request takes some tenths of a millisecond. Clients on aiohttp, and tests of broken connections, need the server.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from pytest_hermes_env.inference.model import MockModel

IN_PROCESS_URL = "http://mock-model.invalid/v1"
"""Base URL of a client on this transport. Its host never resolves, so a client that bypasses the transport fails."""


class InProcessTransport(httpx.AsyncBaseTransport):
    """Answers requests from ``model``. Waits for scripted delays, up to the client's read timeout."""

    def __init__(self, model: MockModel) -> None:
        self._model = model

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the model's answer. Raises: a delay beyond the read timeout → httpx.ReadTimeout."""
        reply = self._model.respond(request.method, request.url.path, await request.aread(), request.headers)
        if reply.delay_s:
            timeout_s = (request.extensions.get("timeout") or {}).get("read")
            if timeout_s is not None and timeout_s < reply.delay_s:
                await asyncio.sleep(timeout_s)
                raise httpx.ReadTimeout("the mock model's answer took longer than the client's read timeout", request=request)
            await asyncio.sleep(reply.delay_s)
        self._model.delivered(reply)
        headers = {"content-type": reply.media_type}
        return httpx.Response(reply.status, headers=headers, content=reply.content, request=request)
