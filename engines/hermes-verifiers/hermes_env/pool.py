"""Several rollout services of the same environment in one event loop: who is alive, who has a free place, and whose rollout is next.

One task for each service asks for its health while there are rollouts, and all requests share one connection pool. Rollouts wait here,
not at a service, until one has a free place.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from hermes_env import protocol
from hermes_env.protocol import PROTOCOL, RolloutError, ServiceLost, described, read

POLL_S = 1.0
"""Seconds between two questions for a service's health."""
NOT_STARTED = frozenset({"queue_full", "shutting_down", "other_environment", "other_protocol"})
"""Errors after which the same rollout may be asked for again: nothing of it has run."""


@dataclass(eq=False, kw_only=True)
class _Service:
    """What is known of one service. ``cause``: why it takes no rollouts; None until it was asked, empty while it takes some.

    ``own`` rollouts are this pool's, ``others`` those of other clients when it was last asked.
    """

    url: str
    cause: str | None = None
    is_foreign: bool = False
    places: int = 0
    own: int = 0
    others: int = 0
    seen: float = 0.0
    calls: set[asyncio.Future[httpx.Response]] = field(default_factory=set)

    @property
    def load(self) -> float:
        """The share of its places that are taken."""
        return (self.own + self.others) / self.places


@dataclass(eq=False, kw_only=True)
class _Waiting:
    group: object
    takes_place: bool
    service: asyncio.Future[_Service]


