"""The encodings in which a secret may stand in a text: how a known one would look, and what a text says once it is decoded.

What is decoded: base64 (plain and URL-safe, in lines, at any alignment), hexadecimal (also of separated bytes), percent encoding, backslash
escapes, HTML entities, quoted-printable, UTF-16, gzip and zlib (the first `MAX_DECOMPRESSED` bytes). Colours and invisible characters
are looked through.

Also the styles in which JSON is written: with or without ASCII escapes, with or without spaces.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
import sys
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import quote, quote_plus, unquote_to_bytes

from pytest_hermes_env.types import JsonValue

MAX_DECOMPRESSED = 4_000_000
MAX_JSON_LEVELS = 5
MIN_MIDDLE = 8
_RUN = re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}")
_BREAK = r"(?:[ \t\r]{0,20}+\n[ \t]{0,40}+(?:E[ \t]{1,40}+|[>|#*][ \t]{0,40}+)?|[ \t]{1,2}+)"
"""The end of a line; the next one may be indented, quoted, or be one of an error as pytest shows it."""
_BLOCK = re.compile(rf"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/_-]{{40,}}+{_BREAK})++(?:[A-Za-z0-9+/_-]++={{0,2}})?")
_PIECE = re.compile(r"[A-Za-z0-9+/_-]{2,}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){10,}")
_HEX_BYTES = re.compile(r"(?<!\w)(?:(?:0x)?[0-9a-fA-F]{2}(?:, ?|[ :-])){9,}(?:0x)?[0-9a-fA-F]{2}(?!\w)")
_HEX_BYTE = re.compile(r"[0-9a-fA-F]{2}(?!x)")
_UNSEEN = "\0\xad\u200b\u200c\u200d\u2060\ufeff"
"""Characters that can stand in a key and are not seen; NUL also stands between the letters of UTF-16."""
_READABLE = re.compile(rb"[\t\r\n\x20-\x7e]{8}")
_PRINTABLE = bytes((9, 10, 13, *range(0x20, 0x7F)))
SAMPLE = 4096
_CODED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-")
_CODES = re.compile(
    r"(?P<percent>(?:%[0-9A-Fa-f]{2})+)"
    r"|(?<!\\)\\+(?:u(?P<u>[0-9A-Fa-f]{4})|x(?P<x>[0-9A-Fa-f]{2})|U(?P<U>[0-9A-Fa-f]{8})|u\{(?P<b>[0-9A-Fa-f]{1,6})\}|(?P<o>[0-3][0-7]{2})|(?P<space>[nrt])|/)"
    r"|(?P<entity>&(?:\#\d{1,7}|\#[xX][0-9A-Fa-f]{1,6}|amp|lt|gt|quot|apos);)"
    r"|(?P<quoted>=3D|=20|=09|(?:=[0-9A-F]{2}){2,})"
    rf"|(?P<unseen>=\r?\n|[{_UNSEEN}]+|\x1b\[[0-9;]*[A-Za-z])"
)
_MAY_HAVE_CODES = re.compile(rf"[%\\&\x1b{_UNSEEN}]|=[0-9A-F\r\n]")
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


def forms_of(value: str) -> set[tuple[str, bool]]:
    """Return the encodings of a secret, each with whether it is the middle of a base64 run."""
    data = value.encode("utf-8", "surrogatepass")
    plain = {
        value,
        quote(value, safe="", errors="surrogatepass"),
        quote_plus(value, errors="surrogatepass"),
        *_in_json(value, ensure_ascii=True),
        *_in_json(value, ensure_ascii=False),
        repr(value)[1:-1],
        html.escape(value),
        data.hex(),
    }
    middles = set()
    for offset in range(3):
        # drop the characters that also encode neighbouring bytes
        coded = base64.b64encode(b"\0" * offset + data).decode()
        middle = coded[(0, 2, 3)[offset] :].rstrip("=")
        middle = middle[: len(middle) - (1 if (offset + len(data)) % 3 else 0)]
        if len(middle) >= MIN_MIDDLE:
            middles |= {middle, middle.replace("+", "-").replace("/", "_")}
    return {(form, False) for form in plain} | {(form, True) for form in middles}


def _in_json(value: str, *, ensure_ascii: bool) -> Iterator[str]:
    """Yield the text escaped as in JSON, as in JSON within JSON, and so on."""
    for _ in range(MAX_JSON_LEVELS):
        value = json.dumps(value, ensure_ascii=ensure_ascii)[1:-1]
        yield value


def run_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the whole base64 run around a part of it."""
    while start and text[start - 1] in _CODED:
        start -= 1
    while end < len(text) and text[end] in _CODED:
        end += 1
    return start, end


