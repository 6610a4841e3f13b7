"""Scans a cassette for secrets before it is written, independently of the redaction.

It shares the table of prefixes with the redaction, and no code: it reads a file as bytes and as JSON, joins whatever may have been split (lines, chunks of streams,
tokens), decodes layer by layer, and searches for the prefixes of keys character by character.
"""

from __future__ import annotations

import base64
import binascii
import bisect
import gzip
import json
import re
import string
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote_to_bytes

from pytest_hermes_env.redaction.key_prefixes import KEY_PREFIXES

MIN_KNOWN_LENGTH = 8
MAX_LAYERS = 4
_JOINED = "[*]"
BYTES = 256
SHORT_LIST = 64
SGLANG_PARTS = 3
LONGEST_KEY = 200
LONGEST_HEAD = 1000
LONGEST_TITLE = 60
SHORTEST_PART, SHORTEST_RUN, SHORTEST_TOKEN, SHORTEST_HEX, SHORTEST_PACKED = 12, 12, 16, 16, 9
TOKEN_DIGITS = 2
MAX_DECOMPRESSED = 16_000_000
_ALPHANUMERIC = frozenset(string.ascii_letters + string.digits)
_KEY_LETTERS = _ALPHANUMERIC | set("_-")
_TOKEN_LETTERS = _KEY_LETTERS | set(".~+/=")
_BASE64_LETTERS = (string.ascii_letters + string.digits + "+/-_=").encode()
_BLANKED = bytes(letter if letter in _BASE64_LETTERS else 32 for letter in range(256))
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_UNREADABLE = bytes({*range(BYTES)} - {*string.printable.encode()})


@dataclass(frozen=True, kw_only=True)
class Leak:
    """A secret in a file: its line, its path in the JSON, and its kind. Never the secret itself."""

    line: int
    where: str
    kind: str


def scan_file(path_or_bytes: Path | bytes, known: Mapping[str, str] | None = None) -> list[Leak]:
    """Return the secrets in a file: ``known`` ones (by name) in any encoding, and everything that looks like a key.

    A leak that spans several pieces has the line of the first piece, or 1 if that is unknown.
    """
    data = path_or_bytes if isinstance(path_or_bytes, bytes) else Path(path_or_bytes).read_bytes()
    text = data.decode("utf-8", "replace")
    breaks = [found.start() for found in re.finditer("\n", text)]
    needles = {name: value for name, value in (known or {}).items() if len(value) >= MIN_KNOWN_LENGTH}
    leaks: dict[tuple[str, int], Leak] = {}
    seen: set[str] = set()
    for where, view in sorted(_views(text), key=lambda view: _JOINED in view[0]):
        if view in seen:
            continue
        seen.add(view)
        for kind in sorted(_kinds(view, needles, 0)):
            line = _line(text, view, breaks)
            if _JOINED in where and any(kind == leak.kind for leak in leaks.values()):
                continue  # the joined texts repeat the leak of one of them
            leaks.setdefault((kind, line), Leak(line=line, where=where, kind=kind))
    return sorted(leaks.values(), key=lambda leak: (leak.line, leak.kind, leak.where))


def leak_lines(leaks: list[Leak]) -> list[str]:
    """Return a line for each leak, without the secret."""
    return [f"line {leak.line}: {leak.kind} in {leak.where}" for leak in leaks]


def _line(text: str, view: str, breaks: list[int]) -> int:
    """Return the line of the file that contains the view, or its longest line."""
    piece = max(view.split("\n"), key=len)
    for sought in (piece, json.dumps(piece, ensure_ascii=False)[1:-1], json.dumps(piece)[1:-1], piece[:12]):
        at = text.find(sought)
        if at >= 0:
            return bisect.bisect_left(breaks, at) + 1
    return 1


