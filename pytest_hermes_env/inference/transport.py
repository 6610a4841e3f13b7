"""The mock model without a socket: an httpx transport that hands each request to the model in the caller's own thread.

Place in the flow: the same place as `MockServer`, for the openai client and anything else on httpx. It costs no thread and no
port, and a request some tenths of a millisecond; what only HTTP on a socket can show (aiohttp clients, connections that break)
needs the server.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from pytest_hermes_env.inference.model import MockModel

__all__ = ["IN_PROCESS_URL", "InProcessTransport"]

IN_PROCESS_URL = "http://mock-model.invalid/v1"
"""Base URL of a client on this transport. Its host never resolves: a client that goes past the transport fails."""


class InProcessTransport(httpx.AsyncBaseTransport):
    """Answers requests by asking ``model`` directly. Delays are waited for, up to the client's own read timeout."""

    def __init__(self, model: MockModel) -> None:
        self._model = model

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the model's answer. Raises: an answer that takes longer than the read timeout → httpx.ReadTimeout."""
        retries = request.headers.get("x-stainless-retry-count", "0")
        attempt = int(retries) if retries.isdecimal() else 0
        reply = self._model.respond(request.method, request.url.path, await request.aread(), attempt=attempt)
        if reply.delay_s:
            patience_s = (request.extensions.get("timeout") or {}).get("read")
            if patience_s is not None and patience_s < reply.delay_s:
                await asyncio.sleep(patience_s)
                raise httpx.ReadTimeout("the mock model took longer than the client waits", request=request)
            await asyncio.sleep(reply.delay_s)
        self._model.delivered(reply)
        headers = {"content-type": reply.media_type}
        return httpx.Response(reply.status, headers=headers, content=reply.content, request=request)
