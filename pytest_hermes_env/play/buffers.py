"""Compares an environment's attributes before and after a scenario: metric buffers, counters, histories."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import enum
import hashlib
import marshal
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from pytest_hermes_env.play.memos import memos_of

LONG = 2_000
"""Longer collections are compared by length and ends, so that a dataset is not copied for every scenario."""
BRIEF = 500
"""Characters up to which the elements of a series are kept."""
DEEP = 6

_ROLLOUT = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
"""The id of a rollout, which is a UUID."""
_ROLLOUT_IN_BYTES = re.compile(_ROLLOUT.pattern.encode())
_ATOMS = frozenset({bool, int, float, str, bytes, type(None)})

Snapshot = dict[str, Any]
"""Attribute name -> a frozen picture of its value."""

_IGNORED = frozenset({"server", "tokenizer", "config", "workers", "eval_workers", "jsonl_writer", "_hermes_run_api"})


def snapshot(env: Any) -> Snapshot:
    """Return a picture of every attribute that can hold metrics: containers, numbers, dataclasses, objects of these."""
    kind: Any = type(env)
    ignored = _IGNORED | memos_of(kind)
    return {
        name: seen
        for name, value in vars(env).items()
        if name not in ignored and (seen := _picture(value, DEEP, is_brief=True, of_rollouts=False)) is not None
    }


def changed(before: Snapshot, after: Snapshot) -> tuple[str, ...]:
    """Return the attributes whose picture differs, sorted."""
    return tuple(sorted(name for name in before.keys() & after.keys() if before[name] != after[name]))


def changed_parts(before: Snapshot, after: Snapshot) -> set[str]:
    """Return what differs in them, as ``buffers.rewards`` and ``metrics['train']``: training and evaluation may each have a part of one object."""
    return {part for name in changed(before, after) for part in _parts(name, before[name], after[name])}


def _parts(name: str, one: Any, other: Any) -> Iterator[str]:
    """Yield the parts in which two pictures differ; a mapping as a whole where one has a key that the other has not."""
    mine, theirs = _rows(one), _rows(other)
    if not mine or mine.keys() != theirs.keys():
        yield name
        return
    for key, part in mine.items():
        if part != theirs[key]:
            yield from _parts(name + key, part, theirs[key])


def _rows(seen: Any) -> dict[str, Any]:
    """Return the parts of an object or a mapping by how they are written behind its name; none of anything else, or of a very long one."""
    is_object = seen is not None and seen[0] == "object"
    held = seen[1] if is_object else seen
    if held is None or held[0] != "mapping" or held[1] != len(held[2]):
        return {}
    return {f".{key[1:-1]}" if is_object else f"[{key}]": part for key, part in held[2]}


def growth(before: Snapshot, after: Snapshot) -> dict[tuple[str, ...], float]:
    """Return the differences of lengths and numbers: (attribute, key, ...) -> difference. New entries count from 0."""
    sizes = {path: size for name, seen in before.items() for path, size in _sizes((name,), seen)}
    return {
        path: size - sizes.get(path, 0.0)
        for name, seen in after.items()
        if name in before
        for path, size in _sizes((name,), seen)
        if size != sizes.get(path, 0.0)
    }


def picture(value: Any, *, of_rollouts: bool = True) -> Any:
    """Return a frozen picture of one value for comparisons; None for values that cannot be compared.

    Without those ``of_rollouts``, what a mapping holds by the ids of rollouts is left out: each rollout's own is shared with no other. Numbers stay.
    """
    return _picture(value, DEEP, of_rollouts=of_rollouts)


def fields_of(item: Any) -> dict[str, Any]:
    """Return what an item has by name: of a mapping, of an object with or without slots; nothing of a value, a class or an enum's member."""
    if isinstance(item, Mapping):
        return {str(name): part for name, part in item.items()}
    if isinstance(item, type | enum.Enum | str | int | float) or callable(item):
        return {}
    slots = [name for kind in type(item).__mro__ for name in getattr(kind, "__slots__", ()) if isinstance(name, str)]
    return {name: getattr(item, name) for name in (*slots, *getattr(item, "__dict__", {})) if hasattr(item, name)}


def copied(value: Any) -> Any:
    """Return a deep copy; the value itself when it cannot be copied."""
    try:
        return _copied(value, {})
    except Exception:  # noqa: BLE001 - the environment's objects may raise anything
        return value