def _views(text: str) -> Iterator[tuple[str, str]]:
    """Yield every text that may contain a secret, with its path: the strings in the JSON, and those joined."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        yield "the file", text
        return
    yield from _texts(document, "")


def _texts(value: object, where: str) -> Iterator[tuple[str, str]]:
    """Yield the strings in a value, and for each list the joined strings at the same path of its items."""
    if isinstance(value, str):
        yield where or "the file", value
        inner = _json_in(value)
        if inner is not None:
            yield from _texts(inner, where)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield f"{where} (a key)", key
            yield from _texts(item, f"{where}.{key}".lstrip("."))
    elif isinstance(value, list):
        if value and all(type(item) is int and 0 <= item < BYTES for item in value[:SHORT_LIST]):
            if max(value) < BYTES and min(value) >= 0:
                yield where, bytes(value).decode("latin-1")
            return
        if value and isinstance(value[0], int | float):
            return
        joined: dict[str, list[str]] = {}
        for item in value:
            _gather(item, "", joined)
        for place, texts in joined.items():
            if len(texts) > 1:
                yield f"{where}{_JOINED}{place}", "".join(texts)
                yield f"{where}{_JOINED}{place}", "\n".join(texts)
        for number, item in enumerate(value):
            yield from _texts(item, f"{where}[{number}]")


def _gather(value: object, place: str, joined: dict[str, list[str]]) -> None:
    """Collect strings by their path in the items of a list; an "index" field distinguishes paths."""
    if isinstance(value, str):
        joined.setdefault(place, []).append(value)
        inner = _json_in(value)
        if inner is not None:
            _gather(inner, f"{place}:", joined)
    elif isinstance(value, dict):
        index = value.get("index")
        here = f"{place}#{index}" if isinstance(index, int) else place
        for key, item in value.items():
            _gather(item, f"{here}.{key}", joined)
    elif isinstance(value, list):
        if value and all(type(item) is int and 0 <= item < BYTES for item in value[:SHORT_LIST]) and len(value) < SHORT_LIST:
            joined.setdefault(place, []).append(bytes(value).decode("latin-1"))
        elif value and not isinstance(value[0], int | float):
            for item in value:
                _gather(item, f"{place}[]", joined)
        elif len(value) == SGLANG_PARTS and isinstance(value[2], str):  # a logprob, a token id, and its text
            joined.setdefault(f"{place}[2]", []).append(value[2])


def _json_in(text: str) -> object:
    """Return the value of a JSON text, or of the data of an event; None for other texts."""
    start = text.removeprefix("data:").lstrip()
    if start[:1] not in ("{", "["):
        return None
    try:
        return json.loads(start)
    except (ValueError, RecursionError):  # only begins like JSON: already scanned as text
        return None


def _kinds(view: str, known: Mapping[str, str], layer: int) -> set[str]:
    """Return the kinds of secrets in a text, as it is and decoded."""
    found = {name for name, value in known.items() if value in view}
    found |= {
        key.kind for key in KEY_PREFIXES if any(_is_key(view, at, key.prefix, key.min_body) for at in _places(view, key.prefix))
    }
    found |= {
        "aws-key" for at in _places(view, "AKIA", "ASIA") if _is_key(view, at, "AKIA", 16) and view[at + 4 : at + 20].isupper()
    }
    found |= {"google-key" for at in _places(view, "AIza") if _is_key(view, at, "AIza", 32)}
    if _has_private_key(view):
        found.add("private-key")
    if _has_bearer(view):
        found.add("bearer")
    if _has_json_web_token(view):
        found.add("jwt")
    if layer < MAX_LAYERS:
        for inner in _decoded(view):
            found |= _kinds(inner, known, layer + 1)
    return found


def _is_key(view: str, at: int, prefix: str, length: int) -> bool:
    if at and view[at - 1] in _ALPHANUMERIC:
        return False
    end = at
    while end < len(view) and view[end] in _KEY_LETTERS and end - at < LONGEST_KEY:
        end += 1
    body = view[at + len(prefix) : end]
    longest = max(map(len, body.replace("_", "-").split("-")), default=0)
    return len(body) >= length and any(map(str.isdigit, body)) and longest >= SHORTEST_PART


def _places(view: str, *words: str) -> Iterator[int]:
    for word in words:
        at = view.find(word)
        while at >= 0:
            yield at
            at = view.find(word, at + 1)


def _has_private_key(view: str) -> bool:
    for block in view.split("-----BEGIN ")[1:]:
        title = block[:LONGEST_TITLE].partition("-----")[0]
        if "PRIVATE KEY" in title and all(letter.isalnum() or letter == " " for letter in title):
            return True
    return False


def _has_bearer(view: str) -> bool:
    for at in _places(view, "Bearer ", "bearer "):
        start = at + len("Bearer ")
        rest = view[start : start + 200].lstrip()
        body = rest[: next((place for place, letter in enumerate(rest) if letter not in _TOKEN_LETTERS), len(rest))]
        if len(body) >= SHORTEST_TOKEN and sum(map(str.isdigit, body)) >= TOKEN_DIGITS:
            return True
    return False


def _has_json_web_token(view: str) -> bool:
    for at in _places(view, "eyJ"):
        parts = view[at : at + 4 * LONGEST_HEAD].split(".", 2)
        if len(parts[2:]) == 1 and len(parts[0]) < LONGEST_HEAD:
            try:
                head = json.loads(base64.urlsafe_b64decode(parts[0] + "=" * (-len(parts[0]) % 4)))
            except (ValueError, binascii.Error):
                head = None
            if isinstance(head, dict) and "alg" in head and parts[1].startswith("eyJ"):
                return True
    return False


def _decoded(view: str) -> Iterator[str]:
    """Yield the text decoded from base64, hex, percent encoding, escapes and compression."""
    if "%" in view:
        spaced = view.replace("+", " ").encode("utf-8", "replace")
        plain = unquote_to_bytes(spaced)
        if plain != spaced:
            yield plain.decode("utf-8", "replace")
    if "\\" in view:
        unescaped = _unescaped(view)
        if unescaped != view:
            yield unescaped
    if "&" in view and ";" in view:
        yield view.replace("&amp;", "&").replace("&quot;", '"').replace("&#x27;", "'").replace("&lt;", "<").replace("&gt;", ">")
    data = view.encode("utf-8", "replace")
    unbroken = data.replace(b"\r", b"").replace(b"\n", b"")
    for source in {data, unbroken}:
        for run in source.translate(_BLANKED).split():
            if len(run) >= SHORTEST_RUN:
                yield from _from_run(run)


def _unescaped(view: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else _ESCAPES.get(found[2], found[2]), view)


def _from_run(run: bytes) -> Iterator[str]:
    plain = run.rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/").replace(b"=", b"")
    for skipped in range(4):
        part = plain[skipped:]
        part = part[: len(part) // 4 * 4] if len(part) % 4 == 1 else part + b"=" * (-len(part) % 4)
        yield from _from_bytes(binascii.a2b_base64(part))
    digits = run.translate(None, b"-_=+/")
    if len(digits) >= SHORTEST_HEX and all(digit in b"0123456789abcdefABCDEF" for digit in set(digits)):
        yield from _from_bytes(binascii.unhexlify(digits[: len(digits) // 2 * 2]))


def _from_bytes(data: bytes) -> Iterator[str]:
    unpacked = data
    if data.startswith(b"\x1f\x8b"):
        try:
            unpacked = zlib.decompressobj(31).decompress(data, MAX_DECOMPRESSED)
        except (zlib.error, gzip.BadGzipFile):
            unpacked = data
    elif data[:1] == b"x" and len(data) >= SHORTEST_PACKED:
        try:
            unpacked = zlib.decompressobj().decompress(data, MAX_DECOMPRESSED)
        except zlib.error:
            unpacked = data
    readable = len(unpacked[:4096].translate(None, _UNREADABLE))
    if readable * 10 >= len(unpacked[:4096]) * 6 or unpacked is not data:
        yield unpacked.decode("utf-8", "replace")
