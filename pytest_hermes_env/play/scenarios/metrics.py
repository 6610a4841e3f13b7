"""Logging to wandb: with metrics and without, with full and empty buffers."""

from __future__ import annotations

from pytest_hermes_env.play.scenarios.family import family
from pytest_hermes_env.play.stage import Stage, configure

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
