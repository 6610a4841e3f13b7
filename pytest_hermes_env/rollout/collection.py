"""The scenarios of one class that were collected, as rules read them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pytest_hermes_env.layer import Layer
from pytest_hermes_env.rollout.scenario import Scenario
from pytest_hermes_env.rollout.unavailable import Unavailable


@dataclass(frozen=True, kw_only=True)
class Collection:
    """The scenarios of one class that were collected.

    ``config_init`` is what that method returned, or the error that it raised; ``world`` says what answered the tools.
    ``server_type`` is "openai" in chat mode, "vllm" or "sglang" in token mode. ``group_size`` is that of the configuration.
    ``fails_beside_another`` is why a set-up failed while other instances of the class were alive, and not later, alone.
    ``nothing_to_train`` is why the class is an evaluation by its own code; empty for a class that is meant to train.
    """

    env_class: type
    layer: Layer
    scenarios: dict[str, Scenario] = field(default_factory=dict)
    config_init: Any = None
    config_init_error: str = ""
    world: str = ""
    server_type: str = "openai"
    group_size: int = 0
    nothing_to_train: str = ""
    fails_beside_another: Unavailable | None = None

    @property
    def has_tokens(self) -> bool:
        """Whether the rollouts ran in token mode."""
        return self.server_type != "openai"
