"""One run on a real server: the server, what calls cost, and the limits. The hooks of ``--hermes-live`` start and close it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_hermes_env.live.access import LiveAccess
from pytest_hermes_env.live.limits import Spending
from pytest_hermes_env.live.metering import Meter
from pytest_hermes_env.live.providers import LiveServer, choose_server
from pytest_hermes_env.live.settings import call_timeout, read_limits, setting

if TYPE_CHECKING:
    from pytest_hermes_env.live.prices import Price


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
