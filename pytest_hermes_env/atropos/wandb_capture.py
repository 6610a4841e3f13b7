"""Catches what an environment logs to wandb, instead of the service."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = ["capturing_wandb"]


@contextlib.contextmanager
def capturing_wandb(env: Any) -> Iterator[list[dict[str, Any]]]:
    """Switch wandb on for ``env`` and collect the metrics of every ``wandb.log`` call while the context lasts."""
    import wandb  # noqa: PLC0415 - heavy

    logged: list[dict[str, Any]] = []

    def log(data: dict[str, Any], *_args: Any, **_kwargs: Any) -> None:
        logged.append(dict(data))

    real, was_on = wandb.log, env.config.use_wandb
    wandb.log = log
    env.config.use_wandb = True
    try:
        yield logged
    finally:
        wandb.log = real
        env.config.use_wandb = was_on
