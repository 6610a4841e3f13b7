"""The texts in an item, whatever its class is.

Place in the flow: cases, attacks and watchers compare them with what a rollout says and what a verifier reads.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterator
from typing import Any

from pytest_hermes_env.play.buffers import fields_of

LABEL = re.compile(r"answer|expected|solution|gold|truth|correct|wants?\b|wanted|hidden|secret|private|\bchecks?\b|rubric")
NO_LABEL = re.compile(r"file|path|dir|name|format|type|column|keys|field|unit|count|example")
"""What an answer is called, and what is told to the agent of it."""
PERHAPS_LABEL = re.compile(r"reference|ideal|canonical|oracle|model_(?!name)|best_")
"""What an answer may be called: it is one where gold says or writes all of it. A target or a label may be what the task tells the agent to write."""
DEEP = 6
"""Levels of an item that are read."""


def texts_of(item: Any) -> list[str]:
    """Return the texts in an item."""
    return [text for _, text in pairs_of(item)]


def pairs_of(item: Any) -> list[tuple[str, str]]:
    """Return key and text of each value in an item."""
    return [pair for key, part in (fields_of(item) or {"": item}).items() for pair in pairs_under(key, part)]


def pairs_under(key: str, value: Any, depth: int = DEEP) -> Iterator[tuple[str, str]]:
    """Yield key and text of each value in a part of an item, as deep as data goes: objects may hold each other."""
    parts = {str(number): part for number, part in enumerate(value)} if isinstance(value, list | tuple) else fields_of(value)
    if not parts:
        value = value.value if isinstance(value, enum.Enum) else value
        yield key, value if isinstance(value, str) else json.dumps(value, default=str)
    for name, part in parts.items() if depth else ():
        yield from pairs_under(name, part, depth - 1)
