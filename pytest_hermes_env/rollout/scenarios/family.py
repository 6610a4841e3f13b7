"""A family of scenarios: their names, and a function that plays them on one stage."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_hermes_env.rollout.stage import Stage

__all__ = ["Family"]


@dataclass(frozen=True, kw_only=True)
class Family:
    """Scenarios that run one after the other on one environment instance.

    ``scenarios`` is name -> description, in order. ``play`` plays them: one that it leaves out counts as an earlier failure.
    Families run concurrently, each on its own instance, except those with ``is_alone``, which run alone after all others.
    ``settings`` override those of the configuration.
    """

    name: str
    scenarios: Mapping[str, str]
    play: Callable[[Stage], Awaitable[None]]
    is_alone: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
