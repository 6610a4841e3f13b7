"""What training keeps on self, and where an evaluation changes it or puts it back, as far as the source tells."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pytest_hermes_env.source import Change, ClassSource, Frame, Function, Kind, data_flow, must_be

_TRAINING = (
    "compute_reward",
    "collect_trajectory",
    "collect_trajectories",
    "get_next_item",
    "score",
    "postprocess_histories",
)
_NO_BUFFER = re.compile(r"cache|memo$|_lock$|^(server|tokenizer|config|wandb|__dict__)$|^\*$")
_TAKES_OUT = frozenset({"delete", "pop", "remove", "discard"})
_REFILLS = frozenset({"extend", "update", "add", "append", "part", "extendleft"})


@dataclass(frozen=True, kw_only=True)
class Site:
    """One place in code that only evaluate reaches, from which training buffers change."""

    frame: Frame
    node: ast.AST
    attributes: frozenset[str]
    calls: str


@dataclass(frozen=True, kw_only=True)
class EvaluationReach:
    """What training reaches, what evaluate reaches, and what each changes on self."""

    source: ClassSource
    start: Frame

    @cached_property
    def training(self) -> tuple[Frame, ...]:
        """Frames that training reaches."""
        return data_flow(self.source).reached(*_TRAINING)

    @cached_property
    def shared(self) -> frozenset[Function]:
        """Functions that training reaches."""
        return frozenset(frame.function for frame in self.training)

    @cached_property
    def kept(self) -> frozenset[str]:
        """Attributes that training changes in place."""
        changes = (
            change
            for frame in self.training
            for change in frame.changes
            if adds_to(change) and not _is_taken_out(frame, change)
        )
        return frozenset(change.attribute for change in changes if not _NO_BUFFER.search(change.attribute))

    @cached_property
    def own(self) -> tuple[Frame, ...]:
        """Frames that evaluate reaches and training does not."""
        return tuple(frame for frame in data_flow(self.source).reached_from(self.start) if frame.function not in self.shared)

    @cached_property
    def restores(self) -> tuple[tuple[Frame, Change], ...]:
        """Changes in evaluate's own code that may put a buffer back."""
        return tuple((frame, change) for frame in self.own for change in frame.changes if not _grows(frame, change))

    @cached_property
    def sites(self) -> tuple[Site, ...]:
        """The places from which evaluate alone changes a training buffer."""
        return tuple(site for frame in self.own for site in self._sites_in(frame))

    def _sites_in(self, frame: Frame) -> Iterator[Site]:
        for node, target in frame.edges:
            if target.function in self.shared:
                reached = data_flow(self.source).reached_from(target)
                changed = {change.attribute for inner in reached for change in inner.changes if adds_to(change)}
                if touched := frozenset(changed & self.kept):
                    yield Site(frame=frame, node=node, attributes=touched, calls=target.function.name)
        for change in frame.changes:
            lost = change.how == "clear" or (change.how == "set" and must_be(change.value, Kind.EMPTY))
            if change.attribute in self.kept and (_grows(frame, change) or (lost and not self.puts_back(change.attribute))):
                yield Site(frame=frame, node=change.node, attributes=frozenset({change.attribute}), calls="")

    def puts_back(self, attribute: str) -> list[tuple[Frame, Change]]:
        """Return the changes that put ``attribute`` back; emptying it counts only together with filling it again."""
        mine = [(frame, change) for frame, change in self.restores if change.attribute == attribute]
        empties = [pair for pair in mine if pair[1].how == "clear" or must_be(pair[1].value, Kind.EMPTY)]
        aliases = [pair for pair in mine if _is_alias(pair[1])] if not empties and self._in_place(attribute) else []
        if not any(pair not in empties and pair not in aliases for pair in mine):
            return []
        return [pair for pair in mine if pair not in aliases]

    def _in_place(self, attribute: str) -> bool:
        """Whether training changes the object that the attribute holds, so that a second name for it saves nothing."""
        changes = (change for frame in self.training for change in frame.changes if change.attribute == attribute)
        return any(change.how not in {"set", "add"} for change in changes)


def adds_to(change: Change) -> bool:
    """Whether a change in training adds to what is kept, and does not merely replace a value."""
    if change.how != "set":
        return True
    if not isinstance(change.node, ast.Attribute):
        return False
    statement = change.function.statement_of(change.node)
    value = getattr(statement, "value", None)
    return value is not None and any(
        isinstance(node, ast.Attribute) and node.attr == change.attribute for node in ast.walk(value)
    )


def _is_taken_out(frame: Frame, change: Change) -> bool:
    """Whether a finally of the same function takes out what a change puts in: state of one rollout, and no buffer."""
    return any(
        other.attribute == change.attribute and other.how in _TAKES_OUT and frame.function.finally_of(other.node) is not None
        for other in frame.changes
    )


def _grows(frame: Frame, change: Change) -> bool:
    """Whether a change in evaluate's own code adds to the buffer and does not put it back."""
    if change.how in {"set", "slice", "clear", "delete", "pop", "popleft", "popitem", "remove", "discard"}:
        return False
    return frame.function.finally_of(change.node) is None and not _refills(frame, change)


def _refills(frame: Frame, change: Change) -> bool:
    """Whether the statement follows a clear() of the same attribute in its own block."""
    return change.how in _REFILLS and any(
        other.attribute == change.attribute
        and other.how == "clear"
        and frame.function.parents.get(frame.function.statement_of(other.node))
        is frame.function.parents.get(frame.function.statement_of(change.node))
        for other in frame.changes
    )


def _is_alias(change: Change) -> bool:
    """Whether the attribute is given what it held, not a copy of it."""
    return any(value.kind is Kind.ATTRIBUTE and value.name == change.attribute for value in change.value)
