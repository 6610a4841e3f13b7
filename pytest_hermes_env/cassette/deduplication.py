"""Writes long texts and large request fields only once.

The first occurrence is ``{"~define": "1.2", "is": ...}``, each later one ``{"~shared": "1.2"}``. The name is the number of the
defining call and a count within that call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pytest_hermes_env.cassette.escape import MARK
from pytest_hermes_env.cassette.repeats import text_of_value
from pytest_hermes_env.types import JsonObject, JsonValue

MIN_SHARED_LENGTH = 200
_REFERENCES = ("~as", "~ids_of", "~asked", "~echo_of")


def deduplicated(calls: Iterable[JsonObject]) -> JsonValue:
    """Return packed calls with every repeated long text and large body field only at its first occurrence."""
    calls = list(calls)
    counter = _Counter()
    for call in calls:
        counter.call(call)
    writer = _Writer({text for text, count in counter.counts.items() if count > 1})
    return [writer.call(call) for call in calls]


class _Visitor:
    """Walks packed calls and passes every value that may be shared to `shareable`, outermost first."""

    def call(self, call: JsonObject) -> JsonObject:
        return {key: self.request(value) if key == "request" else self.value(value) for key, value in call.items()}

    def request(self, request: JsonValue) -> JsonValue:
        if not isinstance(request, dict):
            return self.value(request)
        return {key: self.body(value) for key, value in request.items()}

    def body(self, body: JsonValue) -> JsonValue:
        if not isinstance(body, dict) or _mark(body):
            return self.value(body)
        return {key: self.value(value) if key == "messages" else self.field(value) for key, value in body.items()}

    def field(self, value: JsonValue) -> JsonValue:
        if isinstance(value, dict | list) and value and not _is_numeric(value) and _mark(value) not in _REFERENCES:
            return self.whole(value)
        return self.value(value)

    def whole(self, value: JsonValue) -> JsonValue:
        text = text_of_value(value)
        if text is not None and len(text) >= MIN_SHARED_LENGTH:
            return self.shareable(value, text)
        return self.children(value)

    def value(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return self.shareable(value, value) if len(value) >= MIN_SHARED_LENGTH else value
        mark = _mark(value)
        return self.whole(value) if mark and mark not in _REFERENCES else self.children(value)

    def children(self, value: JsonValue) -> JsonValue:
        mark = _mark(value)
        if isinstance(value, list):
            return value if _is_numeric(value) else [self.value(item) for item in value]
        if isinstance(value, dict) and (not mark or mark in _REFERENCES):
            return {key: self.value(item) for key, item in value.items()}
        return value

    def shareable(self, value: JsonValue, text: str) -> JsonValue:
        raise NotImplementedError


class _Counter(_Visitor):
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def shareable(self, value: JsonValue, text: str) -> JsonValue:
        self.counts[text] += 1
        return self.children(value) if self.counts[text] == 1 else value


class _Writer(_Visitor):
    def __init__(self, repeated: set[str]) -> None:
        self._repeated = repeated
        self._names: dict[str, str] = {}
        self._call: JsonValue = 0
        self._defined = 0

    def call(self, call: JsonObject) -> JsonObject:
        self._call, self._defined = call["call"], 0
        return super().call(call)

    def shareable(self, value: JsonValue, text: str) -> JsonValue:
        if text not in self._repeated:
            return self.children(value)
        if text in self._names:
            return {"~shared": self._names[text]}
        self._defined += 1
        name = self._names[text] = f"{self._call}.{self._defined}"
        return {"~define": name, "is": value}


def _mark(value: JsonValue) -> str:
    """Return the mark of a packed value; "" for a plain value."""
    key = next(iter(value), "") if isinstance(value, dict) else ""
    return key if key.startswith(MARK) else ""


def _is_numeric(value: JsonValue) -> bool:
    """Return whether a value begins like a list of numbers; such lists are never shared and may be very long."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], int | float)
