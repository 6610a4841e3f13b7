"""A rollout service of a small environment on a free loopback port, alongside an engine's endpoint."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import uvicorn

from environments.hermes_base_env import HermesAgentBaseEnv
from environments.service.app import build_app
from environments.service.service import RolloutService
from environments.service.waiting_line import WaitingLine
from pytest_hermes_env.inference import MockServer, say

TOKEN = "the-token-of-this-test"
KEY = "sk-engine-0123456789"


class Env(HermesAgentBaseEnv):
    """Items are numbers of a file; the reward is what the item says, and buffered."""

    train: Any = ({"n": 1}, {"n": 2}, {"n": 2}, {"n": 3})
    held_out: Any = ({"n": 8}, {"n": 9})

    async def setup(self) -> None:
        self.drawn = 0
        self.rewards: list[float] = []
        self.eval_items = list(self.held_out)

    async def get_next_item(self) -> Any:
        if not self.train:
            return None
        self.drawn += 1
        return self.train[(self.drawn - 1) % len(self.train)]

    def format_prompt(self, item: Any) -> str:
        return f"write file {item['n'] + 0}"

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        if item.get("raises"):
            raise LookupError(f"no verifier, key {KEY}")
        reward = float(item.get("reward", 0.5))
        self.rewards.append(reward)
        return reward

    async def wandb_log(self, wandb_metrics: Any = None) -> None:
        metrics = {} if wandb_metrics is None else wandb_metrics
        metrics["train/rewards"] = len(self.rewards)
        self.rewards = []
        await super().wandb_log(metrics)

    async def evaluate(self, *args: Any, **kwargs: Any) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Served:
    """A running service and a client of it."""

    service: RolloutService
    client: httpx.AsyncClient
    endpoint: str

    async def rollout(self, item: Any = None, **fields: Any) -> httpx.Response:
        """Ask for a rollout."""
        body = {"item": {"n": 1} if item is None else item, "endpoint": self.endpoint, "model": "m", **fields}
        return await self.client.post("/rollout", json=body)


@contextlib.asynccontextmanager
async def serving(
    env: Any,
    endpoint: str = "http://127.0.0.1:9/v1",
    *,
    places: int = 4,
    queue: int = 4,
    max_body: int = 1 << 20,
    has_judge: bool = True,
    **settings: Any,
) -> AsyncIterator[Served]:
    """Set up ``env`` and serve it."""
    service = RolloutService(env, line=WaitingLine(places, queue), has_judge=has_judge, **settings)
    await env.setup()
    await service.tasks.load()
    app = build_app(service, token=TOKEN, max_body=max_body)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = asyncio.create_task(server.serve(sockets=[listener]))
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            async with httpx.AsyncClient(
                base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60, trust_env=False
            ) as client:
                yield Served(service=service, client=client, endpoint=endpoint)
        finally:
            server.should_exit = True
            await running
            await service.close()


@pytest.fixture(name="serving")
def _serving() -> Any:
    """``async with serving(env) as served``; ``serving.token`` is the token."""
    serving.token = TOKEN  # type: ignore[attr-defined]
    return serving


@pytest.fixture
def engine_key() -> str:
    """The key of the engine's endpoint."""
    return KEY


@pytest.fixture
def served(make_env: Any) -> Callable[..., Any]:
    """``served(test, mixin=None, script=..., **options)`` runs ``await test(served, server)`` alongside a service of `Env`."""

    def play(
        test: Callable[[Served, MockServer], Awaitable[Any]],
        mixin: type | None = None,
        script: Any = "done",
        config: dict[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        cls = Env if mixin is None else type(mixin.__name__, (mixin, Env), {})

        async def scenario() -> Any:
            env = make_env(
                cls, script=lambda _: say("0.25"), **{"enabled_toolsets": ["todo"], "group_size": 1, **(config or {})}
            )
            with MockServer(
                lambda conversation: script(conversation) if callable(script) else script, allow_leftovers=True
            ) as server:
                async with serving(env, server.base_url, **options) as here:
                    return await test(here, server)

        return asyncio.run(scenario())

    return play


@pytest.fixture
def error_of() -> Callable[[httpx.Response], tuple[int, str]]:
    """Returns status and code of an error."""
    return lambda response: (response.status_code, response.json()["error"]["code"])
