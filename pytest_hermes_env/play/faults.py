"""The step that a scenario makes fail or hang: a plan with one fault. The scenario's journal carries it; the watchers ask it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from pytest_hermes_env.faults.plan import FaultPlan, PlannedFault

Fault = Literal[
    "none",
    "loop_raises",
    "loop_hangs",
    "reward_raises",
    "reward_hangs",
    "reward_waits",
    "rewards_fall",
    "rewards_rise",
    "tools_fail",
    "tool_hangs",
    "sandbox_lost",
]
"""A sandbox that is lost raises in the reward. A step that ``waits`` continues when it is released; one that ``hangs`` ends with a cancellation; rewards that ``fall`` are 1 and 0 in turn,
those that ``rise`` 0 and 1."""


_rollout_number: ContextVar[int | None] = ContextVar("rollout_number", default=None)
"""The place of the current rollout in the order in which the scenario's rollouts began."""


class InjectedFault(RuntimeError):
    """Raised by a scenario in place of an error that an environment could meet; never a finding by itself."""


@dataclass
class Faults:
    """Which step fails, at most ``most`` times.

    ``reached`` is set when a hanging step is entered; a waiting one continues when ``released`` is set, and a tool that hangs when
    the plan's is.
    """

    fault: Fault = "none"
    most: int | None = None
    plan: FaultPlan = field(default_factory=FaultPlan)
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    expected: int = 0
    """How many waiting rewards release each other; with 0 the scenario releases them."""
    waiting: int = 0
    begun: int = 0
    """How many rollouts have begun: rewards do not depend on which of them ends first."""
    look: Callable[[], None] | None = None
    """Called whenever a reward has ended, before anything else runs."""
    look_before: Callable[[], None] | None = None
    """Called when a reward that waited continues."""
    loop: asyncio.AbstractEventLoop | None = None
    """The loop that the scenario runs in, for steps that hang in a thread."""

    def __post_init__(self) -> None:
        self.plan.add(PlannedFault(place="scenario", kind=self.fault, times=self.most))

    def planned_reward(self) -> float | None:
        """Return the reward that the scenario gives in place of the environment's: 1 and 0 in turn, or 0 and 1; None without one."""
        if self.fault not in {"rewards_fall", "rewards_rise"}:
            return None
        self.waiting += 1
        begun = _rollout_number.get()
        number = self.waiting if begun is None else begun
        return float(number % 2 == (self.fault == "rewards_fall"))

    @contextlib.contextmanager
    def rollout(self) -> Iterator[None]:
        """Count a rollout that begins, and know its number until it ends."""
        self.begun += 1
        token = _rollout_number.set(self.begun)
        try:
            yield
        finally:
            _rollout_number.reset(token)

    def fails(self, fault: Fault) -> bool:
        """Return whether that step fails now, and count it."""
        return self.plan.strike("scenario", fault, frozenset({fault})) is not None

    def hang_in_thread(self) -> None:
        """Block a tool's thread until the scenario releases it. Does nothing in the loop's own thread, which nothing could release."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            if self.loop is not None:
                self.loop.call_soon_threadsafe(self.reached.set)
            self.plan.released.wait()

    async def wait_in_reward(self) -> None:
        """Wait until the scenario, or the last of the expected rewards, releases this one."""
        self.reached.set()
        self.waiting += 1
        if self.expected and self.waiting >= self.expected:
            self.released.set()
        await self.released.wait()
