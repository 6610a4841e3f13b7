"""One run on a real server: the server, what calls cost, and the limits; and how one test's environment reaches the server.

The hooks of ``--hermes-live`` start and close it. `counted_calls` counts the calls.

atroposlib's own retries would turn one failing call into 27 requests. Here a call is tried three times in all, after temporary
failures (408, 409, 429, 5xx, no connection, no answer in time), with growing pauses or those of the server's ``retry-after``.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_hermes_env.atropos import clients
from pytest_hermes_env.errors import BudgetSpent, CallTimedOut
from pytest_hermes_env.live.limits import Spending
from pytest_hermes_env.live.metering import Meter
from pytest_hermes_env.live.providers import LiveServer, choose_server
from pytest_hermes_env.live.settings import call_timeout, read_limits, setting
from pytest_hermes_env.patches import assign

if TYPE_CHECKING:
    from pytest_hermes_env.live.prices import Price


RETRIES = 2
LONGEST_PAUSE_S = 60.0
PASSING = frozenset({408, 409, 429})
SERVER_FAILURE = 500

Method = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, kw_only=True)
class LiveRun:
    """The server of the run and its spending. ``remark`` is a line about the server; a worker of xdist owns no directory."""

    server: LiveServer
    spending: Spending
    prices: Mapping[str, Price]
    limit_s: float | None = None
    remark: str = ""
    owns_directory: bool = True

    def access(
        self,
        test: str,
        *,
        report: Callable[[str], None],
        has_mock: bool = False,
        is_default: bool = True,
        requests_cost: bool = True,
    ) -> LiveAccess:
        """Return the real server with a meter that counts for ``test``. ``report`` gets a line for each answered call, and for one that waits.

        ``requests_cost`` lets requests to OpenRouter ask for the cost; its older API requires that, and a cassette should not
        contain it.
        """
        meter = Meter(
            spending=self.spending,
            test=test,
            model=self.server.model,
            prices=self.prices,
            extra={"usage": {"include": True}} if requests_cost and self.server.provider == "openrouter" else {},
            tell=report,
            server=self.server.short(),
            limit_s=self.limit_s,
        )
        return LiveAccess(server=self.server, meter=meter, has_mock=has_mock, is_default=is_default)

    def worker_input(self) -> dict[str, str]:
        """Return what an xdist worker cannot find out itself. It reads the key from its environment."""
        directory = str(self.spending.path.parent)
        return {"model": self.server.model, "tokenizer": self.server.tokenizer, "directory": directory}

    def close(self) -> None:
        """Remove the counts."""
        if self.owns_directory:
            shutil.rmtree(self.spending.path.parent, ignore_errors=True)


def start_live_run(config: pytest.Config) -> LiveRun:
    """Choose the server and check that it answers. Raises: UsageError, LiveModeError."""
    from_controller: dict[str, str] = getattr(config, "workerinput", {}).get("hermes_live", {})
    server = choose_server(
        provider=setting(config, "provider"),
        model=from_controller.get("model") or setting(config, "model"),
        base_url=setting(config, "base_url"),
        key_name=setting(config, "api_key_env"),
        tokenizer=from_controller.get("tokenizer") or setting(config, "tokenizer"),
        environ=os.environ,
    )
    limits, prices = read_limits(config, server)
    limit_s = call_timeout(config)
    remark = ""
    if not from_controller and not config.option.collectonly:
        from pytest_hermes_env.live.preflight import preflight  # noqa: PLC0415 - not needed by workers

        server, remark = preflight(server, accepts_unlisted=config.getoption("hermes_unlisted_model"))
    directory = from_controller.get("directory") or tempfile.mkdtemp(prefix="pytest-hermes-live-")
    spending = Spending(Path(directory, "calls.sqlite"), limits)
    return LiveRun(
        server=server,
        spending=spending,
        prices=prices,
        limit_s=limit_s,
        remark=remark,
        owns_directory=not from_controller,
    )


# ---------------------------------------------------------------------- one test


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
