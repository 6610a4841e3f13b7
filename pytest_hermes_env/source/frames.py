"""What happens in a function: plain records of its calls, reads, changes and return values.

A *frame* is one function entered with one set of argument values. The interpreter fills frames; rules read them.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_hermes_env.source.classes import ClassSource
from pytest_hermes_env.source.values import ANYTHING, NOTHING, Kind, Values, attributes_of_self

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from pytest_hermes_env.source.functions import Function


@dataclass(frozen=True, eq=False)
class Call:
    """A call: what is called and what is passed to it."""

    node: ast.Call
    callee: Values
    receiver: Values
    """Values of ``x`` in ``x.name(...)``; empty for a plain name."""
    arguments: tuple[Values, ...]
    keywords: Mapping[str, Values]
    function: Function
    name: str
    """The name that is called: ``append`` in ``x.append()``."""

    @property
    def every_argument(self) -> Iterator[Values]:
        """Values of all arguments."""
        yield from self.arguments
        yield from self.keywords.values()


@dataclass(frozen=True, eq=False)
class Access:
    """A read of ``x.name`` or ``x[...]``."""

    node: ast.Attribute | ast.Subscript
    base: Values


@dataclass(frozen=True, eq=False)
class Comparison:
    """A comparison, set operation or count by the name of a called tool; ``operands`` are the values of ``parts``."""

    node: ast.Compare | ast.BinOp | ast.Subscript
    parts: tuple[ast.expr, ...]
    operands: tuple[Values, ...]


@dataclass(frozen=True, eq=False)
class Change:
    """A change of an attribute of self, or of something inside it. ``attribute`` is ``*`` when unknown.

    ``how`` is the name of the mutating method, or one of these words. ``set``: the attribute is assigned (``value`` is what).
    ``add``: augmented assignment. ``part``: an entry or field is assigned. ``slice``: a slice is assigned or deleted.
    ``delete``: an entry is deleted.
    """

    attribute: str
    how: str
    node: ast.AST
    value: Values
    function: Function


@dataclass(eq=False)
class Frame:
    """One function, entered with one set of argument values, and what happens in it.

    A node that is interpreted twice (a nested function with other arguments) keeps one record with the values of both.
    """

    function: Function
    entry: Mapping[str, Values]
    calls: list[Call] = field(default_factory=list)
    reads: list[Access] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    edges: list[tuple[ast.AST, Frame]] = field(default_factory=list)
    """The nodes that enter other frames, with those frames."""
    returned: list[tuple[ast.Return, Values]] = field(default_factory=list)
    returns: Values = NOTHING
    yields: Values = NOTHING
    is_generator: bool = False
    is_done: bool = False
    _index: dict[tuple[type, ast.AST], int] = field(default_factory=dict, repr=False)

    def add_read(self, node: ast.Attribute | ast.Subscript, base: Values) -> None:
        """Record a read of ``base``, unless nothing is known about it."""
        if base in (ANYTHING, NOTHING):
            return
        index = self._index.setdefault((Access, node), len(self.reads))
        if index == len(self.reads):
            self.reads.append(Access(node, base))
        else:
            self.reads[index] = Access(node, self.reads[index].base | base)

    def add_call(self, call: Call) -> None:
        """Record a call."""
        index = self._index.setdefault((Call, call.node), len(self.calls))
        if index == len(self.calls):
            self.calls.append(call)
            return
        before = self.calls[index]
        self.calls[index] = replace(
            call,
            callee=before.callee | call.callee,
            receiver=before.receiver | call.receiver,
            arguments=tuple(old | new for old, new in zip(before.arguments, call.arguments, strict=True)),
            keywords={name: before.keywords.get(name, NOTHING) | values for name, values in call.keywords.items()},
        )

    def add_change(self, attribute: str, how: str, node: ast.AST, value: Values = ANYTHING) -> None:
        """Record that something on self changes."""
        self.changes.append(Change(attribute, how, node, value, self.function))

    def add_changes_inside(self, base: Values, how: str, node: ast.AST, value: Values = ANYTHING) -> None:
        """Record that something inside the attributes of self in ``base`` changes; inside ``__dict__``, any attribute may."""
        for attribute in attributes_of_self(base):
            self.add_change("*" if attribute == "__dict__" else attribute, how, node, value)


def calls_in(frames: Iterable[Frame]) -> Iterator[Call]:
    """Yield all calls of ``frames``."""
    for frame in frames:
        yield from frame.calls


def constructs(call: Call, name: str) -> bool:
    """Return whether ``call`` makes an instance of the layer's class ``name``, or of a readable subclass of it."""
    for value in call.callee:
        if value.kind is Kind.EXTERNAL and value.name.rpartition(".")[2] == name:
            return True
        if value.kind is Kind.CLASS and isinstance(value.target, ClassSource) and value.target.is_subclass_of(name):
            return True
    return False


def calls_layer(call: Call, names: Container[str]) -> bool:
    """Return whether ``call`` calls one of these methods as the layer defines them."""
    return any(value.kind is Kind.BASE_METHOD and value.name in names for value in call.callee)
