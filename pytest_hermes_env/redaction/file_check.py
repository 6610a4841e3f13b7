"""Looks for secrets in the text of a file before it is written, whatever made that text.

The redaction sees fields; this sees the file: every string and key of its JSON, and the strings of each list together, since a secret may
be split over the lines of a text, the chunks of a stream or the tokens of an answer. Both search with `Search`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pytest_hermes_env.redaction.key_shapes import BEARER, KEY_SHAPES, looks_random
from pytest_hermes_env.redaction.secret_search import UNDECODED, Search
from pytest_hermes_env.types import JsonValue

JOINED = "[*]"
_BYTES = 256
_LONG = 40
"""Characters of a secret that cannot be an ordinary word or name."""
_SHORT = 64
"""Bytes of a token, at most."""
FIX = (
    "remove it from what the environment returns, prints or raises,\n"
    "            or put its value into a variable whose name says that it is secret, such as MY_API_KEY"
)


@dataclass(frozen=True, kw_only=True, order=True)
class Leak:
    """A secret in a file: its line, its kind, and its path in the JSON. Never the secret itself."""

    line: int
    kind: str
    where: str


def leaks_in(text: str, known: Mapping[str, str] | None = None) -> list[Leak]:
    """Return the secrets in the text of a file: ``known`` ones (by name) and everything that looks like a key, in any encoding.

    A secret that spans several strings has the line of the first one, or 1 if that is unknown.
    """
    single, joined = Search(known or {}, (*KEY_SHAPES, BEARER)), Search(known or {}, KEY_SHAPES)
    found: dict[tuple[str, int], Leak] = {}
    views = {view: where for where, view in reversed(list(_views(text)))}  # of equal ones, the first path
    for view, where in sorted(views.items(), key=lambda item: JOINED in item[1]):
        is_joined = JOINED in where
        kinds = {span.kind for span in (joined if is_joined else single).spans(view)}
        if is_joined:  # strings together repeat the leaks of each of them
            kinds -= {UNDECODED, *(leak.kind for leak in found.values())}
        for kind in sorted(kinds):
            line = _line(text, view)
            found.setdefault((kind, line), Leak(line=line, kind=kind, where=where))
    return sorted(found.values())


def keys_among(known: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets that no ordinary text contains: others, such as ``evaluate``, stand in a report's own words, too."""
    return {name: value for name, value in known.items() if looks_random(value) or len(value) >= _LONG}


def check_text(what: str, text: str, known: Mapping[str, str], error: type[Exception], *, fix: str = FIX) -> None:
    """Check the text of a file that is about to be written. Raises: it contains a secret → ``error``, which does not show it."""
    if leaks := leaks_in(text, known):
        raise error(
            f"{what} was not written, because it would contain what looks like a secret.\n"
            + "".join(f"  seen      line {leak.line}: {leak.kind} in {leak.where}\n" for leak in leaks)
            + f"  fix       {fix}"
        )


def _line(text: str, view: str) -> int:
    """Return the line of the file that contains a string, or its longest line."""
    piece = max(view.split("\n"), key=len)
    places = (
        text.find(sought)
        for sought in (piece, json.dumps(piece, ensure_ascii=False)[1:-1], json.dumps(piece)[1:-1], piece[:12])
    )
    at = next((at for at in places if at >= 0), 0)
    return text.count("\n", 0, at) + 1


def _views(text: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of every string in the JSON, and of those that are read together."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        yield "the file", text
        return
    yield from _strings(document, "")


def _strings(value: JsonValue, where: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield where or "the file", value
        if (inner := _json_in(value)) is not None:
            yield from _strings(inner, where)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield f"{where} (a key)", key
            yield from _strings(item, f"{where}.{key}".lstrip("."))
    elif isinstance(value, list) and not _is_numeric(value):
        yield from ((f"{where}{JOINED}{path}", view) for path, view in _joined(value))
        for number, item in enumerate(value):
            yield from _strings(item, f"{where}[{number}]")


def _joined(items: list[JsonValue]) -> Iterator[tuple[str, str]]:
    """Yield the strings at the same path of the items of a list, together: as pieces of one line, and as lines."""
    groups: dict[str, list[str]] = {}
    for item in items:
        for path, piece in _pieces(item, ""):
            groups.setdefault(path, []).append(piece)
    for path, pieces in groups.items():
        if len(pieces) > 1:
            yield path, "".join(pieces)
            yield path, "\n".join(pieces)


def _pieces(value: JsonValue, path: str) -> Iterator[tuple[str, str]]:
    """Yield the strings in an item, with paths that are equal in all items; an "index" distinguishes the answers of one request."""
    if isinstance(value, str):
        yield path, value
        if (inner := _json_in(value)) is not None:
            is_event = value.startswith("data: ")  # kept as it was sent, between others that are kept as JSON
            yield from _pieces(inner, path if is_event else f"{path}:")
    elif isinstance(value, dict):
        here = f"{path}#{value['index']}" if isinstance(value.get("index"), int) else path
        for key, item in value.items():
            yield from _pieces(item, f"{here}.{key}")
    elif isinstance(value, list):
        if value and len(value) < _SHORT and all(type(item) is int and 0 <= item < _BYTES for item in value):
            yield path, bytes(value).decode("latin-1")  # type: ignore[arg-type]
        elif not _is_numeric(value):
            for item in value:
                yield from _pieces(item, f"{path}[]")


def _json_in(text: str) -> JsonValue:
    """Return the value of a text that is JSON itself, or an event of a stream; None for any other text."""
    text = text.strip().removeprefix("data: ")
    if text[:1] not in ("{", "["):
        return None
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def _is_numeric(value: list[JsonValue]) -> bool:
    """Return whether a list holds only numbers: token ids and logprobs, many thousands."""
    return bool(value) and set(map(type, value)) <= {int, float}
