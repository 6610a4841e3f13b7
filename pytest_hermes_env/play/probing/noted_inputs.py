"""Inputs of a reward that note what it does with them: items that note every change, results that note reads of the agent's work.

A comparison does not find a reward that writes the same note into every item: the item had the note before it was probed.

What the agent said and called, and what its tools returned, is replaced by values that note every use. A use that cannot be noted, by
a function written in C, raises a TypeError, which counts as a use as well. How many turns and calls there were is left as it is: the
probes vary it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_OF_DICTS = ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update")
_OF_LISTS = (
    "__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort",
)  # fmt: skip
_OF_OTHERS = frozenset({"system", "user", "developer"})
"""Roles of messages that are no work."""
_ENVELOPE = frozenset({"role", "name", "tool_call_id", "id", "type"})
"""Keys that say who speaks, and not what."""
_USES = (
    "__bool__", "__contains__", "__eq__", "__float__", "__format__", "__getitem__", "__hash__", "__int__", "__iter__", "__len__",
    "__lt__", "__gt__", "__ne__", "__repr__", "__str__", "__add__", "__radd__",
)  # fmt: skip


def watched(value: Any, note: Callable[[], None]) -> Any:
    """Return a copy of plain dicts and lists, and of those inside, that calls ``note`` when it is changed."""
    if type(value) is dict:
        return _dict_class(note)({key: watched(inner, note) for key, inner in value.items()})
    if type(value) is list:
        return _list_class(note)([watched(inner, note) for inner in value])
    return value


def _dict_class(note: Callable[[], None]) -> type:
    class Watched(dict):  # type: ignore[type-arg]
        def __reduce_ex__(self, _protocol: Any) -> Any:
            return dict, (dict(self),)  # a copy belongs to the reward

    return _noting(Watched, dict, _OF_DICTS, note)


def _list_class(note: Callable[[], None]) -> type:
    class Watched(list):  # type: ignore[type-arg]
        def __reduce_ex__(self, _protocol: Any) -> Any:
            return list, (list(self),)

    return _noting(Watched, list, _OF_LISTS, note)


def _noting(cls: type, base: type, methods: tuple[str, ...], note: Callable[[], None]) -> type:
    def noting(name: str) -> Callable[..., Any]:
        real = getattr(base, name)

        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            note()
            return real(self, *args, **kwargs)

        return method

    for name in methods:
        setattr(cls, name, noting(name))
    cls.__name__ = cls.__qualname__ = base.__name__
    return cls


def noting_reads(result: Any, note: Callable[[], None]) -> Any:
    """Let an AgentResult call ``note`` when something of the agent's work is read, and return it."""
    unread = _unread(note)

    def noting(part: dict[str, Any]) -> dict[str, Any]:
        return {
            key: [noting(call) for call in value] if key == "tool_calls" else value if key in _ENVELOPE else unread
            for key, value in part.items()
        }

    result.messages = [message if message.get("role") in _OF_OTHERS else noting(message) for message in result.messages]
    return result


def noting_attributes(ctx: Any, note: Callable[[], None]) -> Any:
    """Return a tool context that calls ``note`` when anything of it is used, its task id too: tools of its own keep state by it."""
    base: Any = type(ctx)

    def read(self: Any, name: str) -> Any:
        if not name.startswith(("_", "cleanup")):
            note()
        return base.__getattribute__(self, name)

    made: Any = object.__new__(type(base.__name__, (base,), {"__getattribute__": read}))
    object.__getattribute__(made, "__dict__").update(vars(ctx))
    return made


def _unread(note: Callable[[], None]) -> Any:
    """Return a value that notes its uses, isinstance() among them, and fails in them as None does."""

    def use(_self: Any, *_args: Any) -> Any:
        note()
        raise TypeError("this value only notes that it was read")

    def ask_class(_self: Any) -> type:
        note()
        return type(None)

    def ask_attribute(self: Any, name: str) -> Any:
        note()
        return object.__getattribute__(self, name)

    members: dict[str, Any] = dict.fromkeys(_USES, use)
    members |= {"__class__": property(ask_class), "__getattribute__": ask_attribute}
    return type("Unread", (), members)()
