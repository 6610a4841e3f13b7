"""Captures what an environment logs to wandb."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from pytest_hermes_env.patches import intercept

__all__ = ["capturing_wandb"]


@contextlib.contextmanager
def capturing_wandb(env: Any) -> Iterator[list[dict[str, Any]]]:
    """Switch wandb on for ``env`` and collect the metrics of every ``wandb.log`` call while the context lasts."""
    logged: list[dict[str, Any]] = []
    was_on, env.config.use_wandb = env.config.use_wandb, True
    try:
        with intercept("wandb.log", lambda _real, data, *_args, **_kwargs: logged.append(dict(data))):
            yield logged
    finally:
        env.config.use_wandb = was_on
