"""Declared cases of an environment: transcripts of known quality, and the order of their rewards.

Place in the flow: `contract.cases` reads declarations into these values, the scenario `cases` plays them, and rules judge the
`Rung` that each play returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pytest_hermes_env.inference.steps import Turn

GOLD, NEAR_MISS, NOTHING, HACK = "gold", "near_miss", "nothing", "hack"
WRONG_CONTENT, ECHO, TOOLS = "wrong_content", "echo", "tools"

WELL_KNOWN = (GOLD, NEAR_MISS, NOTHING, HACK)
"""The cases that an author should declare."""

AUTOMATIC: dict[str, str] = {
    TOOLS: "every offered tool is used once, harmlessly",
    WRONG_CONTENT: "right form, wrong content",
    ECHO: "the prompt is repeated",
    NOTHING: "an answer without any work",
}
"""The cases that are played for every environment, unless its author declares one of the same name."""


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """The model's turns on one item, a judge's answers, and the initial state of the sandbox.

    ``judge`` are the judge's answers, in order; the last one repeats. ``commands`` and ``tools`` are arguments of
    `FakeSandbox.on` and `FakeSandbox.on_tool`. ``sandbox`` is "fake" or "local" if the case requires one.
    """

    turns: tuple[Turn, ...]
    judge: tuple[Any, ...] = ()
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    commands: tuple[tuple[Any, Any], ...] = ()
    tools: tuple[tuple[str, Any], ...] = ()
    sandbox: str = ""

    @property
    def needs_a_fake(self) -> bool:
        """Whether the case requires an in-memory machine."""
        return bool(self.files or self.commands or self.tools)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One transcript of known quality. ``of`` returns it for an item; None means that the author has not filled it in yet.

    It is declared at ``path`` and ``line``.
    """

    name: str
    of: Callable[[Any], Transcript] | None
    path: str = ""
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class ItemCases:
    """The cases of one item, or of several.

    ``kind`` is the kind of ``which``: an "item" itself, the "index" of a training item, or a predicate ("where"), which may hold
    for several of the first training items. ``label`` names it in messages. ``around`` returns the transcript of an automatic
    case on the item, from its turns.
    """

    kind: Literal["item", "index", "where"]
    which: Any
    label: str
    cases: tuple[Case, ...]
    path: str = ""
    line: int = 0
    around: Callable[[Any, tuple[Turn, ...]], Transcript] | None = None


@dataclass(frozen=True, kw_only=True)
class Cases:
    """Everything that an author declares. ``order`` is from the highest reward down; names in one part are not compared.

    ``gap`` is the least difference between a part and all later ones. ``is_strict``: the author declared the order.
    """

    items: tuple[ItemCases, ...]
    order: tuple[tuple[str, ...], ...] = ((GOLD,), (NEAR_MISS,), (NOTHING,))
    gap: float = 0.1
    is_strict: bool = False
    path: str = ""


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One case, played on one item.

    ``reward`` is None if compute_reward returned no finite number; ``error`` is why. ``problem`` is an error of the declaration,
    which makes the reward meaningless. ``unavailable`` is why the case was not played; ``is_unfilled``: its author left it open.
    ``turns``, ``tools`` and ``tokens`` (of the answers) are the agent's, and ``tool_errors`` what its calls failed with. ``reads`` are files that the verifier read, with their
    writers; ``asked`` are its tool calls. ``judge_asked`` counts requests to a judge; ``is_judge_guessed``: their answers are not
    declared. ``is_foreign``: compute_reward read what AgentResult does not have (HE301), so the reward depends on that.
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
    judge_asked: int = 0
    is_judge_guessed: bool = False
    is_foreign: bool = False
    again: float | None = None
    """The reward of the same transcript in a second rollout, if there was one; ``again_error`` is why there is none."""
    again_error: str = ""
    path: str = ""
    line: int = 0
