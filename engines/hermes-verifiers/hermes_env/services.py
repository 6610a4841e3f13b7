"""The rollout services of a configuration: their addresses and token, and one client of them for each event loop."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import socket
import ssl
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal
from weakref import WeakKeyDictionary

import httpx
from pydantic import Field
from pydantic_config import BaseConfig

from hermes_env.pool import Pool
from hermes_env.protocol import Rollout, Task

__all__ = ["Services", "ServicesConfig", "services_of"]

logger = logging.getLogger(__name__)

SERVICES_VARIABLE, DEFAULT = "HERMES_ENV_SERVICES", "http://127.0.0.1:8765"
KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""A service whose machine or network vanished is gone after a minute, however long its rollouts may take; as the service sees us."""


def _addresses(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


class ServicesConfig(BaseConfig):
    """Where the rollout services are."""

    services: list[str] = Field(default_factory=lambda: _addresses(os.environ.get(SERVICES_VARIABLE, DEFAULT)))
    """Addresses of services of the same environment (default: HERMES_ENV_SERVICES, separated by commas)."""
    token_var: str = "HERMES_ENV_TOKEN"
    """The variable that holds the services' token."""
    health_timeout: float = Field(30.0, gt=0)
    """Seconds within which a service tells its load; after them it counts as full."""
    wait: float = Field(600.0, ge=0)
    """Seconds to wait for a service while none takes rollouts, or for the answer of one that is stuck."""
    groups: Literal["spread", "finish"] = "spread"
    """While places are short: rollouts in the order of their arrival, or first those of items that have begun."""


def services_of(config: ServicesConfig) -> Services:
    """Return the client of a configuration, one per process: verifiers makes a harness for each episode, and all share its counts."""
    if not config.services:
        raise ValueError(f"services is empty: set {SERVICES_VARIABLE} to the address of a rollout service")
    if wrong := [url for url in config.services if not url.startswith(("http://", "https://"))]:
        raise ValueError(f"services must be http or https addresses, not {', '.join(map(repr, wrong))}")
    token = os.environ.get(config.token_var)
    if not token:
        raise ValueError(f"{config.token_var} is not set: it holds the token of the rollout service")
    urls = tuple(dict.fromkeys(url.rstrip("/") for url in config.services))
    return _shared(urls, token, config.health_timeout, config.wait, config.groups == "finish")


@functools.cache
def _shared(urls: tuple[str, ...], token: str, health_timeout: float, wait: float, finishes_groups: bool) -> Services:
    return Services(urls, token, health_timeout=health_timeout, wait=wait, finishes_groups=finishes_groups)


class Services:
    """A client of several services of the same environment."""

    def __init__(self, urls: tuple[str, ...], token: str, **settings: Any) -> None:
        self._urls, self._token, self._settings = urls, token, settings
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, Pool] = WeakKeyDictionary()

    def tasks(self, split: str, count: int | None) -> list[Task]:
        """Return the tasks of a split. Raises: RolloutError when a service refuses, or none is there."""
        query = {"split": split} | ({} if count is None else {"n": count})

        async def ask() -> list[Task]:
            async with self._client() as client:
                return await self._pool(client, _to_stderr).tasks(query)

        with ThreadPoolExecutor(1) as thread:  # an event loop may run in this one
            return thread.submit(asyncio.run, ask()).result()

    async def rollout(self, request: dict[str, Any], **how: Any) -> Rollout:
        """Run a rollout; see `Pool.rollout`."""
        loop = asyncio.get_running_loop()
        if (pool := self._pools.get(loop)) is None:
            pool = self._pools[loop] = self._pool(self._client(), logger.warning)
        return await pool.rollout(request, **how)

    def _client(self) -> httpx.AsyncClient:
        options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
        options += [
            (socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in KEEPALIVE.items() if hasattr(socket, name)
        ]
        # a transport of its own: no proxy, so that the token goes to the services and nowhere else
        transport = httpx.AsyncHTTPTransport(
            verify=ssl.create_default_context(), limits=httpx.Limits(max_connections=None), socket_options=options
        )
        timeout = httpx.Timeout(None, connect=self._settings["health_timeout"])
        # httpcore 1.0 may close a connection that it keeps under the next request, when many expire at once
        headers = {"Authorization": f"Bearer {self._token}", "Connection": "close"}
        return httpx.AsyncClient(headers=headers, timeout=timeout, transport=transport)

    def _pool(self, client: httpx.AsyncClient, tell: Any) -> Pool:
        return Pool(self._urls, client, tell=tell, **self._settings)


def _to_stderr(text: str) -> None:
    sys.stderr.write(f"hermes-env: {text}\n")
    sys.stderr.flush()
