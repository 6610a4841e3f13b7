"""The data flow of one class: which values reach which expression, and which function enters which.

Frames are computed on demand and kept, so that all rules interpret the source once. Rules ask for the frames that are
reachable from a method and read their records.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

from pytest_hermes_env.source.frames import Frame
from pytest_hermes_env.source.interpreter import Interpreter
from pytest_hermes_env.source.syntax import parameters
from pytest_hermes_env.source.values import ANYTHING, CONTEXT, RESULT, SELF, Kind, Values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_hermes_env.source.classes import ClassSource
    from pytest_hermes_env.source.functions import Function
    from pytest_hermes_env.source.modules import Module

MAX_DEPTH = 25
"""How many calls deep a value is followed; deeper ones are unknown."""

MAX_FRAMES = 2000
MAX_FRAMES_PER_FUNCTION = 30
"""How many frames a class, and one function of it, may have; beyond that a function is followed with unknown arguments."""


def data_flow(source: ClassSource) -> DataFlow:
    """Return the one DataFlow of a class."""
    return source.module.once(DataFlow, source.node, lambda: DataFlow(source))


class DataFlow:
    """The frames of one class. It lives as long as the class is judged."""

    def __init__(self, source: ClassSource) -> None:
        """Follow the methods of ``source``; calls on self are looked up in its MRO."""
        self._source = source
        self._module_names: dict[tuple[Module, str], Values] = {}
        self._frames: dict[tuple[object, ...], Frame] = {}
        self._entered: Counter[Function] = Counter()
        self._all: tuple[Frame, ...] | None = None
        self._reached: dict[tuple[int, ...], tuple[Frame, ...]] = {}
        self._depth = 0

    def entry(self, function: Function) -> Frame:
        """Return the frame of a method as the base class enters it."""
        return self.frame(function, {})

    def method(self, name: str) -> Frame | None:
        """Return the frame of the method ``name`` as the base class enters it, or None if there is none to read."""
        function = self._source.methods.get(name)
        return self.entry(function) if function else None

    def reached(self, *names: str) -> tuple[Frame, ...]:
        """Return all frames reachable from the named methods, nearest first."""
        return self.reached_from(*(frame for name in names if (frame := self.method(name))))

    def reached_from(self, *starts: Frame) -> tuple[Frame, ...]:
        """Return ``starts`` and all frames reachable from them, nearest first."""
        key = tuple(map(id, starts))
        if key not in self._reached:
            self._reached[key] = _reachable(starts, frozenset())
        return self._reached[key]

    def reached_without(self, start: Frame, *stops: str) -> tuple[Frame, ...]:
        """Return the frames reachable from ``start`` without entering a method of one of the names ``stops``."""
        return _reachable((start,), frozenset(stops))

    def every_frame(self) -> tuple[Frame, ...]:
        """Return the frames of all methods of the class and of all that they reach."""
        if self._all is None:
            functions = [item for owner in self._source.readable for item in owner.own_methods.values()]
            self._all = self.reached_from(*(self.entry(item) for item in functions if not item.is_abstract))
        return self._all

    def frame(self, function: Function, given: Mapping[str, Values]) -> Frame:
        """Return the frame of ``function`` entered with ``given``; a frame still under way is returned as it stands."""
        if self._depth > MAX_DEPTH or len(self._frames) > MAX_FRAMES or self._entered[function] > MAX_FRAMES_PER_FUNCTION:
            given = {}
        entry = _entry_values(function, given)
        key = (function, tuple(entry.items()))
        if key not in self._frames:
            frame = self._frames[key] = Frame(function=function, entry=entry)
            self._entered[function] += 1
            self._depth += 1
            try:
                Interpreter(self._source, frame, self.frame, self._module_names).run()
            finally:
                self._depth -= 1
            frame.is_done = True
        return self._frames[key]


def _reachable(starts: tuple[Frame, ...], stops: frozenset[str]) -> tuple[Frame, ...]:
    found: dict[int, Frame] = {}
    pending = deque(starts)
    while pending:
        frame = pending.popleft()
        if id(frame) not in found and (frame in starts or frame.function.name not in stops):
            found[id(frame)] = frame
            pending.extend(target for _, target in frame.edges)
    return tuple(found.values())


def _entry_values(function: Function, given: Mapping[str, Values]) -> dict[str, Values]:
    """Return what the parameters hold: what is passed, else what is known from their names, places and annotations."""
    entry = {name: given.get(name, ANYTHING) for name in parameters(function.node)}
    names = function.positional
    if names and not function.is_static and names[0] not in given:
        entry[names[0]] = SELF
    results = list(function.result_parameters)
    if function.owner is not None and function.name == "compute_reward":
        _item, *rest = function.positional_without_self or ("",)
        results += rest[:1]
        for name in rest[1:2]:
            entry[name] = _known(entry[name]) or CONTEXT
    for name in results:
        entry[name] = _known(entry[name]) or RESULT
    for name in function.context_parameters:
        if entry[name] == ANYTHING:
            entry[name] = CONTEXT
    return entry


def _known(values: Values) -> Values:
    return frozenset(value for value in values if value.kind is not Kind.ANYTHING)
