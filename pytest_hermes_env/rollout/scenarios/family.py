"""What a family of scenarios is: names, and a function that plays them on one stage."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_hermes_env.rollout.stage import Stage

__all__ = ["Family"]


@dataclass(frozen=True, kw_only=True)
class Family:
    """Scenarios that share one environment instance and follow each other on it.

    ``scenarios`` is name -> what happens in it, in order. ``play`` plays them: what it leaves out counts as an earlier failure.
    Families are played at the same time, each on an instance of its own, unless ``is_alone``: then after all others, by itself.
    ``settings`` take the place of those of the configuration, where it has them.
    """

    name: str
    scenarios: Mapping[str, str]
    play: Callable[[Stage], Awaitable[None]]
    is_alone: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
