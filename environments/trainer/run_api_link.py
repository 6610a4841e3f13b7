"""The connection of ``serve`` to run-api: keeps groups until run-api has acknowledged them, and registers again after its restart.

Place in the flow: `HermesAgentBaseEnv.get_status` and ``_send_scored_data_to_api`` go through here.

Source: atroposlib 0.4.0, ``api/server.py``: all of run-api's data is lost when it ends, a group that arrives before the trainer
has registered breaks it, and ``/latest_example`` is the group that it received last.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Any

import aiohttp

logger = logging.getLogger(__name__)

PAUSE_S = 1.0
REQUEST_S = 60.0
MAX_ERRORS = 3
"""Answers with a server error after which a group is given up."""

BUSY = frozenset(
    {
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
"""Answers of a server, or of a proxy before it, that say nothing about the group: it is kept and sent again."""


class _State(Enum):
    REGISTERED = "knows this environment"
    RESTARTED = "answers, but does not know this environment"
    DOWN = "does not answer"


@dataclass(kw_only=True)
class _Delivery:
    """What is sent at once. ``is_unsure``: it was sent, and no answer came."""

    payload: Any
    is_unsure: bool = False
    attempts: int = 0
    errors: int = 0


class RunApiLink:
    """The groups that run-api has not acknowledged, oldest first. ``count(name, number)`` adds to a metric."""

    def __init__(self, env: Any, count: Callable[[str, int], None]) -> None:
        self._env = env
        self._count = count
        self._waiting: list[_Delivery] = []
        self._is_delivering = False
        self._was_refused = False

    def __deepcopy__(self, _memo: dict[int, Any]) -> RunApiLink:
        """Return the link itself: a copy of an environment's attributes belongs to the same environment."""
        return self

    async def send(self, payload: Any) -> None:
        """Send a group or a list of groups; keep it for `deliver` if run-api does not acknowledge it."""
        self._waiting.append(_Delivery(payload=payload))
        await self.deliver()

    async def deliver(self) -> None:
        """Send what is kept, one after the other, until run-api does not acknowledge one."""
        if self._is_delivering:
            return  # the task that delivers takes it
        self._is_delivering = True
        try:
            while self._waiting and await self._is_settled(self._waiting[0]):
                del self._waiting[0]
        finally:
            self._is_delivering = False

    async def ensure_registered(self) -> None:
        """Wait while run-api does not answer; register again if it was restarted.

        Raises: ConnectionError when it does not answer for ``run_api_timeout`` seconds.
        """
        end = time.monotonic() + self._env.config.run_api_timeout
        while (state := await self._state()) is _State.DOWN:
            if time.monotonic() > end:
                raise ConnectionError(
                    f"run-api does not answer at {self._env.config.rollout_server_url}, for "
                    f"{self._env.config.run_api_timeout:g} s (run_api_timeout); {len(self._waiting)} deliveries are lost"
                )
            await asyncio.sleep(PAUSE_S)
        if state is _State.RESTARTED:
            logger.warning("run-api was restarted: registering again; %d deliveries are sent again", len(self._waiting))
            await self._env.register_env()
            await self._env.get_server_info()
            self._was_refused = False
            for delivery in self._waiting:
                delivery.is_unsure = False  # what it had received is gone
            self._count("train/run_api_restarts", 1)

    async def _state(self) -> _State:
        env_id = getattr(self._env, "env_id", None)
        if env_id is None:
            return _State.REGISTERED  # it never registered: an environment that sends without `serve`
        try:
            status, _ = await self._get("/status-env", json={"env_id": env_id})
        except aiohttp.ClientConnectorError:
            self._was_refused = True  # the process ended, and a new one may give our number to another environment
            return _State.DOWN
        except (aiohttp.ClientError, OSError, TimeoutError):
            return _State.DOWN
        if status in BUSY:
            return _State.DOWN
        return _State.REGISTERED if status < HTTPStatus.BAD_REQUEST and not self._was_refused else _State.RESTARTED

    async def _is_settled(self, delivery: _Delivery) -> bool:
        """Return whether a delivery needs no further attempt: it was acknowledged, or is given up and counted."""
        try:
            if await self._state() is not _State.REGISTERED:
                return False
            if delivery.is_unsure and (arrived := await self._has_arrived(delivery)) is not False:
                self._count("train/deliveries_unknown", arrived is None)
                return True
            delivery.attempts += 1
            delivery.is_unsure = True
            status = await self._post(delivery.payload)
            delivery.is_unsure = False
            return self._is_final(delivery, status)
        except aiohttp.ClientConnectorError:
            delivery.is_unsure, self._was_refused = False, True
            self._count("train/deliveries_failed", 1)
            return False
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            self._count("train/deliveries_failed", 1)
            logger.warning("run-api did not acknowledge a delivery (%s: %s); it is kept", type(error).__name__, error)
            return False
        except Exception:  # it cannot be written as JSON: those after it would never be sent
            logger.exception("A delivery cannot be sent; counted in train/deliveries_refused")
            self._count("train/deliveries_refused", 1)
            return True

    def _is_final(self, delivery: _Delivery, status: int) -> bool:
        if status < HTTPStatus.BAD_REQUEST:
            self._count("train/deliveries_sent_again", delivery.attempts > 1)
            return True
        self._count("train/deliveries_failed", 1)
        if status in BUSY:
            return False
        delivery.errors += 1
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR and delivery.errors < MAX_ERRORS:
            return False
        logger.error("run-api refused a delivery with status %d; counted in train/deliveries_refused", status)
        self._count("train/deliveries_refused", 1)
        return True

    async def _has_arrived(self, delivery: _Delivery) -> bool | None:
        """Return whether a delivery without an answer has arrived; None if nobody can know."""
        group = delivery.payload[-1] if isinstance(delivery.payload, list) else delivery.payload
        if len(group["tokens"]) != self._env.config.group_size:
            return None  # run-api's buffer for such groups cannot be seen
        _, latest = await self._get("/latest_example")
        if latest.get("tokens") == group["tokens"] and latest.get("scores") == group["scores"]:
            return True
        return False if latest.get("env_id") in {None, self._env.env_id} else None

    async def _get(self, path: str, **request: Any) -> tuple[int, Any]:
        url = f"{self._env.config.rollout_server_url}{path}"
        async with _session() as session, session.get(url, **request) as response:
            is_json = response.content_type == "application/json"
            try:
                return response.status, await response.json() if is_json else {}
            except ValueError as error:
                raise aiohttp.ClientPayloadError(f"{url} answered with broken JSON: {error}") from error

    async def _post(self, payload: Any) -> int:
        for group in payload if isinstance(payload, list) else [payload]:
            group["env_id"] = getattr(self._env, "env_id", None)
        path = "scored_data_list" if isinstance(payload, list) else "scored_data"
        url = f"{self._env.config.rollout_server_url}/{path}"
        async with _session() as session, self._env._post_json_with_compression(session, url, payload) as response:
            await response.read()
            return int(response.status)


def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=REQUEST_S))
