"""Redacts secrets that span several pieces of a text, without moving the borders of the pieces: lines, tokens, chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_hermes_env.types import JsonObject, JsonValue

SGLANG_PARTS = 3
Replacements = Callable[[str], "list[tuple[int, int, str]]"]
"""A function from a text to its replacements: (start, end, replacement)."""


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
