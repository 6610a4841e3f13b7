"""Items that report every change, also a change to an equal value.

A comparison does not find a reward that writes the same note into every item: the item had the note before it was probed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_OF_DICTS = ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update")
_OF_LISTS = (
    "__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort",
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
