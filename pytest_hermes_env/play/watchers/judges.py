"""Answers judges by the wire: a request for a completion that any client of the environment sends to any host gets the mock model's answer.

The clients are those on httpx (openai's, sync and async), aiohttp and requests. What asks another endpoint goes on, to where the network is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import time
from collections.abc import Iterator
from http.client import responses
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx
from multidict import CIMultiDict, CIMultiDictProxy
from vcr.stubs.aiohttp_stubs import MockClientResponse

from pytest_hermes_env.patches import intercept
from pytest_hermes_env.play.journal import current_journal

ENDPOINTS = ("/chat/completions", "/completions")


@contextlib.contextmanager
def answering_judges() -> Iterator[None]:
    """Answer such requests of running scenarios while the context lasts."""
    with (
        intercept("httpx.AsyncHTTPTransport.handle_async_request", _httpx),
        intercept("httpx.HTTPTransport.handle_request", _httpx_sync),
        intercept("aiohttp.ClientSession._request", _aiohttp),
        contextlib.ExitStack() as more,
    ):
        if importlib.util.find_spec("requests") is not None:  # not a dependency of ours
            more.enter_context(intercept("requests.adapters.HTTPAdapter.send", _requests))
        yield


def _answer(method: str, url: str, data: Any, headers: Any) -> Any:
    """Return the reply of the running scenario's model; None where the request is for another one, or none runs."""
    journal = current_journal.get()
    parts = urlsplit(url)
    endpoint = next((end for end in ENDPOINTS if parts.path.rstrip("/").endswith(end)), "")
    if (
        journal is None
        or journal.model is None
        or method.upper() != "POST"
        or not endpoint
        or journal.model.is_at(parts.netloc)
    ):
        return None
    data = data.encode() if isinstance(data, str) else data
    data = json.dumps(data).encode() if isinstance(data, dict | list) else data
    return journal.model.respond("POST", f"/v1{endpoint}", bytes(data or b""), headers)


async def _httpx(real: Any, transport: Any, request: httpx.Request) -> httpx.Response:
    reply = _answer(request.method, str(request.url), await request.aread(), request.headers)
    if reply is None:
        return await real(transport, request)  # type: ignore[no-any-return]
    await asyncio.sleep(reply.delay_s)
    return _as_httpx(reply, request)


def _httpx_sync(real: Any, transport: Any, request: httpx.Request) -> httpx.Response:
    reply = _answer(request.method, str(request.url), request.read(), request.headers)
    if reply is None:
        return real(transport, request)  # type: ignore[no-any-return]
    time.sleep(reply.delay_s)
    return _as_httpx(reply, request)


def _as_httpx(reply: Any, request: httpx.Request) -> httpx.Response:
    return httpx.Response(reply.status, headers={"content-type": reply.media_type}, content=reply.content, request=request)


async def _aiohttp(real: Any, session: Any, method: str, str_or_url: Any, **kwargs: Any) -> aiohttp.ClientResponse:
    url = session._build_url(str_or_url)  # noqa: SLF001 - resolves against the session's base URL
    given = kwargs.get("json") if kwargs.get("json") is not None else kwargs.get("data")
    reply = _answer(method, str(url), given, kwargs.get("headers") or {})
    if reply is None:
        return await real(session, method, str_or_url, **kwargs)  # type: ignore[no-any-return]
    await asyncio.sleep(reply.delay_s)
    headers = CIMultiDictProxy(CIMultiDict(kwargs.get("headers") or {}))
    response = MockClientResponse(method, url, request_info=aiohttp.RequestInfo(url, method, headers, url))
    response.status, response.reason = reply.status, responses.get(reply.status, "")
    response._body = reply.content  # noqa: SLF001 - as vcrpy fills it
    response._headers = {"content-type": reply.media_type}  # noqa: SLF001
    response.close()
    check = kwargs["raise_for_status"] if kwargs.get("raise_for_status") is not None else session._raise_for_status  # noqa: SLF001
    if callable(check):
        await check(response)
    elif check:
        response.raise_for_status()
    return response  # type: ignore[no-any-return]


def _requests(real: Any, adapter: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
    reply = _answer(request.method or "", request.url or "", request.body, request.headers)
    if reply is None:
        return real(adapter, request, *args, **kwargs)
    time.sleep(reply.delay_s)
    from requests import Response  # type: ignore[import-untyped]  # noqa: PLC0415 - the caller's

    response = Response()
    response.status_code, response.reason = reply.status, responses.get(reply.status, "")
    response._content = reply.content  # noqa: SLF001 - requests has no setter
    response.headers["content-type"] = reply.media_type
    response.url, response.request = request.url, request
    return response
