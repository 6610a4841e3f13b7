"""Counts the calls to a model where they leave the process: of an environment's servers, and of its own clients, such as a judge's.

Place in the flow: a live test runs inside `counting_calls`. Requests of httpx (both kinds of openai client), aiohttp (``/generate``)
and requests are intercepted where they leave the library. urllib and libraries that open their own sockets are not seen.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

import aiohttp
import httpx

from pytest_hermes_env.live.limits import Usage
from pytest_hermes_env.live.metering import Meter, MeteredCall, json_or_none
from pytest_hermes_env.own_machine import is_this_machine
from pytest_hermes_env.patches import intercept

ENDPOINTS = ("/chat/completions", "/completions", "/responses", "/embeddings", "/messages", "/generate")
"""Ends of the paths that cost something."""
PORTS = {"http": 80, "https": 443}


def asks_a_model(url: str, base_url: str) -> bool:
    """Return whether a POST to ``url`` is counted: it asks a model, on the run's own server or on another machine.

    Other ports of this machine are test doubles and cost nothing.
    """
    parts = urlsplit(url)
    if not parts.path.rstrip("/").endswith(ENDPOINTS):
        return False
    return not is_this_machine(parts.hostname or "") or _origin(parts) == _origin(urlsplit(base_url))


def _origin(parts: SplitResult) -> tuple[str, int | None]:
    host = parts.hostname or ""
    return "this machine" if is_this_machine(host) else host, parts.port or PORTS.get(parts.scheme)


@contextlib.contextmanager
def counting_calls(meter: Meter, base_url: str) -> Iterator[None]:
    """Count every request of this process to a model while the context lasts; nothing is sent once a limit is reached.

    Raises: in the client's call, a limit is reached → BudgetSpent, which the openai client shows as its connection error.
    """
    counted = _Counted(meter=meter, base_url=base_url)
    handlers: dict[str, Callable[..., Any]] = {
        "httpx.AsyncHTTPTransport.handle_async_request": counted.by_httpx,
        "httpx.HTTPTransport.handle_request": counted.by_httpx_sync,
        "aiohttp.ClientSession._request": counted.by_aiohttp,
    }
    if importlib.util.find_spec("requests") is not None:  # not a dependency of ours
        handlers["requests.adapters.HTTPAdapter.send"] = counted.by_requests
    with contextlib.ExitStack() as patches:
        for target, handler in handlers.items():
            patches.enter_context(intercept(target, handler))
        yield


@dataclass(frozen=True, kw_only=True)
class _Counted:
    """The handlers that stand in for the libraries' functions; ``real`` is the library's own."""

    meter: Meter
    base_url: str

    def _counts(self, method: str, url: str) -> bool:
        return method.upper() == "POST" and asks_a_model(url, self.base_url)

    def _call(self, body: Any) -> MeteredCall:
        return MeteredCall(self.meter, body if isinstance(body, dict) else json_or_none(body))

    async def by_httpx(self, real: Any, held: Any, request: httpx.Request) -> httpx.Response:
        """Count a request of an asynchronous client; one to the run's server also asks for its cost."""
        if not self._counts(request.method, str(request.url)):
            return await real(held, request)  # type: ignore[no-any-return]
        body = json_or_none(await request.aread())
        if self.meter.extra and isinstance(body, dict) and str(request.url).startswith(self.base_url):
            request = _with_body(request, {**self.meter.extra, **body})
        with self._call(body) as call:
            response = await call.in_time(_received(real(held, request)))
        call.answered(response.status_code, response.content)
        return response

    def by_httpx_sync(self, real: Any, held: Any, request: httpx.Request) -> httpx.Response:
        """Count a request of a synchronous client."""
        if not self._counts(request.method, str(request.url)):
            return real(held, request)  # type: ignore[no-any-return]
        with self._call(request.read()) as call:
            response: httpx.Response = real(held, request)
            if isinstance(response.stream, httpx.SyncByteStream) and not response.is_closed:
                raw = b"".join(response.stream)
                response.stream.close()
                response.stream = httpx.ByteStream(raw)
            response.read()
        call.answered(response.status_code, response.content)
        return response

    async def by_aiohttp(self, real: Any, session: Any, method: str, str_or_url: Any, **kwargs: Any) -> aiohttp.ClientResponse:
        """Count a request of aiohttp. The usage of a stream is unknown: its reader takes the chunks."""
        if not self._counts(method, str(session._build_url(str_or_url))):  # noqa: SLF001 - resolves against the session's base URL
            return await real(session, method, str_or_url, **kwargs)  # type: ignore[no-any-return]
        with self._call(kwargs.get("json") or kwargs.get("data")) as call:
            response: aiohttp.ClientResponse = await call.in_time(real(session, method, str_or_url, **kwargs))
            is_stream = response.content_type == "text/event-stream"
            content = b"" if is_stream else await response.read()
        if is_stream:
            call.end(Usage(), response.status)
        else:
            call.answered(response.status, content)
        return response

    def by_requests(self, real: Any, adapter: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Count a request of requests."""
        if not self._counts(request.method or "", request.url or ""):
            return real(adapter, request, *args, **kwargs)
        with self._call(request.body) as call:
            response = real(adapter, request, *args, **kwargs)
            content = response.content
        call.answered(response.status_code, content)
        return response


async def _received(answer: Awaitable[httpx.Response]) -> httpx.Response:
    """Return a response, also a stream, that was read to its end so that it can be read again: by its client, by a recorder."""
    response = await answer
    if isinstance(response.stream, httpx.AsyncByteStream) and not response.is_closed:
        raw = b"".join([chunk async for chunk in response.stream])
        await response.stream.aclose()
        response.stream = httpx.ByteStream(raw)
    await response.aread()
    return response


def _with_body(request: httpx.Request, body: dict[str, Any]) -> httpx.Request:
    headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"content-length"]
    return httpx.Request(request.method, request.url, headers=headers, content=json.dumps(body), extensions=request.extensions)
