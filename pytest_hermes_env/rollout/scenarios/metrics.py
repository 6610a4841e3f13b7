"""Logging to wandb: with metrics and without, with full and empty buffers, and while the service fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_hermes_env.rollout.scenarios.family import Family

if TYPE_CHECKING:
    from pytest_hermes_env.rollout.stage import Stage

__all__ = ["FAMILY", "PROBE"]

PROBE = {"hermes_env/probe": 1.0}
"""Metrics that are passed to wandb_log."""


async def play(stage: Stage) -> None:
    """Fill the buffers and log, in each way."""
    if not await stage.prepare():
        return
    env = stage.env
    await stage.fill_buffers()
    await stage.play("wandb_log", lambda: env.wandb_log(dict(PROBE)), is_logging=True)
    await stage.play("wandb_log_empty", lambda: env.wandb_log(dict(PROBE)), is_logging=True)
    await stage.fill_buffers()
    await stage.play("wandb_log_none", lambda: env.wandb_log(None), is_logging=True)
    await stage.play("wandb_log_without", env.wandb_log, is_logging=True)
    await stage.fill_buffers()
    await stage.play("wandb_log_failing", lambda: env.wandb_log(dict(PROBE)), is_logging=True, fault="wandb_raises")


FAMILY = Family(
    name="metrics",
    scenarios={
        "wandb_log": "wandb_log(metrics) is called with full buffers",
        "wandb_log_empty": "wandb_log(metrics) is called again, with empty buffers",
        "wandb_log_none": "wandb_log(None) is called with full buffers",
        "wandb_log_without": "wandb_log() is called without an argument, with empty buffers",
        "wandb_log_failing": "wandb_log(metrics) is called with full buffers while wandb.log raises",
    },
    play=play,
)
