"""Assigns calls to rollouts, and numbers rollouts in the order in which they begin.

A rollout begins where ``collect_trajectory`` begins, or, outside of that, where an agent loop's ``run`` does. A context variable
carries it to everything that the rollout awaits; tool calls, which may come from threads without one, are found by their task id.

Place in the flow: a cassette session watches the classes of all loaded layers, and those that make_env builds.
"""

from __future__ import annotations

import contextlib
import math
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from pytest_hermes_env.cassette.matching import opening_of
from pytest_hermes_env.patches import intercept

BASE, LOOP = "HermesAgentBaseEnv", "HermesAgentLoop"


class LiveRollout:
    """One rollout that is running or has run. ``number`` counts from 1; in a replay it is the recorded rollout's number."""

    def __init__(self, opening: str, environment: type | None) -> None:
        self.opening = opening
        self.environment = environment
        self.number = 0
        self.is_recorded = False
        self.turn = 0
        self.is_looping = False
        self.has_looped = False
        self.is_collected = False
        self.has_missed = False
        self.reward: float | None = None
        self.reward_error = ""
        self.has_reward = False

    def describe(self) -> str:
        """Return where the rollout is, as a phrase for error messages."""
        place = (
            f"turn {self.turn}" if self.is_looping else ("outside of its agent loop" if self.has_looped else "its beginning")
        )
        return f"rollout {self.number}, {place}"


class RolloutWatch:
    """Watches environments while it is open: `current` is the rollout of the running task, `of` that of a tool call.

    ``begin`` is called with each rollout when it begins, and sets its number.
    """

    def __init__(self, begin: Callable[[LiveRollout], None]) -> None:
        self._begin = begin
        self._lock = threading.Lock()
        self._current: ContextVar[LiveRollout | None] = ContextVar("hermes_env_rollout", default=None)
        self._rewarded: ContextVar[bool] = ContextVar("hermes_env_in_reward", default=False)
        self._by_task: dict[str, LiveRollout] = {}
        self._watched: dict[tuple[type, str], Any] = {}
        self._patches = contextlib.ExitStack()
        self.rollouts: list[LiveRollout] = []

    @property
    def current(self) -> LiveRollout | None:
        """The rollout that the running task belongs to; None outside of one."""
        return self._current.get()

    def of(self, task_id: str) -> LiveRollout | None:
        """Return the rollout of a tool call."""
        found = self._by_task.get(task_id)
        if found is None and (found := self.current) is not None and task_id:
            self._by_task[task_id] = found
        return found

    def open(self) -> None:
        """Watch every environment class and agent loop that is loaded."""
        for module in list(sys.modules.values()):
            names = getattr(module, "__dict__", {})
            for name in (BASE, LOOP):
                found = names.get(name)
                if isinstance(found, type):
                    self.watch(found)

    def watch(self, cls: type) -> None:
        """Watch a class, its bases and its subclasses; classes that are watched already stay watched."""
        for each in dict.fromkeys((*cls.__mro__, *_descendants(cls))):
            if _is_environment(each):
                self._patch(each, "collect_trajectory", self._collecting)
                self._patch(each, "compute_reward", self._rewarding)
            elif any(ancestor.__name__ == LOOP for ancestor in each.__mro__):
                self._patch(each, "run", self._running)

    def close(self) -> None:
        """Stop watching."""
        self._patches.close()
        self._watched.clear()

    def _patch(self, cls: type, name: str, handler: Callable[..., Any]) -> None:
        installed = vars(cls).get(name)
        if not callable(getattr(installed, "__func__", installed)) or self._watched.get((cls, name)) is installed:
            return  # a method that a test has put in its place since then is watched, too
        owner = LOOP if name == "run" else BASE
        self._patches.enter_context(intercept(f"{owner}.{name}", handler, owner=cls))
        self._watched[cls, name] = vars(cls)[name]

    def _start(self, opening: object, environment: type | None) -> LiveRollout:
        rollout = LiveRollout(opening_of(opening), environment)
        with self._lock:
            self.rollouts.append(rollout)
            self._begin(rollout)
        return rollout

    async def _collecting(self, real: Any, env: Any, *args: Any, **kwargs: Any) -> Any:
        current = self._current.get()
        if current is not None and current.is_collected:
            return await real(env, *args, **kwargs)
        rollout = self._start(args[0] if args else kwargs.get("item"), type(env))
        rollout.is_collected = True
        token = self._current.set(rollout)
        try:
            return await real(env, *args, **kwargs)
        finally:
            rollout.is_collected = False
            self._current.reset(token)

    async def _running(self, real: Any, loop: Any, *args: Any, **kwargs: Any) -> Any:
        current = self._current.get()
        if current is None or (current.has_looped and not current.is_collected and not current.is_looping):
            current = self._start(args[0] if args else kwargs.get("messages"), None)
            self._current.set(current)  # stays: what follows the loop in this task, its reward, belongs to it
        self._by_task[str(getattr(loop, "task_id", ""))] = current
        current.is_looping = current.has_looped = True
        try:
            return await real(loop, *args, **kwargs)
        finally:
            current.is_looping = False

    async def _rewarding(self, real: Any, *args: Any, **kwargs: Any) -> Any:
        """Note a reward; ``args`` begin with the environment, its class where the reward is one of the class, or the item where it is static."""
        rollout = self._current.get()
        if rollout is None or self._rewarded.get():
            return await real(*args, **kwargs)
        kinds = (one if isinstance(one, type) else type(one) for one in args[:1])
        rollout.environment = rollout.environment or next((kind for kind in kinds if _is_environment(kind)), None)
        rollout.has_reward = True
        token = self._rewarded.set(True)
        try:
            reward = await real(*args, **kwargs)
        except Exception as error:
            rollout.reward_error = f"{type(error).__name__}: {error}"
            raise
        finally:
            self._rewarded.reset(token)
        rollout.reward = _number(reward)
        return reward


def _is_environment(cls: type) -> bool:
    return any(ancestor.__name__ == BASE for ancestor in cls.__mro__)


def _descendants(cls: type) -> list[type]:
    found: list[type] = []
    children: list[type] = cls.__subclasses__()
    for child in children:
        found += [child, *_descendants(child)]
    return found


def _number(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def same_reward(one: float | None, other: float | None) -> bool:
    """Return whether two rewards are equal; NaN equals NaN."""
    if one is None or other is None:
        return one is other
    return one == other or (math.isnan(one) and math.isnan(other))
