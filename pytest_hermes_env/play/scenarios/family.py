"""A family of scenarios: their names, and a function that plays them on one stage."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from pytest_hermes_env.play.stage import Needs, Stage


@dataclass(frozen=True, kw_only=True, eq=False)
class Family:
    """Scenarios that run one after the other on one environment instance.

    ``scenarios`` is name -> description, in order. ``play_all`` plays them: one that it leaves out counts as an earlier failure.
    It ``needs`` an environment that was set up, a training item, or one that a group can be collected of; all scenarios are
    unavailable without.
    Families run concurrently, each on its own instance, except those with ``is_alone``, which run alone after all others.
    Scenarios that nobody asks for are left out where the others do not need them: ``first`` are those that all later ones need;
    None means that the family is played as a whole.
    ``settings`` override those of the configuration. ``has_tokens``: it runs in token mode, for classes that are trained in it.
    """

    scenarios: Mapping[str, str]
    play_all: Callable[[Stage], Awaitable[None]]
    needs: Needs = "group"
    is_alone: bool = False
    first: tuple[str, ...] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    has_tokens: bool = False

    def needed_for(self, asked: AbstractSet[str]) -> frozenset[str]:
        """Return the scenarios that must be played so that those that were asked for can be."""
        names = tuple(self.scenarios)
        last = max((index for index, name in enumerate(names) if name in asked), default=-1)
        before = names[: last + 1]
        return frozenset(before if self.first is None else (name for name in before if name in asked or name in self.first))

    async def play(self, stage: Stage) -> None:
        """Prepare the environment, then play the scenarios."""
        if self.needs == "nothing" or await stage.prepare(needs=self.needs):
            await self.play_all(stage)


def family(scenarios: Mapping[str, str], **fields: Any) -> Callable[[Callable[[Stage], Awaitable[None]]], Family]:
    """Return a decorator that makes a family of the function that plays its scenarios. ``fields`` are those of `Family`."""
    return lambda play_all: Family(scenarios=scenarios, play_all=play_all, **fields)
