"""Plays the faults of an HTTP service on its real connections: wraps the ASGI app of the mock model or of run-api.

Source: uvicorn 0.30 to 0.54: ``receive`` is a method of the request's cycle, which holds its transport.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import socket
import struct
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.faults.plan import WIRE, Describe, FaultPlan, PlannedFault

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

SERVED = frozenset(WIRE) - {"refused"}
"""A refused connection never arrives."""


def breaking(app: ASGIApp, plan: FaultPlan, describe: Describe) -> ASGIApp:
    """Return an app that answers as ``app`` does, except where the plan has a fault."""

    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        body = await _body(receive)
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
            await _error(fault, send)

    return broken


async def _error(fault: PlannedFault, send: Send) -> None:
    is_limit = fault.kind == "rate_limited"
    status = HTTPStatus.TOO_MANY_REQUESTS if is_limit else HTTPStatus.INTERNAL_SERVER_ERROR
    content = json.dumps({"error": {"message": f"planned fault: {fault}", "type": fault.kind, "code": int(status)}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    if is_limit:
        headers.append((b"retry-after", str(math.ceil(fault.seconds)).encode()))
    await send({"type": "http.response.start", "status": int(status), "headers": headers})
    await send({"type": "http.response.body", "body": content})


async def _half(app: ASGIApp, scope: Scope, receive: Receive, send: Send, *, is_cut: bool) -> None:
    """Send half of the app's answer: as if it were all, or, if ``is_cut``, with the length of all and then end the connection."""
    sent: list[Message] = []

    async def keep(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, keep)
    content = b"".join(message.get("body", b"") for message in sent)
    half = content[: len(content) // 2]
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


async def _body(receive: Receive) -> bytes:
    body: bytes = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


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
