"""The styles in which JSON is written: with or without ASCII escapes, with or without spaces."""

from __future__ import annotations

import json
from collections.abc import Callable

from pytest_hermes_env.types import JsonValue

JSON_STYLES: dict[str, Callable[[JsonValue], str]] = {
    "": json.JSONEncoder(ensure_ascii=False).encode,
    "_ascii": json.JSONEncoder().encode,
    "_compact": json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode,
    "_compact_ascii": json.JSONEncoder(separators=(",", ":")).encode,
}
"""By the suffix that the marks of a cassette have for them. They raise ValueError and RecursionError."""


def dumped_like(text: str, value: JsonValue, other: JsonValue) -> str:
    """Return ``other`` as JSON in the style in which ``text`` is the JSON of ``value``."""
    return next((write for write in JSON_STYLES.values() if write(value) == text), JSON_STYLES[""])(other)
