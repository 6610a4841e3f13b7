"""How an environment reaches the real server: counted calls, and as many retries as make sense.

atroposlib's own retries would make 27 requests of one failing call. Here a call is tried three times in all, at failures that may
pass (408, 409, 429, 5xx, no connection), with growing pauses or those that the server's ``retry-after`` asks for.
"""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pytest_hermes_env.atropos import clients
from pytest_hermes_env.errors import BudgetSpent
from pytest_hermes_env.live.limits import Usage
from pytest_hermes_env.live.metering import Meter, MeteredTransport, counted_here
from pytest_hermes_env.live.providers import LiveServer
from pytest_hermes_env.patches import assign

__all__ = ["LiveAccess", "probe", "proxy_for"]

RETRIES = 2
PROBE_S = 120.0
LONGEST_PAUSE_S = 60.0
PASSING = frozenset({408, 409, 429})
SERVER_FAILURE = 500

Method = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, kw_only=True)
class LiveAccess:
    """The real server, as one test may ask it. ``has_mock`` tells whether the test also runs on its script, when not live.

    ``is_default`` tells whether ``make_env`` builds on it without being told: in a test that is recorded only its ``recorded_server``
    leads here.
    """

    server: LiveServer
    meter: Meter
    has_mock: bool = False
    is_default: bool = True

    def is_asked_by(self, held: Any) -> bool:
        """Tell whether an atroposlib server is a client of this one."""
        return str(getattr(getattr(held, "config", None), "base_url", "")).rstrip("/") == self.server.base_url

    def connect(self, held: Any) -> None:
        """Let an atroposlib server's calls be counted, and retried a little."""
        inner = clients.LoopBoundTransport(proxy=proxy_for(self.server.base_url))
        clients.tame(held, MeteredTransport(inner, self.meter), retries=RETRIES)
        for name in ("_chat_completion_wrapper", "_completion_wrapper"):
            assign("APIServer.*", self._outspoken(getattr(held, name)), owner=held, name=name)
        if self.server.server_type != "openai":  # these ask /generate, each time with an aiohttp session of their own
            for name, usage_of in (("_tokens_and_logprobs_completion_wrapper", _sampled), ("_get_logprobs_wrapper", _read)):
                assign("APIServer.*", self._counted(getattr(held, name), usage_of), owner=held, name=name)

    def _outspoken(self, method: Method) -> Method:
        """Return the method, raising BudgetSpent where the openai client makes a connection error of it."""

        async def ask(**kwargs: Any) -> Any:
            self.meter.check()  # before the client, which would try again after a refusal
            try:
                return await method(**kwargs)
            except Exception as error:
                if isinstance(error.__cause__, BudgetSpent):
                    raise error.__cause__ from None
                raise

        return ask

    def _counted(self, method: Method, usage_of: Callable[[Any], Usage]) -> Method:
        """Return the method with each of its tries counted."""

        async def attempt(kwargs: dict[str, Any]) -> Any:
            number, began = self.meter.begin(), time.monotonic()
            try:
                with counted_here():
                    answer = await method(**kwargs)
            except BaseException as error:
                status = getattr(error, "status", type(error).__name__)
                self.meter.end(number, None, status=status, seconds=time.monotonic() - began, turn=0)
                raise
            self.meter.end(number, usage_of(answer), status=200, seconds=time.monotonic() - began, turn=0)
            return answer

        async def ask(**kwargs: Any) -> Any:
            from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt  # noqa: PLC0415 - atroposlib's own

            tries = AsyncRetrying(
                stop=stop_after_attempt(1 + RETRIES), retry=retry_if_exception(_may_pass), wait=_pause, reraise=True
            )
            return await tries(attempt, kwargs)

        return ask


async def probe(access: LiveAccess) -> None:
    """Ask the real server the small requests of a comparison, and keep where its answers differ from the mock's."""
    import httpx  # noqa: PLC0415

    from pytest_hermes_env.live.metering import compare  # noqa: PLC0415
    from pytest_hermes_env.live.shape_comparison import probes  # noqa: PLC0415

    url = f"{access.server.base_url}/chat/completions"
    headers = {"authorization": f"Bearer {access.server.key}"} if access.server.key else {}
    inner = httpx.AsyncHTTPTransport(proxy=proxy_for(url))
    async with httpx.AsyncClient(transport=MeteredTransport(inner, access.meter), timeout=PROBE_S, headers=headers) as client:
        for name, body in probes(access.server.model):
            try:
                response = await client.post(url, json=body)
            except BudgetSpent:
                return
            except httpx.HTTPError as error:
                access.meter.spending.remark([f"the probe got no answer: {type(error).__name__}"], name)
                continue
            await compare(access.meter, name, url, body, response)


def proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for a URL: what httpx does by itself only without a transport."""
    parts = urlsplit(url)
    if urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def _may_pass(error: BaseException) -> bool:
    import aiohttp  # noqa: PLC0415 - heavy

    if isinstance(error, aiohttp.ClientResponseError):
        return error.status in PASSING or error.status >= SERVER_FAILURE
    return isinstance(error, aiohttp.ClientConnectionError | TimeoutError)


def _pause(state: Any) -> float:
    """Return seconds: what ``retry-after`` asks for, else 0.5, 1."""
    headers = getattr(state.outcome.exception(), "headers", None) or {}
    try:
        asked = float(headers.get("retry-after", ""))
    except ValueError:
        asked = 0.0
    return asked if 0 < asked <= LONGEST_PAUSE_S else 0.5 * 2.0 ** (state.attempt_number - 1)


def _sampled(answer: Any) -> Usage:
    """Return what ``/generate`` took: it says no numbers, and gives the ids themselves."""
    prompt, outputs, *_ = answer
    return Usage(prompt_tokens=len(prompt), completion_tokens=sum(len(output) for output in outputs))


def _read(answer: Any) -> Usage:
    return Usage(prompt_tokens=len(answer["prompt_tokens"]), completion_tokens=0)
