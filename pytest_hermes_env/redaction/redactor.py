"""Replaces secrets in texts and JSON values: each becomes ``[redacted:<kind>:<n>]``.

A player of recordings compares `neutral` values, without kinds and numbers, because those depend on the current key.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from pytest_hermes_env.redaction.encodings import dumped_like
from pytest_hermes_env.redaction.key_shapes import SHAPES, Shape, looks_random
from pytest_hermes_env.redaction.secret_names import is_secret_name
from pytest_hermes_env.redaction.secret_search import PLACEHOLDER, Search
from pytest_hermes_env.types import JsonObject, JsonValue

_MAX_CACHED_TEXTS = 4096
_NEUTRAL = "[redacted]"
LONGEST_SCHEME = 10
"""Characters that a header may have next to its redacted credential, such as ``Bearer``."""
SGLANG_PARTS = 3
Replacements = Callable[[str], "list[tuple[int, int, str]]"]
"""A function from a text to its replacements: (start, end, replacement)."""


class TextRedactor:
    """Replaces secrets, equal secrets with equal placeholders.

    ``known``: secret values by the name for their placeholder, see `secrets_of`. ``patterns``: regular expressions by kind; group 1, if
    there is one, is the secret. ``function`` maps every string to its redacted form.
    """

    def __init__(
        self,
        *,
        known: Mapping[str, str] | None = None,
        patterns: Mapping[str, str | re.Pattern[str]] | None = None,
        function: Callable[[str], str] | None = None,
    ) -> None:
        own = [Shape(kind=kind, hints=(), pattern=re.compile(pattern)) for kind, pattern in (patterns or {}).items()]
        self._shapes = (*own, *SHAPES)
        self._function = function
        self.begin(known or {})

    def knowing(self, more: Mapping[str, str]) -> Self:
        """Return a redactor that also knows the secrets ``more``, by name, and numbers placeholders from 1."""
        other = copy.copy(self)
        other.begin({**more, **self.known})
        return other

    @property
    def learned(self) -> dict[str, str]:
        """What was found to be a secret by where it stood, by name: it may stand elsewhere, too."""
        values = {value: kind for kind, value in self._numbers if looks_random(value)}
        return {
            f"{kind}.{number}": value for number, (value, kind) in enumerate(values.items()) if value not in self.known.values()
        }

    def begin(self, known: Mapping[str, str]) -> None:
        """Number placeholders from 1, and search for these secrets, by name, and for all shapes."""
        self.known = dict(known)
        self._search = Search(self.known, self._shapes)
        self._numbers: dict[tuple[str, str], int] = {}
        self._counts: dict[str, int] = {}
        self._texts: dict[str, str] = {}

    def value(self, value: JsonValue) -> JsonValue:
        """Return a JSON value with placeholders for the secrets in its strings and keys, and under names such as "password"."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return self._list(value)
        if isinstance(value, dict):
            return {self.text(key): self._field(key, item) for key, item in value.items()}
        return value

    def text(self, text: str) -> str:
        """Return a text with placeholders for its secrets."""
        known = self._texts.get(text)
        if known is None:
            if len(self._texts) >= _MAX_CACHED_TEXTS:
                self._texts.clear()
            known = self._texts[text] = self._redacted(text)
        return known

    def lines(self, lines: list[str]) -> list[str]:
        """Return the lines of one text; a secret that spans several is replaced where it begins."""
        return [self.text(line) for line in redacted_pieces(lines, self._replacements, "\n")]

    def _redacted(self, text: str) -> str:
        if text[:1] in ("{", "[") and "\\" in text:
            text = self._json_text(text)
        text = redacted_pieces([text], self._replacements)[0]
        return text if self._function is None else self._function(text)

    def _json_text(self, text: str) -> str:
        """Redact the strings inside a JSON text, where escapes may hide a secret."""
        try:
            value = json.loads(text)
            redacted = self.value(value)
        except (ValueError, RecursionError):  # not JSON: treated like any text
            return text
        return text if redacted == value else dumped_like(text, value, redacted)

    def _replacements(self, text: str) -> list[tuple[int, int, str]]:
        return [(span.start, span.end, self._placeholder(span.kind, span.value)) for span in self._search.spans(text)]

    def _placeholder(self, kind: str, secret: str) -> str:
        number = self._numbers.get((kind, secret))
        if number is None:
            number = self._numbers[kind, secret] = self._counts[kind] = self._counts.get(kind, 0) + 1
        return f"[redacted:{kind}:{number}]"

    def _list(self, items: list[JsonValue]) -> JsonValue:
        if items and isinstance(items[0], int | float) and set(map(type, items)) <= {int, float}:
            return items  # ids and logprobs: many thousands
        if items and all(isinstance(item, str) for item in items):
            return list(self.lines(items))  # type: ignore[arg-type]  # a private key may span lines
        return [self.value(item) for item in redacted_tokens(items, self._replacements)]

    def _field(self, key: str, value: JsonValue) -> JsonValue:
        if (
            isinstance(value, str)
            and is_secret_name(key)
            and len(PLACEHOLDER.sub("", value)) > (LONGEST_SCHEME if "[redacted:" in value else 0)
        ):
            return self._placeholder(key.lower().replace(":", "-").replace("[", "(").replace("]", ")"), value)
        return self.value(value)


def neutral(value: JsonValue) -> JsonValue:
    """Return a redacted JSON value with ``[redacted]`` for each placeholder."""
    if isinstance(value, str):
        return PLACEHOLDER.sub(_NEUTRAL, value) if "[redacted:" in value else value
    if isinstance(value, list):
        return value if value and isinstance(value[0], int | float) else [neutral(item) for item in value]
    if isinstance(value, dict):
        return {str(neutral(key)): neutral(item) for key, item in value.items()}
    return value


# ---------------------------------------------------------------------- secrets that span pieces of a text: lines, tokens, chunks


def redacted_pieces(pieces: Sequence[str], replacements: Replacements, between: str = "") -> list[str]:
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


def redacted_tokens(items: list[JsonValue], replacements: Replacements) -> list[JsonValue]:
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
