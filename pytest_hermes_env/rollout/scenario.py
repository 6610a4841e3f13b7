"""The frozen record of one named situation that an environment is put into. `scenarios` says which there are.

Rules read these records; they never run anything. A scenario that could not be run says why in ``unavailable``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from pytest_hermes_env.rollout.buffers import Snapshot
from pytest_hermes_env.rollout.cases import Rung
from pytest_hermes_env.rollout.journal import Event, Place, SurroundingChanged
from pytest_hermes_env.rollout.probing.record import RewardProbes
from pytest_hermes_env.rollout.sampling import SampledReply
from pytest_hermes_env.rollout.unavailable import ErrorKind, ItemsEnd, Unavailable

__all__ = ["ItemSeen", "Left", "RolloutCanary", "Scenario", "Sighting"]


@dataclass(frozen=True, kw_only=True)
class ItemSeen:
    """An item that get_next_item gave, as it was then, and what format_prompt made of it.

    ``key`` is equal for equal items. ``prompt`` is what came back, whatever its type; ``error`` is what was raised instead;
    both are empty where format_prompt was not asked (``is_formatted``). ``is_changed``: formatting changed the item.
    """

    value: Any
    key: str
    prompt: Any = None
    error: str = ""
    is_formatted: bool = False
    is_changed: bool = False


@dataclass(frozen=True, kw_only=True)
class RolloutCanary:
    """A word that only the model of rollout ``task_id`` said; the id is empty where none of its tools was called with it."""

    word: str
    task_id: str


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """Where canaries were seen.

    ``where`` is "request" (``name`` is its number), "tool result" or "messages" (a task_id), after all rollouts have ended
    "attribute" (its name), and "class attribute", "module" or "os.environ" (the name there) at the end of that reward after
    which it held most words: other instances of the class may be at work beside this one.
    """

    where: str
    name: str
    words: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Left:
    """What the environment made at ``place`` and did not take away: ``kind`` is process, thread, temporary directory or client."""

    kind: str
    name: str
    place: Place


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What happened in one named situation.

    ``group`` is what collect_trajectories gave (a ScoredDataGroup), ``before`` and ``after`` picture the environment's
    attributes, ``error`` is what was raised out of the environment, ``requests`` are the bodies that reached the mock model,
    ``judge_questions`` of them offered no tools, ``sampled`` is what it sampled for them in token mode. ``refusal`` is why
    run-api would not take the group, if it would not.
    ``held_out`` are the items of the environment's own get_eval_items. ``items``, ``canaries`` and ``sightings`` are those of `items` and `concurrent_groups`; ``beside`` are the events of the
    training group in `evaluate_beside_training`, whose ``events`` are the evaluation's. ``left`` is that of
    `closing`. ``note`` says what else is worth knowing, such as why it ended.
    """

    name: str
    unavailable: Unavailable | None = None
    error: str = ""
    error_kind: ErrorKind | None = None
    error_line: int = 0
    events: tuple[Event, ...] = ()
    tool_calls: tuple[Any, ...] = ()
    requests: tuple[dict[str, Any], ...] = ()
    judge_questions: int = 0
    sampled: tuple[SampledReply, ...] = ()
    group: Any = None
    refusal: str = ""
    before: Snapshot = field(default_factory=dict)
    after: Snapshot = field(default_factory=dict)
    logged: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    items: tuple[ItemSeen, ...] = ()
    held_out: tuple[ItemSeen, ...] = ()
    canaries: tuple[RolloutCanary, ...] = ()
    sightings: tuple[Sighting, ...] = ()
    beside: tuple[Event, ...] = ()
    left: tuple[Left, ...] = ()
    items_end: ItemsEnd | None = None
    note: str = ""
    probes: RewardProbes | None = None
    """What the scenario ``reward_probes`` found out."""
    rungs: tuple[Rung, ...] = ()
    """What the scenario ``cases`` found out."""

    @property
    def happened(self) -> bool:
        """Whether the scenario was run at all."""
        return self.unavailable is None

    def of(self, kind: type) -> list[Any]:
        """Return the events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def unrestored(self) -> tuple[SurroundingChanged, ...]:
        """The variables, and the working directory, that the environment set and did not put back, once each."""
        first: dict[str, SurroundingChanged] = {}
        last: dict[str, SurroundingChanged] = {}
        for change in self.of(SurroundingChanged):
            first.setdefault(change.name, change)
            last[change.name] = change
        return tuple(
            replace(last[name], before=change.before) for name, change in first.items() if change.before != last[name].after
        )
