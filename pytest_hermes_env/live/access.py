"""Connects an environment to the real server: calls are retried a limited number of times. `counted_calls` counts them.

atroposlib's own retries would turn one failing call into 27 requests. Here a call is tried three times in all, after temporary
failures (408, 409, 429, 5xx, no connection, no answer in time), with growing pauses or those of the server's ``retry-after``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pytest_hermes_env.atropos import clients
from pytest_hermes_env.errors import BudgetSpent, CallTimedOut
from pytest_hermes_env.live.metering import Meter
from pytest_hermes_env.live.providers import LiveServer
from pytest_hermes_env.patches import assign

RETRIES = 2
LONGEST_PAUSE_S = 60.0
PASSING = frozenset({408, 409, 429})
SERVER_FAILURE = 500

Method = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, kw_only=True)
class LiveAccess:
    """The real server with the meter of one test. ``has_mock`` tells whether the test also runs on its script, without a live run.

    ``is_default`` tells whether ``make_env`` uses it by default. In a test that is only recorded, ``recorded_server`` is the one way
    to it.
    """

    server: LiveServer
    meter: Meter
    has_mock: bool = False
    is_default: bool = True

    def is_asked_by(self, held: Any) -> bool:
        """Tell whether an atroposlib server is a client of this one."""
        return str(getattr(getattr(held, "config", None), "base_url", "")).rstrip("/") == self.server.base_url

    def connect(self, held: Any) -> None:
        """Limit the retries of an atroposlib server."""
        clients.tame(held, clients.LoopBoundTransport(proxy=self.server.proxy), retries=RETRIES)
        for name in ("_chat_completion_wrapper", "_completion_wrapper"):
            assign("APIServer.*", self._outspoken(getattr(held, name)), owner=held, name=name)
        if self.server.server_type != "openai":  # these ask /generate, each time with an aiohttp session of their own
            for name in ("_tokens_and_logprobs_completion_wrapper", "_get_logprobs_wrapper"):
                assign("APIServer.*", _retried(getattr(held, name)), owner=held, name=name)

    def _outspoken(self, method: Method) -> Method:
        """Return the method. It raises BudgetSpent and CallTimedOut itself, which the openai client wraps in a connection error."""

        async def ask(**kwargs: Any) -> Any:
            self.meter.check()  # the client would retry after BudgetSpent
            try:
                return await method(**kwargs)
            except Exception as error:
                if isinstance(error.__cause__, BudgetSpent | CallTimedOut):
                    raise error.__cause__ from None
                raise

        return ask


def _retried(method: Method) -> Method:
    """Return the method, tried again after temporary failures."""

    async def ask(**kwargs: Any) -> Any:
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt  # noqa: PLC0415 - atroposlib's own

        tries = AsyncRetrying(
            stop=stop_after_attempt(1 + RETRIES), retry=retry_if_exception(_may_pass), wait=_pause, reraise=True
        )
        return await tries(method, **kwargs)

    return ask


def _may_pass(error: BaseException) -> bool:
    import aiohttp  # noqa: PLC0415 - heavy

    if isinstance(error, aiohttp.ClientResponseError):
        return error.status in PASSING or error.status >= SERVER_FAILURE
    return isinstance(error, aiohttp.ClientConnectionError | TimeoutError | CallTimedOut)


def _pause(state: Any) -> float:
    """Return seconds: the value of ``retry-after``, else 0.5, 1."""
    headers = getattr(state.outcome.exception(), "headers", None) or {}
    try:
        asked = float(headers.get("retry-after", ""))
    except ValueError:
        asked = 0.0
    return asked if 0 < asked <= LONGEST_PAUSE_S else 0.5 * 2.0 ** (state.attempt_number - 1)