def with_field(item: Any, name: str, value: Any) -> Any:
    """Return a copy of an item with another value in one field; the item itself where it cannot be copied, or changed."""
    if isinstance(item, Mapping):
        key = next((key for key in item if str(key) == name), name)
        return {**copied(item), key: value} if type(item) is not dict else copied(item) | {key: value}
    made = copied(item)
    if made is not item:
        with contextlib.suppress(AttributeError, TypeError):
            object.__setattr__(made, name, value)
            return made
    return item


def _copied(value: Any, memo: dict[int, Any]) -> Any:
    """Return what ``copy.deepcopy`` returns. Messages hold the ids of their tokens: it would ask about each of these."""
    kind = type(value)
    if kind in _ATOMS or id(value) in memo:
        return memo.get(id(value), value)
    if kind is list:
        memo[id(value)] = twin = value.copy()
        if not _ATOMS.issuperset(map(type, value)):
            twin[:] = [_copied(item, memo) for item in value]
        return twin
    if kind is dict and all(type(key) is str for key in value):
        fields: dict[str, Any] = {}
        memo[id(value)] = fields
        fields.update((name, _copied(item, memo)) for name, item in value.items())
        return fields
    return copy.deepcopy(value, memo)


def _picture(value: Any, depth: int, *, is_brief: bool = False, of_rollouts: bool = True) -> Any:
    if isinstance(value, bool | int | float | str | bytes | type(None)):
        return ("value", repr(value))
    if depth == 0:
        return None
    if isinstance(value, Mapping):
        entries = [(key, item) for key, item in value.items() if of_rollouts or not _is_state_of_a_rollout(key, item)]
        rows = [
            (repr(key), _picture(item, depth - 1, is_brief=is_brief, of_rollouts=of_rollouts)) for key, item in _ends(entries)
        ]
        return ("mapping", len(entries), tuple(rows))
    if isinstance(value, AbstractSet):
        return ("set", len(value), tuple(sorted(map(repr, value)))[:LONG])
    if isinstance(value, Sequence | deque):
        if is_brief and (plain := _plain_digest(value)):
            return ("sequence", len(value), plain)
        elements = tuple(_picture(item, depth - 1, is_brief=is_brief, of_rollouts=of_rollouts) for item in _ends(list(value)))
        return ("sequence", len(value), _in_brief(elements) if is_brief else elements)
    if dataclasses.is_dataclass(value) or type(value).__module__ not in {"builtins", "asyncio"}:
        held = getattr(value, "__dict__", None)
        if held is None and not callable(value):
            return _in_words(value)
        return (
            ("object", _picture(held, depth - 1, is_brief=is_brief, of_rollouts=of_rollouts))
            if held is not None and not callable(value)
            else None
        )
    return None


def _plain_digest(value: Any) -> str:
    """Return what stands for a long series of plain values, which datasets are, at the speed of C; empty for any other."""
    try:
        data = marshal.dumps(value, 2) if type(value) in {list, tuple} and 0 < len(value) <= LONG else b""  # without references
    except ValueError:  # it holds something else
        return ""
    return "" if len(data) <= BRIEF or _ROLLOUT_IN_BYTES.search(data) else hashlib.sha256(data).hexdigest()


def _in_words(value: Any) -> Any:
    """Return the picture of a decimal number, a date, a path; None for what says nothing of itself."""
    with contextlib.suppress(Exception):  # the environment's objects may raise anything
        text = repr(value)
        return ("value", text) if " at 0x" not in text else None
    return None


def _is_state_of_a_rollout(key: object, value: Any) -> bool:
    """Whether a mapping holds something by a rollout's id that is no metric: numbers are."""
    numbers = value if isinstance(value, list | tuple) and value else [value]
    return _ROLLOUT.search(str(key)) is not None and not all(isinstance(one, int | float) for one in numbers)


def _in_brief(elements: tuple[Any, ...]) -> Any:
    """Return the elements of a series, or where these are much to keep, what differs where one of them does: a dataset is in every picture."""
    text = repr(elements)
    return elements if len(text) <= BRIEF else hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _sizes(path: tuple[str, ...], seen: Any) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield the numbers and lengths in the picture of a value; the elements of a series do not count."""
    if seen is None:
        return
    kind, *held = seen
    if kind == "value":
        with contextlib.suppress(ValueError):  # not the repr of a number
            yield path, float(held[0])
    elif kind == "object":
        yield from _sizes(path, held[0])
    else:
        yield (*path, "len()"), float(held[0])
        if kind == "mapping":
            for key, item in held[1]:
                yield from _sizes((*path, key), item)


def _ends(items: list[Any]) -> list[Any]:
    return items if len(items) <= LONG else [*items[:10], *items[-LONG:]]
