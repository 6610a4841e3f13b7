"""A class that is trained in token mode, by its own configuration, is played in it, too, where it makes rows of its own."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_hermes_env.contract.judge.verdict import Outcome
from pytest_hermes_env.contract.rules import find_rule
from pytest_hermes_env.contract.run.single_rule import contract_of

from ..play.small_env import SmallEnv  # noqa: TID252 - the small environment is kept in another room


class TrainedEnv(SmallEnv):
    """Its server returns tokens."""

    kind = "vllm"

    @classmethod
    def config_init(cls) -> Any:
        """Name the server."""
        config, (server,) = super().config_init()
        return config, [server.model_copy(update={"server_type": cls.kind})]


class LightEnv(TrainedEnv):
    """It sends no long list of floats."""

    async def collect_trajectory(self, item: Any) -> Any:
        """Drop them."""
        row, backlog = await super().collect_trajectory(item)
        return {key: value for key, value in row.items() if key != "inference_logprobs"}, backlog


class LightSglangEnv(LightEnv):
    """The other server."""

    kind = "sglang"


class LightApiEnv(LightEnv):
    """One without tokens: there are none to lose."""

    kind = "openai"


class InheritedEnv(TrainedEnv):
    """All rows are the layer's."""

    collect_trajectory = SmallEnv.__mro__[1].collect_trajectory  # type: ignore[attr-defined]  # the layer's own


@pytest.mark.parametrize(
    ("env_class", "outcome"),
    [
        (TrainedEnv, Outcome.PASSED),
        (LightEnv, Outcome.FAILED),
        (LightSglangEnv, Outcome.FAILED),
        (LightApiEnv, Outcome.NOT_APPLICABLE),
        (InheritedEnv, Outcome.NOT_APPLICABLE),
    ],
)
def test_rows_are_compared_with_what_was_sampled(env_class: type, outcome: Outcome) -> None:
    """Without an option."""
    rule = find_rule("HE503")

    assert contract_of(env_class, [rule]).result(rule).outcome is outcome


class MeanEnv(SmallEnv):
    """A rollout that cannot be judged gets the mean."""

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        """Count on a sandbox."""
        try:
            return float(item["word"] in ctx.read_file("word.txt").get("content", ""))
        except Exception:  # noqa: BLE001 - the mistake
            return 0.5


class HonestEnv(SmallEnv):
    """A rollout that cannot be judged is none."""

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        """Count on a sandbox."""
        return float(item["word"] in ctx.read_file("word.txt").get("content", ""))


class WorthlessEnv(MeanEnv):
    """Nothing may be worth something."""

    async def compute_reward(self, item: Any, result: Any, ctx: Any) -> float:
        """Never pay less."""
        return max(0.5, await super().compute_reward(item, result, ctx))


@pytest.mark.parametrize(
    ("env_class", "outcome"), [(MeanEnv, Outcome.FAILED), (HonestEnv, Outcome.PASSED), (WorthlessEnv, Outcome.PASSED)]
)
def test_a_lost_sandbox_earns_no_more_than_no_work(env_class: type, outcome: Outcome) -> None:
    """The finding has both numbers."""
    rule = find_rule("HE508")
    result = contract_of(env_class, [rule]).result(rule)

    assert result.outcome is outcome
    assert ("gave 0.5" in str(result.findings)) is (outcome is Outcome.FAILED)
