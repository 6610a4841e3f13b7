"""A class is an evaluation by its own code, or it is meant to train."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from pytest_hermes_env.play.training_stub import why_configured_to_train_nothing, why_nothing_is_trained

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


class _Config:
    is_evaluation, mode = True, "eval"


class _Base:
    config = _Config()


class _ByFlag(_Base):
    async def get_next_item(self) -> Any:
        if self.config.is_evaluation and self.config.mode == "eval":
            return None
        return 1


class _ByEmptyItems(_Base):
    async def setup(self) -> None:
        self.items = [1] if not self.config.is_evaluation else []

    async def get_next_item(self) -> Any:
        if not self.items:
            return None
        return self.items[0]


class _OtherSetting(_Base):
    async def get_next_item(self) -> Any:
        if self.config.mode == "train":
            return None
        return 1


class _EmptyLoader(_Base):
    async def setup(self) -> None:
        self.items = [] if len(str(self.config.mode)) > 3 else [1]

    async def get_next_item(self) -> Any:
        if not self.items:
            return None
        return self.items[0]


@pytest.mark.parametrize(
    ("env", "setting"), [(_ByFlag, "is_evaluation"), (_ByEmptyItems, "is_evaluation"), (_OtherSetting, ""), (_EmptyLoader, "")]
)
def test_a_setting_may_make_an_evaluation(env: type, setting: str) -> None:
    """Where its value in the configuration decides, and nothing else."""
    why = why_configured_to_train_nothing(env(), _Base)

    assert why == (
        f"get_next_item returns nothing because of the setting {setting} in its configuration, so this is an evaluation"
        if setting
        else ""
    )
