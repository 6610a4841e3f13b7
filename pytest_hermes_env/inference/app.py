"""The HTTP face of a mock model: Starlette routes that read a request, wait if told to, and answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_hermes_env.inference.model import MockModel, Reply

__all__ = ["build_app"]

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]


def build_app(model: MockModel) -> Starlette:
    """Return the app that answers for the model: each endpoint with and without ``/v1``, anything else as 404."""

    def chat(path: str, data: bytes, attempt: int) -> Reply:
        return model.chat(path, data, attempt=attempt)

    def completion(path: str, data: bytes, attempt: int) -> Reply:
        return model.completion(path, data, attempt=attempt)

    async def models(request: Request) -> Response:
        return await _send(model, request, model.models(request.url.path))

    async def health(request: Request) -> Response:
        return await _send(model, request, model.health(request.url.path))

    async def not_found(request: Request) -> Response:
        return await _send(model, request, model.not_found(request.method, request.url.path))

    routes = []
    for prefix in ("/v1", ""):
        routes += [
            Route(f"{prefix}/chat/completions", _reading(model, chat), methods=["POST"]),
            Route(f"{prefix}/completions", _reading(model, completion), methods=["POST"]),
            Route(f"{prefix}/models", models, methods=["GET"]),
            Route(f"{prefix}/health", health, methods=["GET"]),
        ]
    # A wrong method on a known path matches its route only in part, so the last route must be tried for it, too.
    every_path = Route("/{path:path}", not_found, methods=METHODS)
    return Starlette(routes=[*routes, every_path])


def _reading(model: MockModel, answer: Callable[[str, bytes, int], Reply]) -> Callable[[Request], object]:
    async def endpoint(request: Request) -> Response:
        try:
            data = await request.body()
        except ClientDisconnect:
            return Response(status_code=499)
        retries = request.headers.get("x-stainless-retry-count", "0")
        attempt = int(retries) if retries.isdecimal() else 0
        return await _send(model, request, answer(request.url.path, data, attempt))

    return endpoint


async def _send(model: MockModel, request: Request, reply: Reply) -> Response:
    if reply.delay_s and not await _wait(request, reply.delay_s):
        return Response(status_code=499)
    model.delivered(reply)
    return Response(reply.content, status_code=reply.status, media_type=reply.media_type)


async def _wait(request: Request, delay_s: float) -> bool:
    """Return True after the delay, or False as soon as the client has gone (stopping the server looks the same)."""
    try:
        async with asyncio.timeout(delay_s):
            while (await request.receive())["type"] != "http.disconnect":
                pass
    except TimeoutError:
        return True
    return False
