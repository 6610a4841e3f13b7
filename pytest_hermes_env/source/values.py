"""Abstract values: what an expression may hold, as far as the source tells.

The values of an expression are a set. An empty set is None or nothing that matters: a union with it changes nothing.
`ANYTHING` in a set means that something else may be there, so nothing is certain any more.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Mapping


class Kind(enum.IntEnum):
    """What a value is. An int, because a plain Enum hashes slowly and values live in sets."""

    ANYTHING = enum.auto()
    SELF = enum.auto()
    SUPER = enum.auto()
    ATTRIBUTE = enum.auto()
    """An attribute of self that is not a method; ``name`` is its name."""
    PART = enum.auto()
    """Something inside an attribute of self: an entry, a field; ``name`` is the attribute."""
    METHOD = enum.auto()
    """A function with its first argument bound; ``target`` is the Function."""
    FUNCTION = enum.auto()
    LOCAL = enum.auto()
    """A nested def or a lambda: ``node``; ``items[0]`` is what it returns."""
    CLASS = enum.auto()
    EXTERNAL = enum.auto()
    """A name from outside the tree; ``name`` is dotted."""
    BASE_METHOD = enum.auto()
    """A method that only the unparsed base of the class has; ``name`` is its name."""
    INSTANCE = enum.auto()
    """An instance of a class; ``name`` is the known name among its classes, ``node`` the call that made it."""
    RESULT = enum.auto()
    """An AgentResult."""
    CONTEXT = enum.auto()
    """The tool context that compute_reward receives; with ``name``, that method of it."""
    MESSAGE = enum.auto()
    """Something inside the messages of an AgentResult; ``name`` is which part, one of those in `PARTS`."""
    RUN = enum.auto()
    """The bound ``run`` of a HermesAgentLoop; ``node`` is the loop's construction."""
    TRUE = enum.auto()
    FALSE = enum.auto()
    TUPLE = enum.auto()
    """A tuple of known length; ``items`` are the values of its members."""
    MANY = enum.auto()
    """A list or another sequence; ``items[0]`` is what its members may be."""
    EMPTY = enum.auto()
    """An empty literal list, tuple, dict or set."""


class Value(NamedTuple):
    """One value that an expression may hold. A tuple, because tens of thousands of them are made, hashed and compared."""

    kind: Kind
    name: str = ""
    node: ast.AST | None = None
    items: tuple[frozenset[Value], ...] = ()
    target: object = None


Values = frozenset[Value]

NOTHING: Values = frozenset()
ANYTHING: Values = frozenset({Value(Kind.ANYTHING)})
SELF: Values = frozenset({Value(Kind.SELF)})
RESULT: Values = frozenset({Value(Kind.RESULT)})
CONTEXT: Values = frozenset({Value(Kind.CONTEXT)})
EMPTY: Values = frozenset({Value(Kind.EMPTY)})
TRUE: Values = frozenset({Value(Kind.TRUE)})
FALSE: Values = frozenset({Value(Kind.FALSE)})


def single(kind: Kind, name: str = "", *, node: ast.AST | None = None, target: object = None) -> Values:
    """Return the set of a single value."""
    return frozenset({Value(kind, name, node, (), target)})


def sequence_of(members: Values) -> Values:
    """Return a sequence whose members may be ``elements``."""
    return frozenset({Value(Kind.MANY, items=(members,))})


def must_be(values: Values, kind: Kind) -> bool:
    """Return whether ``values`` is certainly of ``kind``."""
    return bool(values) and all(value.kind is kind for value in values)


def may_be(values: Values, kind: Kind) -> bool:
    """Return whether ``values`` may be of ``kind``."""
    return any(value.kind is kind for value in values)


def elements(values: Values) -> Values:
    """Return what iterating over ``values``, or indexing it, may return."""
    found: Values = NOTHING
    for value in values:
        if value.kind in {Kind.MANY, Kind.TUPLE}:
            found = found.union(*value.items)
        elif value.kind in {Kind.ATTRIBUTE, Kind.PART}:
            found |= {Value(Kind.PART, value.name)}
        elif value.kind is Kind.MESSAGE:
            found |= message_part(value.name)
        elif value.kind is not Kind.EMPTY:
            found |= ANYTHING
    return found


def attributes_of_self(values: Values) -> list[str]:
    """Return the attributes of self that ``values`` are, or are inside of."""
    return sorted({value.name for value in values if value.kind in {Kind.ATTRIBUTE, Kind.PART}})


def may_name_a_tool(values: Values) -> bool:
    """Return whether ``values`` may be the name of a tool that was called, or a sequence of such names."""
    return any(
        (value.kind is Kind.MESSAGE and value.name == "name") or (value.items and any(map(may_name_a_tool, value.items)))
        for value in values
    )


PARTS: Mapping[tuple[str, str], str] = {
    ("messages", ""): "message",
    ("message", "tool_calls"): "calls",
    ("calls", ""): "call",
    ("call", "function"): "function",
    ("function", "name"): "name",
    ("function", "arguments"): "text",
    ("message", "content"): "text",
}
"""Maps (part, key in it or "" for a member) to the part that is found there."""


DICTS = frozenset({"message", "call", "function"})
LISTS = frozenset({"messages", "calls"})


def message_part(part: str, key: str = "") -> Values:
    """Return what a part of the messages holds under ``key``, or what its members are."""
    found = PARTS.get((part, key))
    return single(Kind.MESSAGE, found) if found else ANYTHING


def union(every: Iterable[Values]) -> Values:
    """Return the union."""
    return NOTHING.union(*every)
