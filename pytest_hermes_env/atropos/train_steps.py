"""Trains an environment for a few steps in this process: its own ``serve`` loop, the real run-api, and the trainer double.

Source: atroposlib 0.4.0, ``BaseEnv.env_manager``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.atropos.run_api import RunApiThread
from pytest_hermes_env.atropos.trainer import Step, Trainer
from pytest_hermes_env.errors import NoBatch
from pytest_hermes_env.patches import replace

if TYPE_CHECKING:
    from pytest_hermes_env.types import JsonValue

NOTICE_S = 5.0
"""Seconds in which `serve` should notice the last step."""
PAUSE_S = 0.01


async def train_steps(
    env: Any,
    *,
    steps: int = 3,
    batch_size: int | None = None,
    max_token_len: int = 32768,
    allow_placeholders: bool = True,
    timeout_s: float = 60.0,
    run_api: RunApiThread | None = None,
) -> list[Step]:
    """Run ``env`` as ``serve`` does until the trainer double has pulled and checked ``steps`` batches; return them.

    ``env`` is not set up yet: ``serve`` does that. ``batch_size`` counts sequences, by default one group. ``allow_placeholders``
    accepts chat mode's tokens. A restart of run-api in between is survived. ``timeout_s`` limits the wait for each batch. ``run_api`` is used instead of one for this call.
    What still runs at the end is cancelled and awaited.

    Raises: no batch in time, or ``serve`` ended before → NoBatch; a batch that cannot be trained on → BadBatch; what ``serve``
    raises.
    """
    with nullcontext(run_api) if run_api is not None else RunApiThread() as api:
        trainer = Trainer(
            api.url,
            steps=steps,
            batch_size=env.config.group_size if batch_size is None else batch_size,
            max_token_len=max_token_len,
            allow_placeholders=allow_placeholders,
            timeout_s=timeout_s,
        )
        await asyncio.to_thread(trainer.register)
        with replace("Config.rollout_server_url", api.url, owner=env.config), _short_pauses():
            return await _pulled(trainer, env)


async def _pulled(trainer: Trainer, env: Any) -> list[Step]:
    serve = asyncio.create_task(env.env_manager())
    try:
        steps = [await _step(trainer, number, serve) for number in range(1, trainer.steps + 1)]
        await _noticed(env, trainer.steps, serve)
        return steps
    finally:
        await _end(env, serve)


async def _noticed(env: Any, steps: int, serve: asyncio.Task[None]) -> None:
    """Wait until ``serve`` has seen the last step: only then it logs what led to it. It may be busy; it need not see the step."""
    end = time.monotonic() + NOTICE_S
    while not serve.done() and getattr(env, "curr_step", steps) < steps and time.monotonic() < end:  # noqa: ASYNC110 - Atropos has no event
        await asyncio.sleep(PAUSE_S)


async def _step(trainer: Trainer, number: int, serve: asyncio.Task[None]) -> Step:
    end = time.monotonic() + trainer.timeout_s
    while (batch := await _polled(trainer, end)) is None:
        if serve.done():
            serve.result()
            raise NoBatch(
                f"serve ended before step {number} of {trainer.steps}.\n"
                "  expected  it sends groups until the trainer has its batches\n"
                "  seen      it reached its own total_steps, or its env_manager returned\n"
                "  fix       raise total_steps of the environment"
            )
        if time.monotonic() > end:
            raise trainer.no_batch(number)
        await asyncio.sleep(PAUSE_S)
    return trainer.step_of(number, batch)


async def _polled(trainer: Trainer, end: float) -> list[JsonValue] | None:
    """Return the next batch if it has arrived; a run-api that does not answer may be restarting until ``end``."""
    try:
        return await asyncio.to_thread(trainer.poll)
    except NoBatch:
        if time.monotonic() > end:
            raise
        return None


async def _end(env: Any, serve: asyncio.Task[None]) -> None:
    """Cancel ``serve``, its workers and its evaluation, and wait for them."""
    serve.cancel()
    await asyncio.gather(serve, return_exceptions=True)
    tasks = [task for task in (*env.workers, *env.eval_workers, env.eval_runner) if task is not None]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def _short_pauses() -> Iterator[None]:
    async def sleep(delay: float, result: Any = None) -> Any:
        return await asyncio.sleep(min(delay, PAUSE_S), result)

    with replace("atroposlib.envs.base.asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep})):
        yield
