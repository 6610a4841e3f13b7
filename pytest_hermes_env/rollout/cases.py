"""What an author says about an environment: transcripts of known worth, and the order of their rewards.

Place in the flow: `contract.cases` reads declarations into these values, the scenario `cases` plays them, rules judge the
`Rung` that each play leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pytest_hermes_env.inference.steps import Turn

__all__ = [
    "AUTOMATIC",
    "ECHO",
    "GOLD",
    "HACK",
    "NEAR_MISS",
    "NOTHING",
    "TOOLS",
    "WELL_KNOWN",
    "WRONG_CONTENT",
    "Case",
    "Cases",
    "ItemCases",
    "Rung",
    "Transcript",
]

GOLD, NEAR_MISS, NOTHING, HACK = "gold", "near_miss", "nothing", "hack"
WRONG_CONTENT, ECHO, TOOLS = "wrong_content", "echo", "tools"

WELL_KNOWN = (GOLD, NEAR_MISS, NOTHING, HACK)
"""The cases that an author is asked for."""

AUTOMATIC: dict[str, str] = {
    TOOLS: "every offered tool is used once, harmlessly",
    WRONG_CONTENT: "right form, wrong content",
    ECHO: "the prompt is said back",
    NOTHING: "an answer without any work",
}
"""The cases that are played for every environment, unless its author gives one of the same name."""


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """What the model says on one item, what a judge answers, and what stands in the sandbox before.

    ``judge`` are the answers to a judge's questions, in order; the last one is given to all further questions. ``commands`` and
    ``tools`` are what `FakeSandbox.on` and `FakeSandbox.on_tool` take. ``sandbox`` is "fake" or "local" where the case needs it.
    """

    turns: tuple[Turn, ...]
    judge: tuple[Any, ...] = ()
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    commands: tuple[tuple[Any, Any], ...] = ()
    tools: tuple[tuple[str, Any], ...] = ()
    sandbox: str = ""

    @property
    def needs_a_fake(self) -> bool:
        """Whether only an in-memory machine can be made so."""
        return bool(self.files or self.commands or self.tools)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One transcript of known worth. ``of`` makes it for an item; None means that the author has not filled it in yet.

    ``path`` and ``line`` say where it is declared.
    """

    name: str
    of: Callable[[Any], Transcript] | None
    path: str = ""
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class ItemCases:
    """The cases of one item, or of several.

    ``kind`` says what ``which`` is: an "item" itself, the "index" of a training item, or a predicate ("where"), which may be true
    for several of the first training items. ``label`` names it in messages. ``around`` makes what an automatic case on the item
    stands in, from its turns.
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

    ``gap`` is by how much each part is above all later ones. ``is_strict``: the author gave the order himself.
    """

    items: tuple[ItemCases, ...]
    order: tuple[tuple[str, ...], ...] = ((GOLD,), (NEAR_MISS,), (NOTHING,))
    gap: float = 0.1
    is_strict: bool = False
    path: str = ""


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One case, played on one item.

    ``reward`` is None where compute_reward gave no finite number; ``error`` says why. ``problem`` is what is wrong with the
    declaration; then the reward says nothing. ``unavailable`` is why the case was not played, ``is_unfilled`` that its author left it open. ``turns``, ``tools`` and ``tokens``
    (of the answers) are the agent's. ``reads`` are files that the verifier read, with who wrote them; ``asked`` are the tools that
    it called. ``judge_asked`` counts its questions to a judge; ``is_judge_guessed``: nobody declared the answers to them. ``is_foreign``: compute_reward
    read what AgentResult does not have (HE301), so that its reward rests on that.
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
    reads: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    not_found: tuple[str, ...] = ()
    judge_asked: int = 0
    is_judge_guessed: bool = False
    is_foreign: bool = False
    path: str = ""
    line: int = 0
