"""What happens in the methods of one class: frames, the calls between them, and what values reach which expression.

A *frame* is one function entered with one set of argument values. Frames are computed on demand and kept, so that ten
rules walk the source once. Rules ask for what is reachable from a method and read the events of those frames.
"""

from __future__ import annotations

import ast
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_hermes_env.source.functions import Function
from pytest_hermes_env.source.values import ANYTHING, CONTEXT, NOTHING, RESULT, SELF, Kind, Value, Values

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from pytest_hermes_env.source.classes import ClassSource
    from pytest_hermes_env.source.modules import Module

MAX_DEPTH = 25
"""How many calls deep a value is followed; deeper ones are unknown."""

MAX_FRAMES = 2000
MAX_FRAMES_PER_FUNCTION = 30
"""How many frames a class, and one function of it, may have; beyond that a function is followed with unknown arguments."""


@dataclass(frozen=True, eq=False)
class Call:
    """A call that was seen: what is called and what it is given."""

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
    """A comparison or set operation in which the name of a called tool takes part; ``operands`` are the values of ``parts``."""

    node: ast.Compare | ast.BinOp
    parts: tuple[ast.expr, ...]
    operands: tuple[Values, ...]


@dataclass(frozen=True, eq=False)
class Change:
    """A change of something that hangs on self. ``how`` is one of the words below; ``attribute`` is ``*`` when unknown.

    ``set``: the attribute is assigned (``value`` says what). ``add``: augmented assignment. ``part``: an entry or field
    is assigned. ``slice``: a slice is assigned or deleted. ``delete``: an entry is deleted. Else the mutating method.
    """

    attribute: str
    how: str
    node: ast.AST
    value: Values
    function: Function


@dataclass(eq=False)
class Frame:
    """One function, entered with one set of argument values, and what was seen in it."""

    function: Function
    entry: Mapping[str, Values]
    calls: list[Call] = field(default_factory=list)
    reads: list[Access] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    compared: list[Comparison] = field(default_factory=list)
    edges: list[tuple[ast.AST, Frame]] = field(default_factory=list)
    returned: list[tuple[ast.Return, Values]] = field(default_factory=list)
    returns: Values = NOTHING
    yields: Values = NOTHING
    is_generator: bool = False
    is_done: bool = False


