"""The HTTP interface of a rollout service.

``POST /rollout`` runs one rollout, ``GET /tasks?split=train|eval&n=N`` lists items with their prompts, and ``GET /health``, which needs
no token, has the environment's identity, the load and the rollouts by end. Every answer is JSON; an error names its cause, for a rollout
the end.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from environments.loop.end import RolloutEnd
from environments.rollout.concurrency import to_the_end
from environments.service.identity import PROTOCOL
from environments.service.service import RolloutFailed, RolloutRequest, RolloutService, engine_key, without_key
from environments.service.waiting_line import Refused

logger = logging.getLogger(__name__)

STATUS_OF_END = {
    RolloutEnd.MODEL_FAILED: HTTPStatus.BAD_GATEWAY,
    RolloutEnd.ABORTED_BY_SERVER: HTTPStatus.BAD_GATEWAY,
    "cancelled": HTTPStatus.SERVICE_UNAVAILABLE,
    "rollout_timeout": HTTPStatus.GATEWAY_TIMEOUT,
}
"""The status of a rollout that failed; 500 for any other end."""

PROXY_HEADERS = frozenset({"forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"})
"""A request with one of them came through a proxy: its address is not the client's."""
MOST_TASKS = 100_000
RETRY_AFTER = {"Retry-After": "1"}


def build_app(service: RolloutService, *, token: str, max_body: int) -> Starlette:
    """Return the app. ``max_body`` is the size of the largest request, in bytes."""

    async def health(_request: Request) -> Response:
        line = service.line
        return JSONResponse(
            {
                "status": "draining" if line.is_closed else "ok",
                "protocol": PROTOCOL,
                "identity": service.identity,
                "running": len(line.running),
                "waiting": line.waiting,
                "concurrency": line.places,
                "queue": line.length,
                "rollouts": dict(service.counts),
            }
        )

    async def tasks(request: Request) -> Response:
        _check_token(request, token)
        split, count = request.query_params.get("split", "train"), request.query_params.get("n")
        if split not in {"train", "eval"}:
            raise Refused(422, "bad_request", "split must be train or eval")
        if count is not None and not (count.isdecimal() and 1 <= int(count) <= MOST_TASKS):
            raise Refused(422, "bad_request", f"n must be an integer from 1 to {MOST_TASKS}")
        found = await service.tasks.tasks(split, None if count is None else int(count))
        return JSONResponse({"environment": type(service.env).__name__, "split": split, "tasks": found})

    async def rollout(request: Request) -> Response:
        body = await _body(
            request, max_body
        )  # first: of a connection that ends with unread bytes, the client may not see the answer
        _check_token(request, token)
        asked = _parsed(body)
        engine_key.set(asked.api_key.get_secret_value())
        is_direct = request.client is not None and PROXY_HEADERS.isdisjoint(request.headers)
        service.check(asked, request.client.host if request.client is not None and is_direct else None)
        return JSONResponse(await _until_gone(request, service.rollout(asked)))

    return Starlette(
        routes=[Route("/health", health), Route("/tasks", tasks), Route("/rollout", rollout, methods=["POST"])],
        exception_handlers=dict.fromkeys((Refused, RolloutFailed, HTTPException), _answer_to),
        # a handler of Exception above would be Starlette's last: it raises the error again, and uvicorn ends the connection
        middleware=[Middleware(ExceptionMiddleware, handlers={Exception: _answer_to})],
    )


async def _answer_to(request: Request, error: Exception) -> Response:
    """Return the response to an error. One of the service itself is logged."""
    if isinstance(error, Refused):
        return _error(error.status, error.code, str(error), RETRY_AFTER if error.status in {429, 503} else None)
    if isinstance(error, RolloutFailed):
        status, done = STATUS_OF_END.get(error.code, HTTPStatus.INTERNAL_SERVER_ERROR), error.outcome
        return _error(status, error.code, str(error), turns=done and done.turns, messages=done and done.messages)
    if isinstance(error, HTTPException):
        return _error(error.status_code, HTTPStatus(error.status_code).name.lower(), error.detail)
    logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _error(HTTPStatus.INTERNAL_SERVER_ERROR, "service_failed", f"{type(error).__name__}: {error}")


def _check_token(request: Request, token: str) -> None:
    given = request.headers.get("authorization", "")
    if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        raise Refused(401, "unauthorized", "send the service's token: Authorization: Bearer ...")


def _error(status: int, code: str, message: str, headers: dict[str, str] | None = None, **more: Any) -> Response:
    error = {"code": code, "message": without_key(message), **more}
    return Response(json.dumps({"error": error}, default=str), status, headers, media_type="application/json")


async def _body(request: Request, limit: int) -> bytes:
    """Return the body. Raises: Refused if it is longer than ``limit``; what follows, up to as much again, is read and thrown away."""
    body, size = bytearray(), 0
    async for part in request.stream():
        size += len(part)
        if size <= limit:
            body += part
        elif size > 2 * limit:
            break
    if size > limit:
        raise Refused(413, "request_entity_too_large", f"the request has more than {limit} bytes")
    return bytes(body)


def _parsed(body: bytes) -> RolloutRequest:
    """Return the request. Raises: Refused, which never quotes a value."""
    try:
        return RolloutRequest.model_validate(json.loads(body, parse_constant=_no_constant))
    except ValidationError as error:
        rows = (
            f"{'.'.join(map(str, row['loc']))}: {row['msg']}" for row in error.errors(include_input=False, include_url=False)
        )
        raise Refused(422, "bad_request", "; ".join(rows)) from None
    except (ValueError, RecursionError) as error:
        raise Refused(400, "bad_request", f"the body is not JSON: {error}") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


async def _until_gone(request: Request, rollout: Any) -> Any:
    """Await the rollout; cancel it, and wait until its sandbox is released, when the client goes away or the server stops."""
    running = asyncio.ensure_future(rollout)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({running, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        if not running.done():
            running.cancel()
            await to_the_end(asyncio.gather(running, return_exceptions=True))
    if running.cancelled():
        raise RolloutFailed("cancelled", "the service ended before the rollout did")
    return running.result()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
