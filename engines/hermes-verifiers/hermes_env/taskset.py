"""The taskset: the service's items as tasks, whose reward is the service's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import verifiers.v1 as vf
from pydantic import Field

from hermes_env.protocol import RolloutError
from hermes_env.services import SERVICES_VARIABLE, ServicesConfig, services_of

__all__ = ["HermesState", "HermesTaskset"]


class HermesState(vf.State):
    """What the service said of the rollout."""

    reward: float | None = None
    end: str = ""
    rollout_metrics: dict[str, float] = Field(default_factory=dict)


class HermesTaskData(vf.TaskData):
    """An item, as the service lists it."""

    item: Any


class HermesTask(vf.Task[HermesTaskData, HermesState]):
    """One item of the environment."""

    @vf.reward
    async def reward(self, trace: vf.Trace) -> float:
        """The environment's reward."""
        if trace.state.reward is None:
            raise RuntimeError(f"the environment gave no reward, since the rollout was stopped: {trace.stop_condition}")
        return trace.state.reward


class HermesTasksetConfig(vf.TasksetConfig, ServicesConfig):
    """Which items load."""

    split: Literal["train", "eval"] = "train"
    num_tasks: int | None = Field(100, ge=1)
    """Items to load; null loads all, which only the eval split has."""


class HermesTaskset(vf.Taskset[HermesTask, HermesTasksetConfig]):
    """The items of the environment that the service serves."""

    def __init__(self, config: HermesTasksetConfig) -> None:
        if config.system_prompt is not None:
            raise ValueError("system_prompt is the environment's: start the service with --env.system_prompt")
        super().__init__(config)

    def load(self) -> Iterator[HermesTask]:
        """Yield the items. Raises: SystemExit with two lines, and no traceback, when no service gives them."""
        try:
            tasks = services_of(self.config).tasks(self.config.split, self.config.num_tasks)
        except RolloutError as error:
            raise SystemExit(
                f"hermes-env has no tasks: {error}\n"
                f"Start a service with `hermes-env serve-rollouts TARGET`, and set {SERVICES_VARIABLE} to its address."
            ) from None
        for task in tasks:
            data = HermesTaskData(item=task.item, prompt=task.prompt, system_prompt=task.system_prompt)
            yield HermesTask(data, self.config.task)
