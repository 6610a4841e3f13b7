"""Counts the calls that an environment makes with its own clients, such as a judge's ``AsyncOpenAI(base_url=...)``.

Place in the flow: a live test runs inside `counting_own_clients`. Requests of httpx (both kinds of openai client), aiohttp and
requests are intercepted where they leave the library; requests of the environment's servers are counted by `MeteredTransport`
already and pass. urllib and libraries that open their own sockets are not seen.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import SplitResult, urlsplit

import aiohttp
import httpx

from pytest_hermes_env.live.limits import Usage
from pytest_hermes_env.live.metering import Meter, MeteredCall, is_counted_above, json_or_none, received
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
def counting_own_clients(meter: Meter, base_url: str) -> Iterator[None]:
    """Count every request of this process to a model while the context lasts; nothing is sent once a limit is reached.

    Raises: in the client's call, a limit is reached → BudgetSpent, which the openai client shows as its connection error.
    """

    def counts(method: str, url: str) -> bool:
        return method.upper() == "POST" and not is_counted_above() and asks_a_model(url, base_url)

    handlers: dict[str, Callable[..., Any]] = {
        "httpx.AsyncHTTPTransport.handle_async_request": _httpx_async,
        "httpx.HTTPTransport.handle_request": _httpx_sync,
        "aiohttp.ClientSession._request": _aiohttp,
    }
    if importlib.util.find_spec("requests") is not None:  # not a dependency of ours
        handlers["requests.adapters.HTTPAdapter.send"] = _requests
    with contextlib.ExitStack() as patches:
        for target, handler in handlers.items():
            patches.enter_context(intercept(target, functools.partial(handler, meter, counts)))
        yield


Counts = Callable[[str, str], bool]


async def _httpx_async(meter: Meter, counts: Counts, real: Any, held: Any, request: httpx.Request) -> httpx.Response:
    if not counts(request.method, str(request.url)):
        return await real(held, request)  # type: ignore[no-any-return]
    with _call(meter, await request.aread()) as call:
        response: httpx.Response = await call.in_time(received(real(held, request)))
    call.answered(response.status_code, response.content)
    return response


def _httpx_sync(meter: Meter, counts: Counts, real: Any, held: Any, request: httpx.Request) -> httpx.Response:
    if not counts(request.method, str(request.url)):
        return real(held, request)  # type: ignore[no-any-return]
    with _call(meter, request.read()) as call:
        response: httpx.Response = real(held, request)
        _keep_body(response)
    call.answered(response.status_code, response.content)
    return response


def _keep_body(response: httpx.Response) -> None:
    """Read a response, and leave its bytes readable for others, such as the recorder of a cassette."""
    if isinstance(response.stream, httpx.SyncByteStream) and not response.is_closed:
        raw = b"".join(response.stream)
        response.stream.close()
        response.stream = httpx.ByteStream(raw)
    response.read()


async def _aiohttp(
    meter: Meter, counts: Counts, real: Any, session: Any, method: str, str_or_url: Any, **kwargs: Any
) -> aiohttp.ClientResponse:
    if not counts(method, str(session._build_url(str_or_url))):  # noqa: SLF001 - resolves against the session's base URL
        return await real(session, method, str_or_url, **kwargs)  # type: ignore[no-any-return]
    with _call(meter, kwargs.get("json") or kwargs.get("data")) as call:
        response: aiohttp.ClientResponse = await call.in_time(real(session, method, str_or_url, **kwargs))
        is_stream = response.content_type == "text/event-stream"
        content = b"" if is_stream else await response.read()
    if is_stream:
        call.end(Usage(), response.status)  # its reader takes the chunks, so their usage is unknown
    else:
        call.answered(response.status, content)
    return response


def _requests(meter: Meter, counts: Counts, real: Any, adapter: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
    if not counts(request.method or "", request.url or ""):
        return real(adapter, request, *args, **kwargs)
    with _call(meter, request.body) as call:
        response = real(adapter, request, *args, **kwargs)
        content = response.content
    call.answered(response.status_code, content)
    return response


def _call(meter: Meter, body: Any) -> MeteredCall:
    body = body if isinstance(body, dict) else json_or_none(body)
    return MeteredCall(meter, own_client_body=body if isinstance(body, dict) else {})
