"""Counts the calls that an environment makes with clients of its own, such as a judge's ``AsyncOpenAI(base_url=...)``.

Place in the flow: a live test enters `counting_own_clients` for all of its length. httpx (the openai client, both kinds), aiohttp and
requests are taken where their requests leave, as a class; what the environment's own servers ask is counted by `MeteredTransport`
already and passes. urllib and libraries with sockets of their own are not seen.
"""

from __future__ import annotations

import contextlib
import functools
import json
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock
from urllib.parse import SplitResult, urlsplit

import aiohttp
import httpx

from pytest_hermes_env.live.limits import Usage
from pytest_hermes_env.live.metering import EVENTS, Meter, MeteredTransport, is_counted_above, outcome_of, usage_of_events
from pytest_hermes_env.live.network_guard import is_this_machine

__all__ = ["asks_a_model", "counting_own_clients"]

ENDPOINTS = ("/chat/completions", "/completions", "/responses", "/embeddings", "/messages", "/generate")
"""Ends of the paths that cost something."""
PORTS = {"http": 80, "https": 443}


def asks_a_model(url: str, base_url: str) -> bool:
    """Tell whether a POST to ``url`` is to be counted: it asks a model, of the run's own server or of one on another machine.

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
def counting_own_clients(meter: Meter, base_url: str) -> Iterator[None]:
    """Count what any client of this process asks a model while the context lasts; when a limit is reached, nothing is sent.

    Raises: in the client's call, a limit is reached → BudgetSpent, which the openai client shows as its connection error.
    """

    def counts(method: str, url: str) -> bool:
        return method.upper() == "POST" and not is_counted_above() and asks_a_model(url, base_url)

    with contextlib.ExitStack() as patches:
        for owner, name, wrap in (
            (httpx.AsyncHTTPTransport, "handle_async_request", _httpx_async),
            (httpx.HTTPTransport, "handle_request", _httpx_sync),
            (aiohttp.ClientSession, "_request", _aiohttp),
            *_requests(),
        ):
            patches.enter_context(mock.patch.object(owner, name, wrap(meter, counts, getattr(owner, name))))
        yield


Counts = Callable[[str, str], bool]


class _Call:
    """One call from its beginning to its end. Raises: a limit is reached → BudgetSpent."""

    def __init__(self, meter: Meter, body: Any) -> None:
        self._meter = meter
        self._model = str(body.get("model", "")) if isinstance(body, dict) else ""
        self._number, self._began = meter.begin(), time.monotonic()

    def end(self, usage: Usage | None, status: int | str) -> None:
        self._meter.end(
            self._number, usage, status=status, seconds=time.monotonic() - self._began, turn=0, asked_model=self._model
        )

    def answered(self, status: int, content: bytes) -> None:
        self.end(*outcome_of(status, content))


class _Through(httpx.AsyncBaseTransport):
    """The real method of one transport, as a transport."""

    def __init__(self, held: httpx.AsyncHTTPTransport, real: Any) -> None:
        self._held = held
        self._real = real

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response: httpx.Response = await self._real(self._held, request)
        return response


def _httpx_async(meter: Meter, counts: Counts, real: Any) -> Any:
    @functools.wraps(real)
    async def handle_async_request(self: Any, request: httpx.Request) -> httpx.Response:
        if not counts(request.method, str(request.url)):
            return await real(self, request)  # type: ignore[no-any-return]
        return await MeteredTransport(_Through(self, real), meter, is_own_client=True).handle_async_request(request)

    return handle_async_request


def _httpx_sync(meter: Meter, counts: Counts, real: Any) -> Any:
    @functools.wraps(real)
    def handle_request(self: Any, request: httpx.Request) -> httpx.Response:
        if not counts(request.method, str(request.url)):
            return real(self, request)  # type: ignore[no-any-return]
        call = _Call(meter, _json(request.read()))
        try:
            response: httpx.Response = real(self, request)
            if response.headers.get("content-type", "").startswith(EVENTS) and response.is_success:
                response.stream = _SyncTee(response.stream, lambda said: call.end(usage_of_events(said), response.status_code))
                return response
            _keep_body(response)
        except BaseException as error:
            call.end(None, type(error).__name__)
            raise
        call.answered(response.status_code, response.content)
        return response

    return handle_request


def _keep_body(response: httpx.Response) -> None:
    """Read a response, and leave its bytes to whoever reads its stream again, as the recorder of a cassette does."""
    if isinstance(response.stream, httpx.SyncByteStream) and not response.is_closed:
        raw = b"".join(response.stream)
        response.stream.close()
        response.stream = httpx.ByteStream(raw)
    response.read()


class _SyncTee(httpx.SyncByteStream):
    """A stream that passes its bytes on, and tells all of them when it is closed."""

    def __init__(self, stream: Any, tell: Callable[[bytes], None]) -> None:
        self._stream = stream
        self._tell: Callable[[bytes], None] | None = tell
        self._seen = bytearray()

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            self._seen += chunk
            yield chunk

    def close(self) -> None:
        tell, self._tell = self._tell, None
        if tell is not None:
            tell(bytes(self._seen))
        self._stream.close()


def _aiohttp(meter: Meter, counts: Counts, real: Any) -> Any:
    @functools.wraps(real)
    async def request(self: Any, method: str, str_or_url: Any, **kwargs: Any) -> Any:
        if not counts(method, str(self._build_url(str_or_url))):
            return await real(self, method, str_or_url, **kwargs)
        call = _Call(meter, kwargs.get("json") or _json(kwargs.get("data")))
        try:
            response = await real(self, method, str_or_url, **kwargs)
            if response.content_type == EVENTS and response.ok:
                call.end(Usage(), response.status)  # its reader takes the chunks: what they say is not known
                return response
            content = await response.read()
        except BaseException as error:
            call.end(None, getattr(error, "status", 0) or type(error).__name__)
            raise
        call.answered(response.status, content)
        return response

    return request


def _requests() -> list[tuple[Any, str, Any]]:
    """Return where requests leave the library of that name, where it is installed."""
    try:
        from requests.adapters import HTTPAdapter  # type: ignore[import-untyped]  # noqa: PLC0415 - not a dependency of ours
    except ImportError:
        return []
    return [(HTTPAdapter, "send", _requests_send)]


def _requests_send(meter: Meter, counts: Counts, real: Any) -> Any:
    @functools.wraps(real)
    def send(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        if not counts(request.method or "", request.url or ""):
            return real(self, request, *args, **kwargs)
        call = _Call(meter, _json(request.body))
        try:
            response = real(self, request, *args, **kwargs)
            if response.headers.get("content-type", "").startswith(EVENTS) and response.ok:
                call.end(Usage(), response.status_code)
                return response
            content = response.content
        except BaseException as error:
            call.end(None, type(error).__name__)
            raise
        call.answered(response.status_code, content)
        return response

    return send


def _json(content: Any) -> Any:
    if not isinstance(content, str | bytes):
        return None
    try:
        return json.loads(content)
    except ValueError:
        return None