class Flow:
    """The frames of one class. It lives as long as the class is judged."""

    def __init__(self, source: ClassSource) -> None:
        """Follow the methods of ``source``; calls on self are looked up in its MRO."""
        from pytest_hermes_env.source.interpret import Interpreter  # noqa: PLC0415  # it reads into our frames

        self.source = source
        self._interpreter = Interpreter
        self.globals: dict[tuple[Module, str], Values] = {}
        self._frames: dict[tuple[object, ...], Frame] = {}
        self._entered: Counter[Function] = Counter()
        self._all: tuple[Frame, ...] | None = None
        self._reached: dict[int, tuple[Frame, ...]] = {}
        self.depth = 0

    def entry(self, function: Function) -> Frame:
        """Return the frame of a method as the base class enters it."""
        return self.frame(function, {})

    def method(self, name: str) -> Frame | None:
        """Return the frame of the method ``name`` as the base class enters it, or None if there is none to read."""
        function = self.source.methods.get(name)
        return self.entry(function) if function else None

    def reached(self, *names: str) -> tuple[Frame, ...]:
        """Return all frames reachable from the named methods, nearest first."""
        return self.reached_from(*(frame for name in names if (frame := self.method(name))))

    def reached_from(self, *starts: Frame) -> tuple[Frame, ...]:
        """Return ``starts`` and all frames reachable from them, nearest first."""
        if len(starts) == 1 and id(starts[0]) in self._reached:
            return self._reached[id(starts[0])]
        found: dict[int, Frame] = {}
        pending = deque(starts)
        while pending:
            frame = pending.popleft()
            if id(frame) not in found:
                found[id(frame)] = frame
                pending.extend(target for _, target in frame.edges)
        result = tuple(found.values())
        if len(starts) == 1:
            self._reached[id(starts[0])] = result
        return result

    def reached_without(self, start: Frame, *stops: str) -> tuple[Frame, ...]:
        """Return the frames reachable from ``start`` without entering a method of one of the names ``stops``."""
        found: dict[int, Frame] = {}
        pending = deque([start])
        while pending:
            frame = pending.popleft()
            if id(frame) not in found and (frame is start or frame.function.name not in stops):
                found[id(frame)] = frame
                pending.extend(target for _, target in frame.edges)
        return tuple(found.values())

    def every_frame(self) -> tuple[Frame, ...]:
        """Return the frames of all methods of the class and of all that they reach."""
        if self._all is None:
            functions = [item for owner in self.source.readable for item in owner.own_methods.values()]
            self._all = self.reached_from(*(self.entry(item) for item in functions if not item.is_abstract))
        return self._all

    def frame(self, function: Function, given: Mapping[str, Values]) -> Frame:
        """Return the frame of ``function`` entered with ``given``; a frame still under way is returned as it stands."""
        if self.depth > MAX_DEPTH or len(self._frames) > MAX_FRAMES or self._entered[function] > MAX_FRAMES_PER_FUNCTION:
            given = {}
        entry = self._entry(function, given)
        key = (function, tuple(entry.items()))
        if key not in self._frames:
            frame = self._frames[key] = Frame(function=function, entry=entry)
            self._entered[function] += 1
            self.depth += 1
            try:
                self._interpreter(self, frame).run()
            finally:
                self.depth -= 1
            frame.is_done = True
        return self._frames[key]

    def _entry(self, function: Function, given: Mapping[str, Values]) -> dict[str, Values]:
        entry: dict[str, Values] = {}
        names = function.positional
        for index, name in enumerate(names):
            entry[name] = given.get(name, ANYTHING)
            if index == 0 and not function.is_static and name not in given:
                entry[name] = SELF
        if function.owner is not None and function.name == "compute_reward":
            offset = 0 if function.is_static else 1
            for name in names[offset + 1 : offset + 2]:
                entry[name] = frozenset(value for value in entry[name] if value.kind is not Kind.ANYTHING) or RESULT
            for name in names[offset + 2 : offset + 3]:
                entry[name] = frozenset(value for value in entry[name] if value.kind is not Kind.ANYTHING) or CONTEXT
        for name in function.result_parameters:
            if name in entry:
                known = {value for value in entry[name] if value.kind is not Kind.ANYTHING}
                entry[name] = frozenset(known) or RESULT
        for item in function.node.args.kwonlyargs:
            entry[item.arg] = given.get(item.arg, ANYTHING)
        for name in function.context_parameters:
            if entry.get(name) == ANYTHING:
                entry[name] = CONTEXT
        return entry


def instances(values: Values, name: str) -> Iterator[Value]:
    """Yield the instances of the class ``name`` among ``values``."""
    for value in values:
        if value.kind is Kind.INSTANCE and value.name == name:
            yield value


def constructs(call: Call, name: str) -> bool:
    """Whether ``call`` makes an instance of the layer's class ``name``, or of a readable subclass of it."""
    for value in call.callee:
        if value.kind is Kind.EXTERNAL and value.name.rpartition(".")[2] == name:
            return True
        if value.kind is Kind.CLASS and (value.name == name or name in _names_of_bases(value.target)):
            return True
    return False


def calls_layer(call: Call, names: Container[str]) -> bool:
    """Whether ``call`` calls one of these methods as the layer defines them."""
    return any(value.kind is Kind.BASE_METHOD and value.name in names for value in call.callee)


def _names_of_bases(target: object) -> set[str]:
    return {getattr(item, "last", "") for item in getattr(target, "mro", ())}


def calls_in(frames: Iterable[Frame]) -> Iterator[Call]:
    """Yield all calls of ``frames``."""
    for frame in frames:
        yield from frame.calls
