"""Declared cases of an environment: transcripts of known quality, and the order of their rewards.

Place in the flow: `declaration` and `yaml_file` read what the author wrote into these values, and the scenario ``cases`` plays them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pytest_hermes_env.play.scenario import CaseRules

if TYPE_CHECKING:
    from pytest_hermes_env.inference.steps import Turn

GOLD, NEAR_MISS, NOTHING, HACK = "gold", "near_miss", "nothing", "hack"
WRONG_CONTENT, WRONG_PLACE, OTHER_GOLD = "wrong_content", "wrong_place", "other_gold"
ENDLESS, AT_LENGTH = "uses up its turns", "gold at length"
ECHO, TOOLS, NEIGHBOUR, JUDGED, ATTACK, WRONG_PROGRAM = "echo", "tools", "neighbour", "judged", "attack", "wrong_program"
SILENCES = ("said nothing", "refused to judge", "gave an object without a score", "gave an error as an object", "failed")
"""What a judge does that gives no verdict."""
MADE_FROM_GOLD = (NEIGHBOUR, JUDGED)
"""Names of what is played around gold, which the ladder leaves out."""

WELL_KNOWN = (GOLD, NEAR_MISS, NOTHING, HACK)
"""The cases that an author should declare."""

AUTOMATIC: dict[str, str] = {
    TOOLS: "every offered tool is used once, harmlessly",
    WRONG_CONTENT: "gold's form, wrong content",
    WRONG_PLACE: "gold, with other names for its files",
    OTHER_GOLD: "gold of another item",
    ECHO: "the prompt is repeated",
    NOTHING: "an answer without any work",
}
"""The cases that are played for every environment, unless its author declares one of the same name. Two are made from gold."""


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
    def is_scripted(self) -> bool:
        """Whether tools answer what the case says, whatever they are asked."""
        return bool(self.commands or self.tools)

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
    for several training items. ``label`` names it in messages. ``around`` returns the transcript of an automatic
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

    ``gap`` is the least difference between a part and all later ones. ``is_strict``: the author declared the order. ``equivalent`` and
    ``worse`` are names of neighbours of gold that are as good as it, and that are not. ``settings`` replace some of the configuration's.
    """

    items: tuple[ItemCases, ...]
    order: tuple[tuple[str, ...], ...] = ((GOLD,), (NEAR_MISS,), (NOTHING,))
    gap: float = 0.1
    is_strict: bool = False
    equivalent: tuple[str, ...] = ()
    worse: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    path: str = ""

    @property
    def rules(self) -> CaseRules:
        """What they say about rewards."""
        return CaseRules(order=self.order, gap=self.gap, is_strict=self.is_strict, equivalent=self.equivalent, worse=self.worse)
