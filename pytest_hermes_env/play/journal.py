"""The journal of one scenario: what was called, opened, cleaned and logged, in the order in which it happened.

`recording` makes a journal the current one. The watchers write into the journal that is current, so tasks and threads of one
scenario share its journal.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from pytest_hermes_env.play.faults import Faults


@dataclass(frozen=True, kw_only=True)
class Place:
    """A line of source, from 1; an empty path means that it is unknown."""

    path: str = ""
    line: int = 0
    function: str = ""


@dataclass(frozen=True, kw_only=True)
class Raised:
    """An error, the deepest line of the environment's code that it came from, and what to write there, where the error shows it."""

    text: str
    place: Place
    advice: str = ""


@dataclass(frozen=True, kw_only=True)
class Left:
    """A resource that the environment created at ``place`` and leaked: ``kind`` is process, thread, temporary directory or client."""

    kind: str
    name: str
    place: Place


@dataclass(frozen=True, kw_only=True)
class ContextOpened:
    """A ToolContext was created at ``place``; ``number`` distinguishes contexts of one task.

    ``by_layer``: the layer created it itself, and ``place`` is where the environment called the layer.
    """

    number: int
    task_id: str
    by_layer: bool
    place: Place


@dataclass(frozen=True, kw_only=True)
class Cleaned:
    """The ToolContext ``number`` was cleaned up; ``in_reward``: while compute_reward was running for it.

    ``left_open_by`` is where the cleanup that released nothing is defined.
    """

    number: int
    task_id: str
    in_reward: bool = False
    left_open_by: Place | None = None


@dataclass(frozen=True, kw_only=True)
class LoopStarted:
    """An agent loop started; ``tools`` are the names that it offers to the model. ``by_layer`` as in `ContextOpened`.

    ``messages`` is a copy of its first argument. The other fields are the loop's settings.
    """

    task_id: str
    by_layer: bool
    tools: tuple[str, ...]
    temperature: float | None
    max_turns: int | None
    place: Place
    max_tokens: int | None = None
    extra_body: dict[str, Any] | None = None
    messages: tuple[Any, ...] = ()

    @property
    def system_prompt(self) -> str | None:
        """The text of the first system message, None without one."""
        messages = (message for message in self.messages if isinstance(message, dict) and message.get("role") == "system")
        text = next(messages, {}).get("content")
        return text if isinstance(text, str) else None


@dataclass(frozen=True, kw_only=True)
class LoopEnded:
    """An agent loop returned; ``error`` is what it raised, ``end`` the end that its result names, both if any."""

    task_id: str
    turns_used: int
    error: str
    end: str = ""


@dataclass(frozen=True, kw_only=True)
class Caught:
    """An error in the environment's code, raised at ``place``; the function that caught it had reached ``caught_at``."""

    error: str
    place: Place
    caught_at: Place
    is_own: bool = False
    """Whether it is a mistake also where a handler names it."""
    is_mistake: bool = True
    """Whether no transcript can be its cause."""


NEVER_RETURNED = "did not return before the scenario's time was over"
"""The error of a reward that hung."""


@dataclass(frozen=True, kw_only=True)
class Reward:
    """compute_reward returned ``value`` or raised ``error``; ``injected`` when the scenario made it fail.

    ``task_id`` is that of its ToolContext, ``item`` and ``messages`` are copies of its arguments from before the call;
    ``changed`` names those of the two that the call changed. ``is_plain``: it returned a value that cannot be awaited. ``caught``:
    the errors in the environment's code that it caught itself.
    """

    value: Any
    error: str
    injected: bool
    place: Place
    task_id: str = ""
    item: Any = None
    messages: tuple[Any, ...] = ()
    changed: tuple[str, ...] = ()
    is_plain: bool = False
    caught: tuple[Caught, ...] = ()


@dataclass(frozen=True, kw_only=True)
class UnknownRead:
    """compute_reward read something that AgentResult does not have."""

    name: str
    guarded: bool
    place: Place


@dataclass(frozen=True, kw_only=True)
class EvaluationLogged:
    """evaluate_log was awaited. ``failed`` samples have an error, or the score None; ``error`` is the first of these errors."""

    metrics: dict[str, Any]
    samples: int
    failed: int = 0
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class EvaluationReturned:
    """evaluate() returned; what it left to tasks comes later."""


