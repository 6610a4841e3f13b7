"""Compares what an environment keeps on itself before and after something ran: metric buffers, counters, histories."""

from __future__ import annotations

import copy
import dataclasses
from collections import deque
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

__all__ = ["Snapshot", "changed", "copied", "picture", "snapshot"]

LONG = 2_000
"""Collections longer than this are compared by length and ends: a dataset is not copied for every scenario."""
DEEP = 6

Snapshot = dict[str, Any]
"""Attribute name -> a frozen picture of its value."""

_IGNORED = frozenset({"server", "tokenizer", "config", "workers", "eval_workers", "jsonl_writer"})


def snapshot(env: Any) -> Snapshot:
    """Return a picture of every attribute that can hold metrics: containers, numbers, dataclasses, objects of these."""
    return {
        name: seen for name, value in vars(env).items() if name not in _IGNORED and (seen := _picture(value, DEEP)) is not None
    }


def changed(before: Snapshot, after: Snapshot) -> tuple[str, ...]:
    """Return the attributes whose picture differs, sorted."""
    return tuple(sorted(name for name in before.keys() & after.keys() if before[name] != after[name]))


def picture(value: Any) -> Any:
    """Return a frozen picture of one value, to compare with another; None where nothing can be told."""
    return _picture(value, DEEP)


def copied(value: Any) -> Any:
    """Return a copy that later changes do not reach; the value itself when it cannot be copied."""
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001 - objects of the environment, which may refuse in any way; they are judged as they are
        return value


def _picture(value: Any, depth: int) -> Any:
    if isinstance(value, bool | int | float | str | bytes | type(None)):
        return ("value", repr(value))
    if depth == 0:
        return None
    if isinstance(value, Mapping):
        rows = [(repr(key), _picture(item, depth - 1)) for key, item in _ends(list(value.items()))]
        return ("mapping", len(value), tuple(rows))
    if isinstance(value, AbstractSet):
        return ("set", len(value), tuple(sorted(map(repr, value)))[:LONG])
    if isinstance(value, Sequence | deque):
        return ("sequence", len(value), tuple(_picture(item, depth - 1) for item in _ends(list(value))))
    if dataclasses.is_dataclass(value) or type(value).__module__ not in {"builtins", "asyncio"}:
        held = getattr(value, "__dict__", None)
        return ("object", _picture(held, depth - 1)) if held is not None and not callable(value) else None
    return None


def _ends(items: list[Any]) -> list[Any]:
    return items if len(items) <= LONG else [*items[:10], *items[-LONG:]]
