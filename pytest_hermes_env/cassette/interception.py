"""Intercepts HTTP clients: requests to inference servers go to a session, all others pass.

vcrpy's stubs read the requests of httpx (the openai client) and aiohttp (atroposlib's vLLM and SGLang servers) and build the
responses; `VcrAdapter` is the cassette that they get. The session does matching, order and storage, so the cost of a call does not grow
with the number of recorded calls. Code around the stubs adds what they lack: failures.

Source: vcrpy 9, vcr/stubs/httpx_stubs.py and aiohttp_stubs.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from http import HTTPStatus
from http.client import responses
from typing import Any, Protocol
from urllib.parse import urlsplit

import aiohttp
import httpx
from vcr.stubs.aiohttp_stubs import vcr_request
from vcr.stubs.httpx_stubs import vcr_handle_async_request, vcr_handle_request

from pytest_hermes_env.cassette.tape import ModelCall, ModelReply, ModelRequest, as_bytes, as_reply_body, as_request
from pytest_hermes_env.errors import CassetteMiss
from pytest_hermes_env.patches import intercept
from pytest_hermes_env.redaction.secret_names import secrets_sent

ENDPOINTS = (
    "chat/completions",
    "completions",
    "responses",
    "embeddings",
    "messages",
    "generate",
    "health_generate",
    "health",
    "get_model_info",
    "get_server_info",
    "tokenize",
    "detokenize",
    r"models(?:/.+)?",
)
"""Ends of the paths of inference servers."""

_ENDPOINT = re.compile(rf"(?:^|/)({'|'.join(ENDPOINTS)})/?$")

BAD_REQUEST = 400
MISS_HEADER = "x-hermes-cassette"

CANCELLED = "Cancelled"
"""The failure of a request that its client cancelled before an answer came."""

PATIENCE_S = 5.0
"""Seconds that the replay of such a request waits to be cancelled, beyond twice its recorded time."""

AT_ONCE = {"retry-after-ms": "1"}
"""Lets the openai client retry a replayed failure without the pause that the real server requested."""


class Exchange:
    """One request on its way. ``reply`` is the recorded reply, None while the real server is asked.

    ``secrets`` are the keys that it carried, by name: they are never stored, and an answer may repeat them.
    """

    def __init__(self) -> None:
        self.request: ModelRequest | None = None
        self.reply: ModelReply | None = None
        self.record: Callable[[ModelCall], None] | None = None
        self.secrets: Mapping[str, str] = {}
        self.started = time.monotonic()


class Exchanges(Protocol):
    """The interface of a session."""

    def ask(self, exchange: Exchange) -> None:
        """Set the reply of ``exchange``, or leave it unset to ask the real server."""

    def answered(self, exchange: Exchange, reply: ModelReply) -> None:
        """Record the real server's reply."""

    def waited(self, seconds: float, recorded_s: float) -> CassetteMiss:
        """Return the error of a request that was cancelled in the recording and is not cancelled now."""


def endpoint_of(url: str) -> str:
    """Return the path of a request to an inference server, such as "/chat/completions"; empty for any other address."""
    found = _ENDPOINT.search(urlsplit(url).path)
    return f"/{found[1]}" if found else ""


class VcrAdapter:
    """The cassette that vcrpy's stubs get."""

    write_protected = False

    def __init__(self, exchanges: Exchanges) -> None:
        self.exchanges = exchanges
        self._running: ContextVar[Exchange] = ContextVar("hermes_env_exchange")

    def can_play_response_for(self, request: Any) -> bool:
        """Ask the session, and return whether it has a reply."""
        exchange = self._running.get()
        request.exchange = exchange
        exchange.request = as_request(request.method, endpoint_of(request.uri), request.body)
        exchange.secrets = secrets_sent(request.uri, {name: str(value) for name, value in request.headers.items()})
        self.exchanges.ask(exchange)
        return exchange.reply is not None

    def play_response(self, request: Any) -> dict[str, Any]:
        """Return the reply in vcrpy's form. Raises: a recorded failure, as `_Failure`."""
        reply: ModelReply = request.exchange.reply
        if reply.failure:
            raise _Failure(reply)
        headers = {**reply.headers, **(AT_ONCE if reply.status >= BAD_REQUEST else {})}
        return {
            "status": {"code": reply.status, "message": responses.get(reply.status, "Unknown")},
            "headers": {name: [value] for name, value in headers.items()},
            "body": {"string": as_bytes(reply)},
        }

    def append(self, request: Any, response: Mapping[str, Any]) -> None:
        """Record the real server's answer."""
        exchange = self._running.get()
        status: int = response["status"]["code"]
        is_redirected = not hasattr(request, "exchange")  # aiohttp follows redirects itself, and passes every one here
        if is_redirected and HTTPStatus.MULTIPLE_CHOICES <= status < BAD_REQUEST:
            return
        headers = {name.lower(): values[-1] for name, values in response["headers"].items()}
        body, kind, kept = as_reply_body(response["body"].get("string") or b"", headers)
        self.exchanges.answered(exchange, ModelReply(status=status, headers=kept, body=body, body_kind=kind))

    def filter_request(self, request: Any) -> Any:
        """Return the request: every request is recorded."""
        return request

    def find_requests_with_most_matches(self, request: Any) -> list[Any]:
        """Return nothing: redirects are not followed inside of a cassette."""
        del request
        return []

    @contextlib.contextmanager
    def exchange(self, raising: Callable[[ModelReply], Exception]) -> Iterator[None]:
        """Pass one request through a stub; record a failure of the real server, raise a recorded one as ``raising`` returns it."""
        running = Exchange()
        token = self._running.set(running)
        try:
            yield
        except _Failure as failure:
            raise raising(failure.reply) from None
        except (Exception, asyncio.CancelledError) as error:
            if running.request is not None and running.reply is None and running.record is not None:
                self.exchanges.answered(running, _failure_of(error, time.monotonic() - running.started))
            raise
        finally:
            self._running.reset(token)


