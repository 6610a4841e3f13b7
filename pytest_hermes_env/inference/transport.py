"""How requests reach a mock model: over HTTP, as a Starlette app, or without a socket, as an httpx transport.

Place in the flow: `MockServer` serves the app. The transport is for the openai client and other httpx clients: it needs no thread and
no port, and a request takes some tenths of a millisecond. Clients on aiohttp, and tests of broken connections, need the server.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request

    from pytest_hermes_env.inference.model import MockModel

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
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


def build_app(model: MockModel) -> Starlette:
    """Return the app that passes requests for any path to the model, which refuses unknown endpoints."""
    from starlette.applications import Starlette  # noqa: PLC0415 -- takes 40 ms
    from starlette.requests import ClientDisconnect  # noqa: PLC0415
    from starlette.responses import Response  # noqa: PLC0415
    from starlette.routing import Route  # noqa: PLC0415

    async def endpoint(request: Request) -> Response:
        try:
            data = await request.body()
        except ClientDisconnect:
            return Response(status_code=499)
        reply = model.respond(request.method, request.url.path, data, request.headers)
        if reply.delay_s and not await _wait(request, reply.delay_s):
            return Response(status_code=499)
        model.delivered(reply)
        return Response(reply.content, status_code=reply.status, media_type=reply.media_type)

    return Starlette(routes=[Route("/{path:path}", endpoint, methods=METHODS)])


async def _wait(request: Request, delay_s: float) -> bool:
    """Return True after the delay, or False as soon as the client disconnects or the server stops."""
    try:
        async with asyncio.timeout(delay_s):
            while (await request.receive())["type"] != "http.disconnect":
                pass
    except TimeoutError:
        return True
    return False
