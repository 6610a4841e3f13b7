"""Redacts the events of a recorded stream: secrets in one event, and in texts that span several."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

from pytest_hermes_env.redaction.pieces import Replacements, redacted_pieces
from pytest_hermes_env.types import JsonValue


def redacted_events(events: Sequence[str], replacements: Replacements, clean: Callable[[JsonValue], JsonValue]) -> list[str]:
    """Return the events of a stream, without secrets in one event or in texts that span several."""
    read = [_data(event) for event in events]
    values = [value for _, value in read]
    groups: dict[tuple[object, ...], list[tuple[JsonValue, str | int]]] = {}
    for value in values:
        for path, container, key in _leaves(value, ()):
            groups.setdefault(path, []).append((container, key))
    for places in groups.values():
        texts = [container[key] for container, key in places]  # type: ignore[index]
        for (container, key), old, new in zip(places, texts, redacted_pieces(texts, replacements), strict=True):  # type: ignore[arg-type]
            if old != new:
                container[key] = new  # type: ignore[index]
                if isinstance(container, dict) and key == "token" and "bytes" in container:
                    container["bytes"] = list(new.encode("utf-8", "surrogatepass"))
    written = [
        event if value is None else _event(start, value, clean, event)
        for event, (start, value) in zip(events, read, strict=True)
    ]
    return redacted_pieces(written, replacements)


def _data(event: str) -> tuple[str, JsonValue]:
    """Return the text before the JSON of an event, and its value; None if it has no JSON."""
    start = event.find("{")
    if start < 0:
        return "", None
    try:
        return event[:start], json.loads(event[start:])
    except (ValueError, RecursionError):
        return "", None


def _event(start: str, value: JsonValue, clean: Callable[[JsonValue], JsonValue], event: str) -> str:
    changed = clean(value)
    end = event[len(event.rstrip()) :]
    if changed == json.loads(event[len(start) :]):
        return event
    is_compact = '":"' in event or '":[' in event or '":{' in event
    return start + json.dumps(changed, ensure_ascii=event.isascii(), separators=(",", ":") if is_compact else None) + end


def _leaves(value: JsonValue, path: tuple[object, ...]) -> Iterator[tuple[tuple[object, ...], JsonValue, str | int]]:
    """Yield the strings in a value: a path that is equal in all events of one text, the container, and the key."""
    items: list[tuple[str | int, JsonValue]] = []
    if isinstance(value, dict):
        path = (*path, value.get("index")) if isinstance(value.get("index"), int) else path
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, item in items:
        deeper = (*path, key if isinstance(key, str) else "*")
        if isinstance(item, str):
            yield deeper, value, key
        else:
            yield from _leaves(item, deeper)