class _Failure(Exception):
    """A reply that is a failure, on its way to the code that raises the client's own exception."""

    def __init__(self, reply: ModelReply) -> None:
        self.reply = reply


def _failure_of(error: BaseException, seconds: float) -> ModelReply:
    name = CANCELLED if isinstance(error, asyncio.CancelledError) else type(error).__name__
    return ModelReply(status=0, failure=name, body=str(error), body_kind="text", seconds=round(seconds, 3))


@contextlib.contextmanager
def intercepting(exchanges: Exchanges, *transports: type) -> Iterator[None]:
    """Intercept all requests of httpx and aiohttp while the context lasts; ``transports`` are further classes like httpx' own."""
    adapter = VcrAdapter(exchanges)
    with contextlib.ExitStack() as patches:
        for kind in (httpx.AsyncHTTPTransport, *transports):
            handler = functools.partial(_httpx_async, adapter)
            patches.enter_context(intercept("httpx.AsyncHTTPTransport.handle_async_request", handler, owner=kind))
        patches.enter_context(intercept("httpx.HTTPTransport.handle_request", functools.partial(_httpx_sync, adapter)))
        patches.enter_context(intercept("aiohttp.ClientSession._request", functools.partial(_aiohttp, adapter)))
        yield


# ---------------------------------------------------------------------- httpx


async def _httpx_async(adapter: VcrAdapter, real: Any, transport: Any, request: httpx.Request) -> httpx.Response:
    url = str(request.url)
    if not endpoint_of(url):
        return await real(transport, request)  # type: ignore[no-any-return]
    stub: Any = vcr_handle_async_request(adapter, real, httpx)
    try:
        with adapter.exchange(_httpx_error):
            return await stub(transport, request)  # type: ignore[no-any-return]
    except CassetteMiss as miss:
        return _refusal(miss)
    except _Cancelled as cancelled:
        return _refusal(adapter.exchanges.waited(await cancelled.wait(), cancelled.seconds))


def _httpx_sync(adapter: VcrAdapter, real: Any, transport: Any, request: httpx.Request) -> httpx.Response:
    url = str(request.url)
    if not endpoint_of(url):
        return real(transport, request)  # type: ignore[no-any-return]
    stub: Any = vcr_handle_request(adapter, real, httpx)
    try:
        with adapter.exchange(_httpx_error):
            return stub(transport, request)  # type: ignore[no-any-return]
    except CassetteMiss as miss:
        return _refusal(miss)
    except _Cancelled as cancelled:  # recorded by an asynchronous client: this one cannot be cancelled
        return _refusal(adapter.exchanges.waited(0.0, cancelled.seconds))


def _refusal(miss: CassetteMiss) -> httpx.Response:
    """Return an answer that says what is missing: the openai client would retry an exception and lose its text."""
    error = {"message": f"{type(miss).__name__}: {miss}", "type": "cassette_miss"}
    return httpx.Response(BAD_REQUEST, headers={MISS_HEADER: "miss", "x-should-retry": "false"}, json={"error": error})


def is_miss(error: BaseException | None) -> bool:
    """Return whether a client's error is a cassette miss."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    is_one = isinstance(error, CassetteMiss) or (headers is not None and MISS_HEADER in headers)
    return is_one or (error is not None and is_miss(error.__cause__))


class _Cancelled(Exception):
    """The replay of a request that its client cancelled after ``seconds`` in the recording."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    async def wait(self) -> float:
        """Wait to be cancelled. Return the seconds of waiting in vain."""
        patience = PATIENCE_S + 2 * self.seconds
        await asyncio.sleep(patience)
        return patience


def _httpx_error(reply: ModelReply) -> Exception:
    """Return the exception of httpx that a recorded failure names."""
    if reply.failure == CANCELLED:
        return _Cancelled(reply.seconds)
    kind = getattr(httpx, reply.failure, None)
    if not (isinstance(kind, type) and issubclass(kind, httpx.TransportError)):
        kind = httpx.TransportError
    return kind(str(reply.body or ""))


# ---------------------------------------------------------------------- aiohttp


async def _aiohttp(adapter: VcrAdapter, real: Any, session: Any, method: str, str_or_url: Any, **kwargs: Any) -> Any:
    url = str(session._build_url(str_or_url))  # noqa: SLF001 - resolves against the session's base URL
    if not endpoint_of(url):
        return await real(session, method, str_or_url, **kwargs)
    stub: Any = vcr_request(adapter, real)
    try:
        with adapter.exchange(_aiohttp_error):
            return await stub(session, method, url, **kwargs)
    except _Cancelled as cancelled:
        seconds, recorded_s = await cancelled.wait(), cancelled.seconds
    raise adapter.exchanges.waited(seconds, recorded_s)


def _aiohttp_error(reply: ModelReply) -> Exception:
    """Return the exception of aiohttp that a recorded failure names, or a similar one."""
    if reply.failure == CANCELLED:
        return _Cancelled(reply.seconds)
    text = str(reply.body or "")
    kind = getattr(aiohttp, reply.failure, None)
    if reply.failure == "TimeoutError":
        return TimeoutError(text)
    if isinstance(kind, type) and issubclass(kind, aiohttp.ServerTimeoutError | aiohttp.ClientPayloadError):
        return kind(text)
    return aiohttp.ServerDisconnectedError(text) if "Disconnected" in reply.failure else aiohttp.ClientConnectionError(text)