@dataclass(frozen=True, kw_only=True)
class SurroundingChanged:
    """The environment's code, at ``place``, set a variable of os.environ or the working directory (``name`` is then "cwd").

    ``before`` and ``after`` are None for an unset variable; ``original`` is the value before the environment first set ``name``
    in any rollout.
    """

    name: str
    before: str | None
    after: str | None
    place: Place
    original: str | None = None


@dataclass(frozen=True, kw_only=True)
class Blocked:
    """The event loop did not run for ``seconds``, most of them spent at ``place`` of the environment. Imports do not count."""

    seconds: float
    place: Place


@dataclass(frozen=True, kw_only=True)
class Crossed:
    """In the loop or the reward (``phase``) of rollout ``task_id``, a tool was called in the sandbox of ``other``."""

    task_id: str
    phase: str
    other: str
    tool: str


@dataclass(frozen=True, kw_only=True)
class HostUsed:
    """A reward did something on the host with the agent's work: ``what`` as the predicate of a sentence, and the ``value`` that tells."""

    what: str
    value: str
    place: Place


@dataclass(frozen=True, kw_only=True)
class ItemScored:
    """collect_trajectory returned a scored item with ``tokens [T]``, ``masks [T]`` and ``logprobs [T]``.

    ``logprobs`` is None when the item has no ``inference_logprobs``. ``score`` is the item's ``scores``. ``sequences`` is how many
    rows the rollout has in its group; the columns are those of the first. ``task_id`` is that of the rollout whose reward came last.
    """

    tokens: tuple[int, ...]
    masks: tuple[int, ...]
    logprobs: tuple[float | None, ...] | None = None
    score: Any = None
    sequences: int = 1
    task_id: str = ""


Event = (
    Blocked
    | Cleaned
    | ContextOpened
    | Crossed
    | EvaluationLogged
    | EvaluationReturned
    | HostUsed
    | ItemScored
    | LoopEnded
    | LoopStarted
    | Reward
    | SurroundingChanged
    | UnknownRead
)


@dataclass
class Journal:
    """Events of one scenario, appended from any thread.

    ``faults`` is the step that fails in it, ``sandbox`` answers its tools, ``log`` receives what it logs to wandb, ``model``
    answers its judges, ``tasks`` are those that were created in it.
    """

    events: list[Event] = field(default_factory=list)
    tool_calls: list[Any] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)
    sandbox: Any = None
    log: Callable[[dict[str, Any]], None] | None = None
    model: Any = None
    warnings: list[str] = field(default_factory=list)
    is_late: bool = False
    """Whether the scenario did not end in time, so that what is cancelled now is what it waited for."""
    tasks: weakref.WeakSet[asyncio.Task[Any]] = field(default_factory=weakref.WeakSet)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _contexts: int = 0

    def add(self, event: Event) -> None:
        """Append one event."""
        with self._lock:
            self.events.append(event)

    def next_number(self) -> int:
        """Return the number of the next ToolContext."""
        with self._lock:
            self._contexts += 1
            return self._contexts


current_journal: ContextVar[Journal | None] = ContextVar("hermes_env_journal", default=None)

current_rewarded: ContextVar[tuple[Any, Any]] = ContextVar("hermes_env_rewarded", default=(None, None))
"""The item and the result that a reward is computed for."""
current_rollout: ContextVar[tuple[str, str]] = ContextVar("hermes_env_rollout", default=("", ""))
"""(task_id, phase) of the rollout that the running code belongs to; the phase is "loop" or "reward"."""
last_rollout: ContextVar[str] = ContextVar("hermes_env_last_rollout", default="")
"""The task_id of the last loop of this task of asyncio: what asks a judge behind it asks about its work."""


def current_faults() -> Faults:
    """Return what fails in the running scenario; nothing fails outside of one."""
    journal = current_journal.get()
    return Faults() if journal is None else journal.faults


def note(event: Event) -> None:
    """Append an event to the current journal, if there is one."""
    if journal := current_journal.get():
        journal.add(event)


@contextlib.contextmanager
def recording(journal: Journal | None = None) -> Iterator[Journal]:
    """Make a journal, by default a new one, the current one while the context lasts."""
    journal = Journal() if journal is None else journal
    token = current_journal.set(journal)
    try:
        yield journal
    finally:
        current_journal.reset(token)
