"""The named situations that an environment is put into, and the frozen record of each.

Rules read these records; they never run anything. A scenario that could not be run says why in ``unavailable``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pytest_hermes_env.rollout.buffers import Snapshot
from pytest_hermes_env.rollout.journal import Event
from pytest_hermes_env.rollout.sampling import SampledReply

__all__ = ["SCENARIOS", "Scenario"]

SCENARIOS: dict[str, str] = {
    "setup": "setup() is called and the first training item is taken",
    "happy": "a group is collected while the model uses every tool once and then answers",
    "silent": "a group is collected while the model answers at once, without a tool",
    "drifting": "token mode: as happy, and the model samples ids that its own text would not be encoded to",
    "speechless": "a group is collected while the model's server fails every request",
    "reward_raises": "a group is collected while compute_reward raises",
    "evaluate": "evaluate() runs after a training group has filled the buffers",
    "evaluate_reward_raises": "evaluate() runs while compute_reward raises",
    "evaluate_loop_raises": "evaluate() runs while the agent loop raises after its rollout",
    "evaluate_cancelled": "evaluate() is cancelled while a reward is being computed",
    "wandb_log": "wandb_log(metrics) is called with full buffers",
    "wandb_log_none": "wandb_log(None) is called with full buffers",
    "wandb_log_without": "wandb_log() is called without an argument, with empty buffers",
}
"""Name -> what happens in it, in the order in which they are run."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What happened in one named situation.

    ``group`` is what collect_trajectories gave (a ScoredDataGroup), ``before`` and ``after`` picture the environment's
    attributes, ``error`` is what was raised out of the environment, ``requests`` are the bodies that reached the mock model,
    ``sampled`` is what it sampled for them in token mode. ``refusal`` is why run-api would not take the group, if it would not.
    """

    name: str
    unavailable: str = ""
    error: str = ""
    error_line: int = 0
    events: tuple[Event, ...] = ()
    tool_calls: tuple[Any, ...] = ()
    requests: tuple[dict[str, Any], ...] = ()
    sampled: tuple[SampledReply, ...] = ()
    group: Any = None
    refusal: str = ""
    before: Snapshot = field(default_factory=dict)
    after: Snapshot = field(default_factory=dict)
    logged: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def happened(self) -> bool:
        """Whether the scenario was run at all."""
        return not self.unavailable

    def of(self, kind: type) -> list[Any]:
        """Return the events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]
