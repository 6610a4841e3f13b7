"""What was played of one class, as rules read it: the frozen record of each scenario, and what is known without one.

Rules read these records and never run anything. `scenarios` lists all scenarios; here are the names of those that rules ask for.
"""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_hermes_env.play.buffers import Snapshot, picture
from pytest_hermes_env.play.class_record import ClassRecord, ConfigInit
from pytest_hermes_env.play.journal import Caught, Event, Left, Place, Raised, SurroundingChanged
from pytest_hermes_env.play.probing.record import RewardProbes
from pytest_hermes_env.play.raised import NeverEnded
from pytest_hermes_env.play.sampling import SampledReply

CASES = "cases"
"""The scenario of the transcripts that the author declares, and of four that need no author."""
PROBES = "reward_probes"
"""The scenario of the reward alone, on results of every form that a rollout can leave."""
ELSEWHERE = "cases_elsewhere"
"""Both in another process: with another hash seed, working directory, order and day."""
TAMPERING = "tampering"
"""The scenario of attacks on the verifier."""
WRONG_PROGRAMS = "wrong_programs"
"""The scenario of programs that are wrong in one place, which a search with more effort plays."""
SETTINGS: dict[str, Any] = {
    "system_prompt": "You are the keeper of the seventh lighthouse.",
    "max_agent_turns": 11,
    "max_token_length": 1777,
    "extra_body": {"provider": {"order": ["seventh-lighthouse"]}},
}
"""The configuration in the scenarios ``training_with_settings`` and ``evaluate_with_settings``."""


class Cause(enum.Enum):
    """Why a scenario was not played. The value is the text; ``{}`` is replaced by the detail."""

    CANNOT_BUILD = "the environment could not be built: {}"
    SETUP_FAILED = "setup failed: {}"
    SETUP_NOT_ASYNC = "setup is not async: {}"
    EARLIER_FAILURE = "an earlier scenario failed: {}"
    NOTHING_TO_TRAIN = "there is nothing to train on: {}"
    NO_ITEM = "there was no training item: {}"
    CHAT_MODE = "chat mode has no sampled tokens"
    OTHER_LAYER = "the configuration has no {}"
    NO_JUDGE = "no judge was called: every request of a training group offered tools"
    NO_ANSWER = "no field of the item is named like an answer"
    NO_GOLD = "no gold is declared that can be played on {}"
    NOT_IN_MEMORY = "attacks are played on an in-memory machine: --hermes-sandbox fake"
    OUT_OF_TIME = "{}"
    NO_EFFORT = "it is part of `hermes-env attack`, and of --hermes-effort 2"
    NO_REAL_TOOLS = "a command line was refused: {}"
    NOT_REACHED = "the scenario ended before {}"


@dataclass(frozen=True)
class Unavailable:
    """A cause and its detail; ``str()`` is the sentence that reports show."""

    cause: Cause
    detail: str = ""
    place: Place = field(default_factory=Place)
    """The line of the environment that is the cause, where one is known."""

    def __str__(self) -> str:
        return self.cause.value.format(self.detail)


class ItemsEnd(enum.Enum):
    """Why no further training item was taken. The value is the text; ``{}`` is replaced by the number of items."""

    STUB = "get_next_item raises NotImplementedError: it is a stub, there is nothing to train on"
    NONE = "get_next_item returned only None after {} items"
    REPEATED = "the first item was returned again after {}"
    LIMIT = "stopped after {} items, without the first one being returned again"


_EVALUATE = re.compile(r"(?:([\w<>]+)\.)?evaluate\(\) missing ")


class ErrorKind(enum.Enum):
    """Errors that rules tell apart."""

    NOT_AWAITABLE = enum.auto()
    """A plain function was awaited."""
    EVALUATE_NEEDS_ARGUMENTS = enum.auto()
    """``evaluate()`` was called without an argument that it requires."""
    NEVER_ENDED = enum.auto()
    """A call did not end in time."""
    ENDED_PROCESS = enum.auto()
    """The environment ended its process."""
    OTHER = enum.auto()


