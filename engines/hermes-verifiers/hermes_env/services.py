"""The rollout services: their addresses and token, and the one with the least load."""

from __future__ import annotations

import asyncio
import functools
import math
import os
import ssl
from collections import Counter
from typing import Any

import httpx
from pydantic import Field
from pydantic_config import BaseConfig

__all__ = ["RolloutError", "Services", "ServicesConfig", "services_of"]

SERVICES_VARIABLE, DEFAULT = "HERMES_ENV_SERVICES", "http://127.0.0.1:8765"
NOT_STARTED = frozenset({"queue_full", "shutting_down"})
"""Errors after which the same rollout may be asked for again: nothing of it has run."""


class RolloutError(RuntimeError):
    """A rollout without a reward."""


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


def services_of(config: ServicesConfig) -> Services:
    """Return the client of a configuration, one per process: verifiers makes a harness for each episode, and all share its counts."""
    if not config.services:
        raise ValueError(f"services is empty: set {SERVICES_VARIABLE} to the address of a rollout service")
    if wrong := [url for url in config.services if not url.startswith(("http://", "https://"))]:
        raise ValueError(f"services must be http or https addresses, not {', '.join(map(repr, wrong))}")
    token = os.environ.get(config.token_var)
    if not token:
        raise ValueError(f"{config.token_var} is not set: it holds the token of the rollout service")
    return _shared(tuple(url.rstrip("/") for url in config.services), token, config.health_timeout)


@functools.cache
def _shared(urls: tuple[str, ...], token: str, health_timeout: float) -> Services:
    return Services(urls, token, health_timeout)


class Services:
    """A client of several services of the same environment."""

    def __init__(self, urls: tuple[str, ...], token: str, health_timeout: float) -> None:
        self._urls = urls
        self._health_timeout = health_timeout
        self._options = {
            "headers": {"Authorization": f"Bearer {token}"},
            "timeout": httpx.Timeout(None, connect=health_timeout),
            "verify": ssl.create_default_context(),
        }
        self._own: Counter[str] = Counter()
        """Rollouts of this process by service, which may not have arrived there yet."""

    def tasks(self, split: str, count: int | None) -> list[dict[str, Any]]:
        """Return the tasks of a split. Raises: RolloutError when the service refuses."""
        query = {"split": split} | ({} if count is None else {"n": count})
        with httpx.Client(**self._options) as client:
            return _answer_of(client.get(f"{self._urls[0]}/tasks", params=query))["tasks"]

    async def rollout(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run a rollout on the service with the least load; wait while all are full.

        Raises: RolloutError when it earned no reward; httpx.HTTPError when its service ended.
        """
        async with httpx.AsyncClient(**self._options) as client:
            while True:
                url = await self._least_loaded(client)
                self._own[url] += 1
                try:
                    answer = await client.post(f"{url}/rollout", json=request)
                except httpx.ConnectError:
                    continue  # it ended in between, and has not got the request
                finally:
                    self._own[url] -= 1
                if _code_of(answer) not in NOT_STARTED:
                    return _answer_of(answer)
                await asyncio.sleep(float(answer.headers.get("retry-after", 1)))

    async def _least_loaded(self, client: httpx.AsyncClient) -> str:
        answers = await asyncio.gather(*(self._health(client, url) for url in self._urls))
        loads = {url: health for url, health in zip(self._urls, answers, strict=True) if isinstance(health, dict)}
        if not loads:
            causes = "; ".join(f"{url}: {cause}" for url, cause in zip(self._urls, answers, strict=True))
            raise RolloutError(f"no rollout service takes rollouts: {causes}")

        def share(url: str) -> float:  # of its places that are taken; rollouts of this process may not have arrived yet
            health = loads[url]
            return max(health["running"] + health["waiting"], self._own[url]) / health["concurrency"]

        return min(loads, key=share)

    async def _health(self, client: httpx.AsyncClient, url: str) -> dict[str, Any] | str:
        """Return the health of a service, or why it takes no rollout."""
        try:
            health = _answer_of(await client.get(f"{url}/health", timeout=self._health_timeout))
        except httpx.ReadTimeout:  # so busy that it is the last choice
            return {"running": math.inf, "waiting": 0, "concurrency": 1}
        except (httpx.HTTPError, RolloutError, ValueError) as error:  # ValueError: the answer is not JSON
            return f"{type(error).__name__}: {error}"
        status = health.get("status") if isinstance(health, dict) else None
        return health if status == "ok" else str(status or "its /health is not that of a rollout service")


def _code_of(answer: httpx.Response) -> str | None:
    try:
        return answer.json()["error"]["code"]
    except (ValueError, LookupError, TypeError):
        return None


def _answer_of(answer: httpx.Response) -> dict[str, Any]:
    """Return the body of a response. Raises: RolloutError, with the service's error."""
    if answer.is_success:
        return answer.json()
    code = _code_of(answer)
    text = answer.json()["error"]["message"] if code else answer.text[:500]
    raise RolloutError(f"{code or answer.status_code}: {text}")
