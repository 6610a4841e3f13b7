"""The frozen record of one scenario, and the names of those that rules ask for. `scenarios` lists all of them.

Rules read these records and never run anything. ``unavailable`` is why a scenario could not run.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from pytest_hermes_env.play.buffers import Snapshot
from pytest_hermes_env.play.journal import Event, Left, Place, SurroundingChanged
from pytest_hermes_env.play.probing.record import RewardProbes
from pytest_hermes_env.play.sampling import SampledReply
from pytest_hermes_env.play.unavailable import ErrorKind, ItemsEnd, Unavailable

CASES = "cases"
"""The scenario of the transcripts that the author declares, and of four that need no author."""
PROBES = "reward_probes"
"""The scenario of the reward alone, on results of every form that a rollout can leave."""
ELSEWHERE = "reward_probes_elsewhere"
"""The same in another process."""
SETTINGS: dict[str, Any] = {
    "system_prompt": "You are the keeper of the seventh lighthouse.",
    "max_agent_turns": 11,
    "max_token_length": 1777,
    "extra_body": {"provider": {"order": ["seventh-lighthouse"]}},
}
"""The configuration in the scenarios ``training_with_settings`` and ``evaluate_with_settings``."""


@dataclass(frozen=True, kw_only=True)
class ItemSeen:
    """A copy of an item that get_next_item returned, and its prompt.

    ``key`` is equal for equal items. ``prompt`` is what format_prompt returned, of whatever type, ``error`` what it raised.
    ``is_changed``: formatting changed the item.
    """

    value: Any
    key: str
    prompt: Any = None
    error: str = ""
    is_changed: bool = False


@dataclass(frozen=True, kw_only=True)
class RolloutCanary:
    """A word that only the model of rollout ``task_id`` used; the id is empty where it called no tool with it."""

    word: str
    task_id: str


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """Where canaries were seen.

    ``where`` is "request" (``name`` is its number), "tool result" or "messages" (a task_id), "attribute" (its name, after all
    rollouts have ended), or "class attribute", "module" or "os.environ" (the name there). The last three are read at the end of
    each reward, and the read with most words counts, because other instances of the class may run at the same time.
    ``is_of_an_item``: the words are those of an item, and the place held no other before the first reward.
    """

    where: str
    name: str
    words: tuple[str, ...]
    is_of_an_item: bool = False


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One case, played on one item.

    ``reward`` is None if compute_reward returned no finite number; ``error`` is why. ``problem`` is an error of the declaration,
    which makes the reward meaningless. ``unavailable`` is why the case was not played; ``is_unfilled``: its author left it open.
    ``turns``, ``tools`` and ``tokens`` (of the answers) are the agent's, and ``tool_errors`` what its calls failed with. ``reads`` are
    files that the verifier read, with their writers; ``asked`` are its tool calls. ``is_judge_guessed``: a judge was
    asked, and its answers are not declared. ``is_foreign``: compute_reward read what AgentResult does not have (HE301), so the reward depends on that.
    """

    name: str
    item: str
    is_automatic: bool
    reward: float | None = None
    error: str = ""
    problem: str = ""
    unavailable: str = ""
    is_unfilled: bool = False
    turns: int = 0
    tools: tuple[str, ...] = ()
    tokens: int = 0
    transcript: tuple[str, ...] = ()
    tool_errors: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    not_found: tuple[str, ...] = ()
    is_judge_guessed: bool = False
    is_foreign: bool = False
    again: float | None = None
    """The reward of the same transcript in a second rollout, if there was one; ``again_error`` is why there is none."""
    again_error: str = ""
    path: str = ""
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What happened in one scenario.

    ``group`` is the ScoredDataGroup that collect_trajectories returned, ``returned`` the type of what it returned ("tuple of 2"), ``before`` and ``after`` are pictures of the
    environment's attributes, ``error`` is what the environment raised, at ``error_place``, ``requests`` are the bodies that reached the mock model,
    ``sampled`` is what it sampled for them in token mode. ``refusal`` is why run-api
    would reject the group. ``held_out`` are the items that get_eval_items returned.
    ``items``, ``canaries`` and ``sightings`` belong to `items` and `concurrent_groups`; ``training_events`` are those of the training
    group in `evaluate_beside_training`, whose ``events`` are the evaluation's. ``left`` are the leaked resources of `closing`.
    ``note`` holds further facts, such as why the scenario ended.
    """

    name: str
    unavailable: Unavailable | None = None
    error: str = ""
    error_kind: ErrorKind | None = None
    error_place: Place = field(default_factory=Place)
    events: tuple[Event, ...] = ()
    tool_calls: tuple[Any, ...] = ()
    requests: tuple[dict[str, Any], ...] = ()
    sampled: tuple[SampledReply, ...] = ()
    group: Any = None
    returned: str = ""
    refusal: str = ""
    before: Snapshot = field(default_factory=dict)
    after: Snapshot = field(default_factory=dict)
    logged: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    items: tuple[ItemSeen, ...] = ()
    held_out: tuple[ItemSeen, ...] = ()
    canaries: tuple[RolloutCanary, ...] = ()
    sightings: tuple[Sighting, ...] = ()
    training_events: tuple[Event, ...] = ()
    left: tuple[Left, ...] = ()
    items_end: ItemsEnd | None = None
    note: str = ""
    probes: RewardProbes | None = None
    """The result of the scenarios ``reward_probes`` and ``reward_probes_elsewhere``."""
    rungs: tuple[Rung, ...] = ()
    """The results of the scenario ``cases``."""
    played: tuple[Scenario, ...] = ()
    """The record of each rollout of the scenario ``cases``."""

    @property
    def happened(self) -> bool:
        """Whether the scenario ran."""
        return self.unavailable is None

    @property
    def failure(self) -> str:
        """What the environment did, as the end of a sentence: it raised an error, or never ended."""
        has_ended = self.error_kind not in {ErrorKind.NEVER_ENDED, ErrorKind.ENDED_PROCESS}
        return f"did not return: {self.error}" if not has_ended else f"raised {self.error}"

    def of(self, kind: type) -> list[Any]:
        """Return the events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def unrestored(self) -> tuple[SurroundingChanged, ...]:
        """The variables, and the working directory, that the environment set and did not restore, once each."""
        first: dict[str, SurroundingChanged] = {}
        last: dict[str, SurroundingChanged] = {}
        for change in self.of(SurroundingChanged):
            first.setdefault(change.name, change)
            last[change.name] = change
        return tuple(
            replace(last[name], before=change.before) for name, change in first.items() if change.before != last[name].after
        )
