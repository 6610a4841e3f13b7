"""The buffers of metrics: logging to wandb with full and empty ones, and evaluations, which must not depend on those of training."""

from __future__ import annotations

from collections import deque
from collections.abc import MutableMapping
from typing import Any

from pytest_hermes_env.play.auto_script import brief_policy
from pytest_hermes_env.play.buffers import changed, copied
from pytest_hermes_env.play.scenarios.family import family
from pytest_hermes_env.play.stage import Stage, configure

SHIFT = 0.4321
"""Added to floats in a buffer."""
MORE = 3
"""Added to integers, and the number of entries that a series grows by."""
DEEP = 4


@family(
    {
        "evaluate_once": "evaluate() runs after a training group",
        "evaluate_again": "evaluate() runs again: what differs now differs without training",
        "evaluate_with_other_buffers": "evaluate() runs after what training left on the environment was made to differ",
    },
    is_alone=True,
)
async def other_buffers(stage: Stage) -> None:
    """Train, evaluate twice, train again, change what that left on the environment, and evaluate again.

    An evaluation that empties the buffers of training would otherwise have nothing left to depend on.
    """
    env = stage.env
    group = await stage.fill_buffers()
    buffers = changed(group.before, group.after)
    with stage.held_out.few(env):
        await stage.play("evaluate_once", env.evaluate, policy=brief_policy)
        await stage.play("evaluate_again", env.evaluate, policy=brief_policy)
        await stage.fill_buffers()
        for name in buffers:
            if hasattr(env, name):
                setattr(env, name, _other(getattr(env, name), DEEP))
        await stage.play(
            "evaluate_with_other_buffers",
            env.evaluate,
            policy=brief_policy,
            more=lambda _: {"note": ", ".join(f"self.{name}" for name in buffers)},
        )


def _other(value: Any, depth: int) -> Any:
    """Return a buffer as other training would have left it; values without numbers stay the same."""
    if isinstance(value, bool) or depth == 0:
        return value
    if isinstance(value, int | float):
        return value + (MORE if isinstance(value, int) else SHIFT)
    if isinstance(value, list | deque):
        for _ in range(MORE if value else 0):
            value.append(_other(copied(value[-1]), depth - 1))
        return value
    if isinstance(value, MutableMapping):
        for key in list(value):
            value[key] = _other(value[key], depth - 1)
    elif hasattr(value, "__dict__") and not callable(value) and not type(value).__module__.startswith("asyncio"):
        for name, held in list(vars(value).items()):
            object.__setattr__(value, name, _other(held, depth - 1))  # records may be frozen
    return value


PROBE = {"hermes_env/probe": 1.0}
"""Metrics that are passed to wandb_log."""


@family(
    {
        "wandb_log": "wandb_log(metrics) is called with full buffers",
        "wandb_log_empty": "wandb_log(metrics) is called again, with empty buffers",
        "wandb_log_none": "wandb_log(None) is called with full buffers",
        "wandb_log_without": "wandb_log() is called without an argument, with empty buffers",
    },
    needs="setup",
)
async def wandb_logs(stage: Stage) -> None:
    """Fill the buffers and log, in each way."""

    async def log(*metrics: dict[str, float] | None) -> None:
        await stage.env.wandb_log(*metrics)

    configure(stage.env, use_wandb=True)
    await stage.fill_buffers()
    await stage.play("wandb_log", lambda: log(dict(PROBE)), is_logging=True)
    await stage.play("wandb_log_empty", lambda: log(dict(PROBE)), is_logging=True)
    await stage.fill_buffers()
    await stage.play("wandb_log_none", lambda: log(None), is_logging=True)
    await stage.play("wandb_log_without", log, is_logging=True)