class Unescaped:
    """A text without its escapes, and where its parts stood in the original."""

    def __init__(self, text: str) -> None:
        pieces: list[str] = []
        self._starts: list[int] = []  # of each piece in the decoded text
        self._places: list[tuple[int, int, bool]] = []  # of each piece in the original, and whether it was coded
        at = length = 0
        for code in _CODES.finditer(text):
            for piece, place in ((text[at : code.start()], (at, code.start(), False)), (_decoded(code), (*code.span(), True))):
                if piece:
                    pieces.append(piece)
                    self._starts.append(length)
                    self._places.append(place)
                    length += len(piece)
            at = code.end()
        self._starts.append(length)
        self._places.append((at, len(text), False))
        self.text = "".join([*pieces, text[at:]])

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return the part of the original that says what stands from ``start`` to ``end``."""
        return self._at(start)[0], self._at(end - 1)[1]

    def _at(self, position: int) -> tuple[int, int]:
        number = bisect_right(self._starts, position) - 1
        start, end, was_coded = self._places[number]
        if was_coded:
            return start, end
        return start + position - self._starts[number], start + position - self._starts[number] + 1


def unescaped(text: str) -> Unescaped | None:
    """Return a text without codes for characters, colours and what is not seen; None if it has none."""
    if not _MAY_HAVE_CODES.search(text) or not _CODES.search(text):
        return None
    return Unescaped(text)


def _decoded(code: re.Match[str]) -> str:
    if code["unseen"]:
        return ""
    if code["quoted"]:
        return bytes.fromhex(code["quoted"].replace("=", "")).decode("utf-8", "replace")
    if code["percent"]:
        return unquote_to_bytes(code["percent"]).decode("utf-8", "replace")
    if code["entity"]:
        return html.unescape(code["entity"])
    if code["space"]:
        return "\n"
    digits, base = (code["o"], 8) if code["o"] else (code["u"] or code["x"] or code["U"] or code["b"], 16)
    if not digits:
        return "/"
    number = int(digits, base)
    return chr(number) if number <= sys.maxunicode else "\ufffd"


@dataclass(frozen=True, slots=True)
class DecodedRun:
    """What stands in a text, from ``start`` to ``end``, in base64 or hexadecimal digits.

    ``is_text``: it may be decoded once more. `is_cut`: it is longer than what was decompressed.
    """

    start: int
    end: int
    text: str
    is_text: bool

    @property
    def is_cut(self) -> bool:
        """Whether a part of it was not decompressed."""
        return len(self.text) >= MAX_DECOMPRESSED and len(self.text) > self.end - self.start


def decoded_runs(text: str) -> Iterator[DecodedRun]:
    """Yield what each run of base64 and hexadecimal digits says, at every alignment."""
    for start, end in _runs(text):
        run = text[start:end]
        compact = "".join(_PIECE.findall(run)).replace("-", "+").replace("_", "/")
        for offset in range(4):
            piece = compact[offset:]
            piece = piece[: len(piece) - 1] if len(piece) % 4 == 1 else piece
            for decoded, is_text in _readable(binascii.a2b_base64(piece + "=" * (-len(piece) % 4))):
                yield DecodedRun(start, end, decoded, is_text)
        for digits in _HEX.finditer(run):
            for decoded, is_text in _readable(bytes.fromhex(digits[0])):
                yield DecodedRun(start + digits.start(), start + digits.end(), decoded, is_text)
    for separated in _HEX_BYTES.finditer(text):
        for decoded, is_text in _readable(bytes.fromhex("".join(_HEX_BYTE.findall(separated[0])))):
            yield DecodedRun(*separated.span(), decoded, is_text)


def _runs(text: str) -> Iterator[tuple[int, int]]:
    """Yield the positions of base64 runs: single runs, and blocks of runs broken into lines."""
    for pattern in (_RUN, _BLOCK):
        for run in pattern.finditer(text):
            yield run.span()


def _text_of(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _readable(data: bytes) -> Iterator[tuple[str, bool]]:
    """Yield the bytes as text if they contain readable text, and decompressed if they are compressed; and whether they are text."""
    if _READABLE.search(data):
        start = data[:SAMPLE]
        yield _text_of(data), len(start.translate(None, _PRINTABLE)) * 4 < len(start)
    elif data.count(0) * 3 > len(data) and _READABLE.search(letters := data.replace(b"\0", b"")):
        yield letters.decode("latin-1"), True  # UTF-16
    if data[:2] == b"\x1f\x8b" or (data[:1] == b"\x78" and not int.from_bytes(data[:2]) % 31):
        try:
            yield zlib.decompressobj(wbits=47).decompress(data, MAX_DECOMPRESSED).decode("utf-8", "replace"), True
        except zlib.error:
            return
