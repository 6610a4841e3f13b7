"""The Starlette app that serves a mock model over HTTP."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

if TYPE_CHECKING:
    from pytest_hermes_env.inference.model import MockModel

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]


def build_app(model: MockModel) -> Starlette:
    """Return the app that passes requests for any path to the model, which refuses unknown endpoints."""

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
