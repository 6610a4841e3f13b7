"""A class is an evaluation by its own code, or it is meant to train."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from pytest_hermes_env.rollout.training_stub import why_nothing_is_trained

from .bare import HermesAgentBaseEnv

logger = logging.getLogger(__name__)


class Trains(HermesAgentBaseEnv):
    """Inherits how groups are collected."""

    async def get_next_item(self) -> Any:
        """Return an item, or None where the data are empty."""
        items: list[Any] = []
        return items[0] if items else None


class ItemsAreNone(HermesAgentBaseEnv):
    """Says that there are no items."""

    async def get_next_item(self) -> None:
        """Return None."""
        return


class ItemsAreAStub(HermesAgentBaseEnv):
    """Has no items."""

    async def get_next_item(self) -> Any:
        """Raise."""
        raise NotImplementedError("an evaluation")


class CollectsNothing(HermesAgentBaseEnv):
    """Collects a pair of nothing."""

    async def collect_trajectories(self, item: Any) -> Any:
        """Return nothing."""
        del item
        return None, []


class CollectsNothingWithALog(CollectsNothing):
    """Collects nothing through names and other methods."""

    def nothing(self) -> Any:
        """Return nothing."""
        nothing: Any = (None, list())  # noqa: C408 - a way to write it
        return nothing

    async def collect_trajectories(self, item: Any) -> Any:
        """Return what another method gives."""
        logger.debug("nothing is trained")
        return self.nothing()


class CollectsNothingInAnotherClass(CollectsNothing):
    """Inherits its stub."""


class OneRolloutIsNothing(HermesAgentBaseEnv):
    """Has a stub for a rollout."""

    async def collect_trajectory(self, item: Any) -> Any:
        """Return nothing."""
        return None, []


class CatchesAnError(HermesAgentBaseEnv):
    """Returns nothing when something fails."""

    async def collect_trajectories(self, item: Any) -> Any:
        """Return a group, or nothing."""
        try:
            return await self.collect_trajectory(item)
        except KeyError:
            return None, []


class WaitsForMore(HermesAgentBaseEnv):
    """Returns the item to the backlog."""

    async def collect_trajectories(self, item: Any) -> Any:
        """Return nothing but the item."""
        return None, [item]


class GoesInCircles(HermesAgentBaseEnv):
    """Calls itself."""

    async def collect_trajectories(self, item: Any) -> Any:
        """Return what it returns."""
        return await self.collect_trajectories(item)


@pytest.mark.parametrize(
    ("env_class", "method"),
    [
        (HermesAgentBaseEnv, ""),
        (Trains, ""),
        (ItemsAreNone, "get_next_item"),
        (ItemsAreAStub, "get_next_item"),
        (CollectsNothing, "collect_trajectories"),
        (CollectsNothingWithALog, "collect_trajectories"),
        (CollectsNothingInAnotherClass, "collect_trajectories"),
        (OneRolloutIsNothing, "collect_trajectory"),
        (CatchesAnError, ""),
        (WaitsForMore, ""),
        (GoesInCircles, ""),
    ],
)
def test_only_a_stub_makes_an_evaluation(env_class: type, method: str) -> None:
    """Code that gives nothing whatever the data are; neither an empty list nor an error that is caught."""
    why = why_nothing_is_trained(env_class, HermesAgentBaseEnv)

    assert why == (f"{method} returns nothing by its own code, so the class is an evaluation" if method else "")
