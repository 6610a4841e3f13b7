"""Plays the faults of an HTTP service on its real connections, of the mock model or of run-api.

`breaking` wraps its ASGI app. Where a connection is refused, `refusing` sends the client's request to a port on which nobody listens,
so that the client's errors are the real ones.

Source: uvicorn 0.30 to 0.54: ``receive`` is a method of the request's cycle, which holds its transport.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

from pytest_hermes_env.faults.plan import WIRE, Describe, FaultPlan
from pytest_hermes_env.patches import intercept

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

REFUSED = frozenset({"refused"})
SERVED = frozenset(WIRE) - REFUSED
"""A refused connection never arrives."""


def breaking(app: ASGIApp, plan: FaultPlan, describe: Describe) -> ASGIApp:
    """Return an app that answers as ``app`` does, except where the plan has a fault."""

    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        try:
            body = await Request(scope, receive).body()
        except ClientDisconnect:  # it was cancelled while it sent: nobody waits for an answer or a fault
            return
        place, text = describe(scope["path"], body)
        fault = plan.strike(place, f"{scope['method']} {scope['path']}\n{text}", SERVED)
        again = _replayed(body, receive)
        if fault is None:
            await app(scope, again, send)
        elif fault.kind == "slow":
            await asyncio.sleep(fault.seconds)
            await app(scope, again, send)
        elif fault.kind == "hangs":
            await _disconnected(receive)
        elif fault.kind == "reset":
            _reset(receive)
            await _disconnected(receive)
        elif fault.kind in {"cut", "broken_json"}:
            await _half(app, scope, again, send, is_cut=fault.kind == "cut")
        else:
            status, headers, content = fault.answer()
            await JSONResponse(content, status, headers)(scope, again, send)

    return broken


async def _half(app: ASGIApp, scope: Scope, receive: Receive, send: Send, *, is_cut: bool) -> None:
    """Send half of the app's answer: as if it were all, or, if ``is_cut``, with the length of all and then end the connection.

    Of a stream, the last event is half of one, with the end of an event.
    """
    sent: list[Message] = []

    async def keep(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, keep)
    content = b"".join(message.get("body", b"") for message in sent)
    half = content[: len(content) // 2]
    if not is_cut and (start := half.rfind(b"data: ")) > 0 and (end := content.find(b"\n\n", start)) > 0:
        half = content[: start + (end - start) // 2] + b"\n\n"  # a client of a stream reads whole events only
    headers = [pair for pair in sent[0].get("headers", ()) if pair[0].lower() not in {b"content-length", b"transfer-encoding"}]
    length = len(content) if is_cut else len(half)
    await send({**sent[0], "headers": [*headers, (b"content-length", str(length).encode())]})
    await send({"type": "http.response.body", "body": half, "more_body": is_cut})
    if is_cut:
        _transport(receive).close()
        await _disconnected(receive)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _reset(receive: Receive) -> None:
    """Close the connection with a TCP reset, as a process that died does."""
    transport = _transport(receive)
    with contextlib.suppress(OSError):
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def _transport(receive: Any) -> Any:
    return getattr(receive, "real", receive).__self__.transport


class _replayed:  # noqa: N801 - called like a function
    """A ``receive`` that returns the body that was already read, and then what the connection brings."""

    def __init__(self, body: bytes, real: Receive) -> None:
        self.real = real
        self._body: bytes | None = body

    async def __call__(self) -> Message:
        if self._body is None:
            return await self.real()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


@contextlib.contextmanager
def port_or_refusal(plan: FaultPlan | None, place: str, text: str, port: int | None) -> Iterator[int | None]:
    """Yield ``port`` for one request; a port that refuses connections where the plan says so."""
    if plan is None or plan.strike(place, text, REFUSED) is None:
        yield port
        return
    with _closed_port() as closed:
        yield closed


@contextlib.contextmanager
def _closed_port() -> Iterator[int]:
    """Yield a port of loopback that refuses connections, and that nobody else can take meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@contextlib.contextmanager
def refusing(plan: FaultPlan, port: int, describe: Describe) -> Iterator[None]:
    """Refuse the requests to ``port`` for which the plan says so, while the context lasts."""
    with _closed_port() as closed:

        def is_refused(method: str, url: Any, body: bytes) -> bool:
            if url.port != port:
                return False
            place, text = describe(url.path, body)
            return plan.strike(place, f"{method} {url.path}\n{text}", REFUSED) is not None

        async def of_httpx(real: Any, transport: Any, request: Any) -> Any:
            if is_refused(request.method, request.url, await request.aread()):
                request.url = request.url.copy_with(port=closed)
            return await real(transport, request)

        def of_plain_httpx(real: Any, transport: Any, request: Any) -> Any:
            if is_refused(request.method, request.url, request.read()):
                request.url = request.url.copy_with(port=closed)
            return real(transport, request)

        async def of_aiohttp(real: Any, session: Any, method: str, url: Any, **kwargs: Any) -> Any:
            from yarl import URL  # noqa: PLC0415 - aiohttp's

            target = URL(url)
            if is_refused(method, target, _body_of(kwargs)):
                target = target.with_port(closed)
            return await real(session, method, target, **kwargs)

        with (
            intercept("httpx.AsyncHTTPTransport.handle_async_request", of_httpx),
            intercept("httpx.HTTPTransport.handle_request", of_plain_httpx),
            intercept("aiohttp.ClientSession._request", of_aiohttp),
        ):
            yield


def _body_of(kwargs: dict[str, Any]) -> bytes:
    data = kwargs.get("data")
    return data if isinstance(data, bytes) else json.dumps(kwargs.get("json"), default=str, ensure_ascii=False).encode()
