"""The results of probing a reward, as frozen values that rules read."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, SupportsFloat

from pytest_hermes_env.play.journal import Place

PAID = 0.5
"""A canary that raises the reward by this much earns what work should earn; less may come from style and length."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One call of compute_reward.

    ``error`` is what it raised, as text, and ``place`` where; ``is_foreign`` when it failed at a field that AgentResult does not
    have (HE301). ``changed`` names the inputs that it changed. ``cleanups`` counts the cleanups of its context, ``judged`` the
    requests to a model, ``absent`` are commands and tools that its machine did not have.
    """

    value: Any = None
    error: str = ""
    place: Place = field(default_factory=Place)
    is_foreign: bool = False
    is_timeout: bool = False
    changed: tuple[str, ...] = ()
    cleanups: int = 0
    judged: int = 0
    absent: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The reward, or what was raised, as text."""
        return self.error or repr(self.value)

    @property
    def number(self) -> float | None:
        """The reward, if it is a finite number."""
        return None if self.error else as_number(self.value)


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One result and its reward. ``expression`` is Python source of the result, ready to paste.

    ``is_foreign`` when this layer's loop would not return such a result; other layers and recorded data hold some.
    ``again`` is a second call on equal inputs, if there was one. ``has_calls``: tools were called in it.
    """

    name: str
    expression: str
    trial: Trial
    again: Trial | None = None
    is_foreign: bool = False
    has_calls: bool = False


@dataclass(frozen=True, kw_only=True)
class Canary:
    """Words that cost no work, and their reward.

    ``is_answer`` when they are the item's expected answer; ``base`` and ``reward`` are without and with them.
    """

    name: str
    expression: str
    base: float
    reward: float
    is_answer: bool = False


@dataclass(frozen=True, kw_only=True)
class RewardProbes:
    """Everything that probing found. ``unavailable`` is why there was none, ``cut`` why it ended early, ``item`` a picture."""

    unavailable: str = ""
    cut: str = ""
    item: str = ""
    probes: tuple[Probe, ...] = ()
    canaries: tuple[Canary, ...] = ()

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every call, second ones included."""
        return tuple(trial for probe in self.probes for trial in (probe.trial, probe.again) if trial is not None)

    @property
    def asks_a_judge(self) -> bool:
        """Whether any reward asked a model."""
        return any(trial.judged for trial in self.trials)

    @property
    def unsteady(self) -> Probe | None:
        """The smallest result that this layer's loop may return and that got two different rewards; None without one."""
        twice = [probe for probe in self.probes if probe.again is not None and not probe.trial.is_foreign]
        unsteady = [probe for probe in twice if probe.again is not None and probe.trial.shown != probe.again.shown]
        return min(unsteady, key=lambda probe: len(probe.expression), default=None)

    @property
    def numbers(self) -> tuple[float, ...]:
        """The rewards that were finite numbers."""
        return tuple(number for probe in self.probes if (number := probe.trial.number) is not None)


def as_number(value: Any) -> float | None:
    """Return a reward as a float; None unless it is a finite number. A bool is not a number."""
    if isinstance(value, bool) or not isinstance(value, SupportsFloat):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
