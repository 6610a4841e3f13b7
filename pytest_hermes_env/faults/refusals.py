"""Refuses connections: a client's request goes to a port on which nobody listens, so that its errors are the real ones.

Place in the flow: the services of a plan say at which port they listen; requests of httpx and aiohttp to it pass here.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

from pytest_hermes_env.faults.plan import Describe, FaultPlan
from pytest_hermes_env.patches import intercept

REFUSED = frozenset({"refused"})


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

        async def of_aiohttp(real: Any, session: Any, method: str, url: Any, **kwargs: Any) -> Any:
            from yarl import URL  # noqa: PLC0415 - aiohttp's

            target = URL(url)
            if is_refused(method, target, _body_of(kwargs)):
                target = target.with_port(closed)
            return await real(session, method, target, **kwargs)

        with (
            intercept("httpx.AsyncHTTPTransport.handle_async_request", of_httpx),
            intercept("aiohttp.ClientSession._request", of_aiohttp),
        ):
            yield


def _body_of(kwargs: dict[str, Any]) -> bytes:
    import json  # noqa: PLC0415

    data = kwargs.get("data")
    return data if isinstance(data, bytes) else json.dumps(kwargs.get("json"), default=str, ensure_ascii=False).encode()
