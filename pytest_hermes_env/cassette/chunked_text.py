"""Redacts secrets that span several pieces of a text, without moving the borders of the pieces: streams, lists of tokens."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

from pytest_hermes_env.types import JsonObject, JsonValue

__all__ = ["redacted_events", "redacted_pieces", "redacted_tokens"]

SGLANG_PARTS = 3
_Replacements = Callable[[str], "list[tuple[int, int, str]]"]
"""A function from a text to its replacements: (start, end, replacement)."""


def redacted_pieces(pieces: Sequence[str], replacements: _Replacements, between: str = "") -> list[str]:
    """Return the redacted pieces of a text; each replacement goes into the piece in which its secret begins."""
    redacted = list(pieces)
    borders = [0]
    for piece in pieces:
        borders.append(borders[-1] + len(piece) + len(between))
    for start, end, instead in reversed(replacements(between.join(pieces))):
        placed = False
        for number, piece in enumerate(pieces):
            first, last = max(start - borders[number], 0), min(end - borders[number], len(piece))
            if first < last:
                redacted[number] = redacted[number][:first] + ("" if placed else instead) + redacted[number][last:]
                placed = True
    return redacted


def redacted_tokens(items: list[JsonValue], replacements: _Replacements) -> list[JsonValue]:
    """Return a list of tokens with logprobs, in OpenAI's or SGLang's format, without secrets that span tokens."""
    tokens = [_token(item) for item in items]
    texts = redacted_pieces([token or "" for token in tokens], replacements)
    return [
        item if token is None or token == text else _with_token(item, token, text)
        for item, token, text in zip(items, tokens, texts, strict=True)
    ]


def _token(item: JsonValue) -> str | None:
    if isinstance(item, dict) and isinstance(token := item.get("token"), str):
        return token
    if isinstance(item, list) and len(item) == SGLANG_PARTS and isinstance(token := item[2], str):
        return token
    return None


def _with_token(item: JsonValue, old: str, new: str) -> JsonValue:
    if isinstance(item, list):
        return [*item[:2], new]
    if not isinstance(item, dict):
        return item
    changed: JsonObject = {**item, "token": new}
    if isinstance(item.get("bytes"), list):
        changed["bytes"] = list(new.encode("utf-8", "surrogatepass"))
    if isinstance(others := item.get("top_logprobs"), list):
        changed["top_logprobs"] = [_with_token(other, old, new) if _token(other) == old else other for other in others]
    return changed


def redacted_events(events: Sequence[str], replacements: _Replacements, clean: Callable[[JsonValue], JsonValue]) -> list[str]:
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
    except ValueError:
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