class Pool:
    """Asks services for tasks and rollouts."""

    def __init__(
        self,
        urls: tuple[str, ...],
        client: httpx.AsyncClient,
        *,
        health_timeout: float,
        wait: float,
        finishes_groups: bool,
        tell: Callable[[str], None],
    ) -> None:
        """``tell`` is called once for each change that a person should know."""
        self._services = [_Service(url=url) for url in urls]
        self._client = client
        self._health_timeout = health_timeout
        self._wait = wait
        self._finishes_groups = finishes_groups
        self._tell = tell
        self._identity: dict[str, str] | None = None
        self._waiting: list[_Waiting] = []
        self._running: Counter[object] = Counter()
        """Rollouts that run, by group; of groups that have ended, none."""
        self._pollers: list[asyncio.Task[None]] = []
        self._users = 0
        self._alive_at = 0.0

    async def tasks(self, query: dict[str, Any]) -> list[protocol.Task]:
        """Return tasks of any service that is alive. Raises: RolloutError."""
        async with self._polled():
            while True:
                service = await self._next_service(None, takes_place=False)
                try:
                    return read(await self._client.get(f"{service.url}/tasks", params=query), protocol.Tasks).tasks
                except (httpx.RequestError, ServiceLost) as error:
                    service.cause = described(error)

    async def rollout(self, request: dict[str, Any], *, group: object) -> protocol.Rollout:
        """Run a rollout on the service with the least load; wait while all are full, or away.

        Raises: ServiceLost when it began and its service is gone; RolloutError when it earned no reward, or no service came back.
        """
        async with self._polled():
            while True:
                service = await self._next_service(group)
                try:
                    if (done := await self._asked(service, request)) is not None:
                        return done
                finally:
                    service.own -= 1
                    self._assign()
                    self._running[group] -= 1

    async def _asked(self, service: _Service, request: dict[str, Any]) -> protocol.Rollout | None:
        """Return the rollout, or None if the service has not started it. Raises: ServiceLost, RolloutError."""
        body = {**request, "protocol": PROTOCOL, "identity": self._identity}
        call = asyncio.ensure_future(self._client.post(f"{service.url}/rollout", json=body))
        service.calls.add(call)
        try:
            answer = await call
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            service.cause = described(error)
            return None
        except httpx.RequestError as error:
            service.cause = described(error)
            raise ServiceLost(f"{service.url}: {described(error)}") from error
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise ServiceLost(f"{service.url}: {service.cause}") from None
        finally:
            service.calls.discard(call)
        code = protocol.code_of(answer)
        if code in NOT_STARTED:
            if code == "queue_full":  # until it is asked for its load
                service.others = service.places
            else:
                service.cause = f"{code}: {answer.json()['error'].get('message')}"
            return None
        if code == "cancelled":
            service.cause = "it ends"
            raise ServiceLost(f"{service.url}: it ended before the rollout did")
        return read(answer, protocol.Rollout)

    # ------------------------------------------------------------------ the next service

    async def _next_service(self, group: object, *, takes_place: bool = True) -> _Service:
        one = _Waiting(group=group, takes_place=takes_place, service=asyncio.get_running_loop().create_future())
        self._waiting.append(one)
        self._assign()
        try:
            return await one.service
        except asyncio.CancelledError:
            if takes_place and one.service.done() and not one.service.cancelled():  # it was given one in the same moment
                one.service.result().own -= 1
                self._running[group] -= 1
            raise

    def _assign(self) -> None:
        """Give free places to those that wait; end their waiting when there is nothing to wait for."""
        self._waiting = [one for one in self._waiting if not one.service.done()]
        if any(service.cause is None for service in self._services):
            return  # each is asked once before the first rollout, so that different environments are seen
        alive = [service for service in self._services if not service.cause]
        is_foreign = any(service.is_foreign for service in self._services)
        if alive:
            self._alive_at = time.monotonic()
        if is_foreign and alive and not self._running:
            self._fail("the rollout services are not of one environment")
        elif not alive and (is_foreign or time.monotonic() - self._alive_at > self._wait):
            self._fail("no rollout service takes rollouts" + ("" if is_foreign else f" for {self._wait:g} seconds"))
        for one in [one for one in self._waiting if alive and not one.takes_place]:
            self._waiting.remove(one)
            one.service.set_result(alive[0])
        while self._waiting and (free := [service for service in alive if service.load < 1]):
            begun = (one for one in self._waiting if self._finishes_groups and self._running[one.group])
            one, service = next(begun, self._waiting[0]), min(free, key=lambda service: service.load)
            self._waiting.remove(one)
            service.own += 1
            self._running[one.group] += 1
            one.service.set_result(service)

    def _fail(self, text: str) -> None:
        causes = "; ".join(
            f"{service.url}: {service.cause or f'it serves {_shown(self._identity)}'}" for service in self._services
        )
        for one in self._waiting:
            one.service.set_exception(RolloutError(f"{text}: {causes}"))
        self._waiting.clear()

    # ------------------------------------------------------------------ health

    @contextlib.asynccontextmanager
    async def _polled(self) -> AsyncIterator[None]:
        """Ask for the services' health while any block runs."""
        self._users += 1
        if not self._pollers:
            self._alive_at = time.monotonic()
            for service in self._services:
                service.cause = None
            self._pollers = [asyncio.create_task(self._poll(service)) for service in self._services]
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                pollers, self._pollers = self._pollers, []
                for poller in pollers:
                    poller.cancel()

    async def _poll(self, service: _Service) -> None:
        service.seen = time.monotonic()
        told: str | None = ""
        while True:
            try:
                answer = await self._client.get(f"{service.url}/health", timeout=self._health_timeout)
                self._look(service, read(answer, protocol.Health))
            except httpx.ReadTimeout:  # busy, and not dead: its rollouts go on
                if time.monotonic() - service.seen > self._wait:
                    service.cause = f"it has not answered /health for {self._wait:g} seconds"
                    for call in service.calls:
                        call.cancel()
                elif service.cause is None:
                    service.cause = f"it has not answered /health within {self._health_timeout:g} seconds"
                service.others = service.places
            except httpx.ConnectError as error:
                service.cause = f"nobody listens there: {error}"
            except (httpx.RequestError, ServiceLost) as error:
                service.cause = described(error)
            except (httpx.InvalidURL, RolloutError) as error:
                service.is_foreign = True
                service.cause = str(error)
            if service.cause != told:
                told = service.cause
                waits = "" if any(not one.cause for one in self._services) else f"; waiting up to {self._wait:g} seconds"
                self._tell(f"{service.url}: {told or 'takes rollouts again'}{waits}")
            self._assign()
            await asyncio.sleep(POLL_S)

    def _look(self, service: _Service, health: protocol.Health) -> None:
        """Note what a service says of itself."""
        service.seen = time.monotonic()
        service.is_foreign = health.protocol != PROTOCOL or self._identity not in (None, health.identity)
        if health.protocol != PROTOCOL:
            service.cause = f"it speaks protocol {health.protocol}, not {PROTOCOL}: install the same release on both sides"
        elif service.is_foreign:
            service.cause = f"it serves {_shown(health.identity)}, and this run is of {_shown(self._identity)}"
        elif health.status == "draining":
            service.cause = "it ends, and takes no more rollouts"
        else:
            self._identity, service.cause, service.places = health.identity, "", health.concurrency
            service.others = max(0, health.running + health.waiting - service.own)


def _shown(identity: dict[str, str] | None) -> str:
    return " ".join(filter(None, (identity or {}).values()))