def kind_of(error: BaseException, classes: Iterable[str] = ()) -> ErrorKind:
    """Return the kind of an error of an environment whose classes have these names. CPython has no classes for these, only texts of TypeError."""
    if isinstance(error, NeverEnded):
        return ErrorKind.NEVER_ENDED
    text = str(error) if isinstance(error, TypeError) else ""
    if "can't be used in 'await' expression" in text:
        return ErrorKind.NOT_AWAITABLE
    if (called := _EVALUATE.search(text)) is not None and called[1] in {None, "<locals>", *classes}:
        return ErrorKind.EVALUATE_NEEDS_ARGUMENTS  # another object's evaluate has other arguments
    return ErrorKind.OTHER


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
class RolePlayed:
    """What the model of rollout ``task_id`` did: the case ``name``, on an item whose prompt is ``prompt``.

    ``is_judge_guessed``: a judge was asked whose answers are not declared. ``prepared``: how many files its sandbox began with.
    """

    task_id: str
    name: str
    prompt: str
    is_judge_guessed: bool = False
    prepared: int = 0


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """Where canaries were seen.

    ``where`` is "message" (``name`` is its role), "file" (a path), "request" (its number), "tool result" or "messages" (a task_id), "attribute" (its name, after all
    rollouts have ended), or "class attribute", "module" or "os.environ" (the name there). The last three are read at the end of
    each reward, and the read with most words counts, because other instances of the class may run at the same time.
    ``is_of_an_item``: the words are those of an item, and the place held no other before the first reward.
    """

    where: str
    name: str
    words: tuple[str, ...]
    is_of_an_item: bool = False


class Worth(enum.StrEnum):
    """What a neighbour of gold is worth, or what its judge did."""

    NONE = ""
    WORSE = "worse"
    """Its work is worse, so it earns less."""
    UNKNOWN = "unknown"
    """It is worse or as good: only the author knows."""
    SAME = "same"
    """Its work is the same, by another way, so it earns about the same."""
    AS_GOOD = "as good"
    """Its words differ, and a person would take them for as good: the author knows."""
    WITH_LIES = "with lies"
    """Its work is the same, and it claims more, so it earns no more."""
    JUDGED_WORST = "judged worst"
    """Gold, to which the judge gave its worst."""
    JUDGED_LOW = "judged 1 of many"
    JUDGED_VETO = "gold with a flag set that is not"
    JUDGED_HALF = "judged half"
    JUDGED_BEST = "gold with the best verdict"
    JUDGED_BAD = "wrong work judged worst"
    JUDGED_SILENT = "wrong work without a clear verdict"
    JUDGED_PART = "a part of the work, judged worst but for one criterion"
    JUDGED_UNSEEN = "other work unseen"
    """Other work with the judge's answer to gold, which it cannot have seen."""


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One case, played on one item.

    ``reward`` is None if compute_reward returned no finite number; ``error`` is why. ``problem`` is an error of the declaration,
    which makes the reward meaningless. ``unavailable`` is why the case was not played; ``is_unfilled``: its author left it open.
    ``turns``, ``tools`` and ``tokens`` (of the answers) are the agent's, and ``tool_errors`` what its calls failed with. ``reads`` are
    files that the verifier looked for, with their writers, and ``asked`` its tool calls with what they came to; ``work`` are the files that the agent wrote. ``is_judge_guessed``: a judge was
    asked, and its answers are not declared. ``is_foreign``: compute_reward read what AgentResult does not have (HE301), so the reward depends on that.
    ``change`` is what makes it a neighbour of gold, and ``worth`` what the neighbour is worth.
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
    work: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    not_found: tuple[str, ...] = ()
    is_judge_guessed: bool = False
    is_foreign: bool = False
    caught: Caught | None = None
    """An error that compute_reward caught itself while it judged the work, if there was one."""
    stale: str = ""
    """A prepared file of its sandbox that holds text of another item; ``copied`` is one that holds what it wrote."""
    copied: str = ""
    order: str = ""
    """How the task gives what gold puts into an order: `given_order.order_in`."""
    outside: tuple[tuple[str, str], ...] = ()
    """Files that were written below the directory for temporary files of the whole machine, with digests."""
    change: str = ""
    worth: Worth = Worth.NONE
    again: float | None = None
    """The reward of the same transcript in a second rollout, if there was one; ``again_error`` is why there is none."""
    again_error: str = ""
    hack: str = ""
    """Of an attack, its case as YAML; ``against`` is what gold and wrong work earn."""
    against: str = ""
    path: str = ""
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Which training items the cases could be played on: so many ``different`` ones came in ``drawn`` calls of get_next_item.

    ``is_whole``: no other one would come. ``left`` are `item_key` of those that never came, of the collections that hold the others.
    """

    drawn: int = 0
    different: int = 0
    is_whole: bool = False
    left: tuple[str, ...] = ()


def item_key(item: Any) -> str:
    """Return a short key that equal items have."""
    return hashlib.blake2b(repr(picture(item)).encode(errors="surrogatepass"), digest_size=8).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What happened in one scenario.

    ``group`` is the ScoredDataGroup that collect_trajectories returned, ``returned`` the type of what it returned ("tuple of 2"), ``before`` and ``after`` are pictures of the
    environment's attributes, ``error`` is what the environment raised, at ``error_place``, ``requests`` are the bodies that reached the mock model,
    ``sampled`` is what it sampled for them in token mode. ``refusal`` is why run-api
    would reject the group. ``held_out`` are the items that get_eval_items returned, or that an evaluation asked.
    ``items``, ``canaries`` and ``sightings`` belong to `items` and `concurrent_groups`, ``roles`` to the scenarios of gold beside no work; ``training_events`` are those of the training
    group in `evaluate_during_training`, whose ``events`` are the evaluation's. ``left`` are the leaked resources of `closing`.
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
    roles: tuple[RolePlayed, ...] = ()
    training_events: tuple[Event, ...] = ()
    left: tuple[Left, ...] = ()
    items_end: ItemsEnd | None = None
    note: str = ""
    probes: RewardProbes | None = None
    """The result of the scenarios ``reward_probes`` and ``cases_elsewhere``."""
    rungs: tuple[Rung, ...] = ()
    """The results of the scenarios ``cases`` and ``cases_elsewhere``, and which items they could choose from."""
    sweep: Sweep = field(default_factory=Sweep)
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


@dataclass(frozen=True, kw_only=True)
class CaseRules:
    """What the author's cases say about rewards, as in `Cases`."""

    order: tuple[tuple[str, ...], ...]
    gap: float
    is_strict: bool
    equivalent: tuple[str, ...] = ()
    worse: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ProcessEnd:
    """How the process of a class ended, where it was not by itself: ``how`` as the end of a sentence, ``advice`` as in `Raised`."""

    how: str
    place: Place = field(default_factory=Place)
    advice: str = ""


@dataclass(frozen=True, kw_only=True)
class Collection:
    """The scenarios of one class that were collected, and what is known without one.

    ``cls`` is None where the class was never there: then ``import_error`` says why. ``sandbox`` says what answered the tools.
    ``server_type`` is "openai" in chat mode, "vllm" or "sglang" in token mode. ``group_size`` is that of the configuration.
    ``fails_beside_another`` is why a set-up failed while other instances of the class were alive, and not later, alone.
    ``nothing_to_train`` is why the class is an evaluation by its own code; empty for a class that is meant to train.
    ``lines_run`` are lines, by file, that the rollouts ran of the files that were asked about. ``at_exit`` is what kept the process
    from ending after its last scenario. ``raised`` are the errors of the environment's code, once each.
    """

    cls: ClassRecord | None = None
    import_error: ProcessEnd | None = None
    scenarios: dict[str, Scenario] = field(default_factory=dict)
    config_init: ConfigInit = field(default_factory=ConfigInit)
    cases: CaseRules | None = None
    sandbox: str = ""
    server_type: str = "openai"
    group_size: int = 0
    nothing_to_train: str = ""
    fails_beside_another: Unavailable | None = None
    lines_run: dict[str, list[int]] = field(default_factory=dict)
    at_exit: ProcessEnd | None = None
    raised: tuple[Raised, ...] = ()

    def without_scenarios(self, **changes: Any) -> Collection:
        """Return the same without its scenarios, which have lines of their own, and with other fields."""
        return replace(self, scenarios={}, **changes)

    @property
    def has_tokens(self) -> bool:
        """Whether the rollouts ran in token mode."""
        return self.server_type != "openai"
