"""Finds secrets in texts: known values in every encoding, shapes of keys, and both inside base64, hex, URLs and gzip."""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, quote_plus, unquote

from pytest_hermes_env.cassette.key_shapes import MIN_KNOWN, SHAPES, Shape

__all__ = ["PLACEHOLDER", "Search", "Span"]

PLACEHOLDER = re.compile(r"\[redacted:[^\[\]:]{1,80}:\d+\]")
MAX_DECOMPRESSED = 16_000_000
MAX_DEPTH = 3
MAX_ESCAPES = 5
_RUN = re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}")
_FULL_LINE = 40
_LINE_BREAK = 2
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){10,}")
_CODE = re.compile(r"%[0-9A-Fa-f]{2}")
_READABLE = re.compile(rb"[\t\r\n\x20-\x7e]{8}")
_PERCENT = re.compile(r"[^\s\"'<>]*%[0-9A-Fa-f]{2}[^\s\"'<>]*")
_WORD = re.compile(r"[A-Za-z0-9+/=_-]*")


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The position of a secret in a text, and its ``value``, which is equal for all its encodings."""

    start: int
    end: int
    kind: str
    value: str


class Search:
    """Finds secrets in texts. ``known``: secret values by name."""

    def __init__(self, known: Mapping[str, str], shapes: Sequence[Shape] = ()) -> None:
        self._shapes = (*shapes, *SHAPES)
        self._known = {value: name for name, value in known.items() if len(value) >= MIN_KNOWN}
        forms = [(form, value, is_run) for value in self._known for form, is_run in _forms(value)]
        self._forms = sorted(forms, key=lambda form: -len(form[0]))

    def spans(self, text: str, depth: int = 0) -> list[Span]:
        """Return the secrets in ``text``, from left to right, without overlaps."""
        found = [*self._known_spans(text), *self._shape_spans(text)]
        if depth < MAX_DEPTH:
            found.extend(self._encoded_spans(text, depth))
        return _merged(found, text)

    def _known_spans(self, text: str) -> Iterator[Span]:
        for form, value, is_run in self._forms:
            at = text.find(form)
            while at >= 0:
                start, end = at, at + len(form)
                if is_run:  # the characters around it encode bits of the secret too
                    start, end = _run_around(text, start, end)
                yield Span(start, end, self._known[value], value)
                at = text.find(form, end)

    def _shape_spans(self, text: str) -> Iterator[Span]:
        for shape in self._shapes:
            for start, end in shape.spans(text):
                yield Span(start, end, shape.kind, text[start:end])

    def _encoded_spans(self, text: str, depth: int) -> Iterator[Span]:
        for start, end, decoded in _decoded(text):
            inner = self.spans(decoded, depth + 1)
            if inner:
                yield Span(start, end, inner[0].kind, inner[0].value)


def _forms(value: str) -> set[tuple[str, bool]]:
    """Return the encodings of a secret, each with whether it is the middle of a base64 run."""
    data = value.encode("utf-8", "surrogatepass")
    plain = {
        value,
        quote(value, safe="", errors="surrogatepass"),
        quote_plus(value, errors="surrogatepass"),
        *_escaped(value, ensure_ascii=True),
        *_escaped(value, ensure_ascii=False),
        html.escape(value),
        data.hex(),
        data.hex().upper(),
    }
    middles = set()
    for offset in range(3):
        # drop the characters that also encode neighbouring bytes
        coded = base64.b64encode(b"\0" * offset + data).decode()
        middle = coded[(0, 2, 3)[offset] :].rstrip("=")
        middle = middle[: len(middle) - (1 if (offset + len(data)) % 3 else 0)]
        if len(middle) >= MIN_KNOWN:
            middles |= {middle, middle.replace("+", "-").replace("/", "_")}
    return {(form, False) for form in plain} | {(form, True) for form in middles}


def _escaped(value: str, *, ensure_ascii: bool) -> Iterator[str]:
    """Yield the text escaped as in JSON, as in JSON within JSON, and so on."""
    for _ in range(MAX_ESCAPES):
        value = json.dumps(value, ensure_ascii=ensure_ascii)[1:-1]
        yield value


def _run_around(text: str, start: int, end: int) -> tuple[int, int]:
    before = _WORD.match(text[:start][::-1])
    after = _WORD.match(text, end)
    return start - (before.end() if before else 0), after.end() if after else end


def _decoded(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the decoded text of each run of base64, hex digits and percent encoding, with its position."""
    for start, end in _runs(text):
        run = text[start:end]
        compact = "".join(run.split()).rstrip("=").replace("-", "+").replace("_", "/")
        for offset in range(4):
            piece = compact[offset:]
            piece = piece[: len(piece) - 1] if len(piece) % 4 == 1 else piece
            for decoded in _readable(binascii.a2b_base64(piece + "=" * (-len(piece) % 4))):
                yield start, end, decoded
        for digits in _HEX.finditer(run):
            for decoded in _readable(bytes.fromhex(digits[0])):
                yield start + digits.start(), start + digits.end(), decoded
    if _CODE.search(text):
        for word in _PERCENT.finditer(text):
            yield word.start(), word.end(), unquote(word[0], errors="replace")


def _runs(text: str) -> Iterator[tuple[int, int]]:
    """Yield the positions of base64 runs: single runs, and blocks of runs broken into lines."""
    block: tuple[int, int] | None = None
    lines = 0
    for run in _RUN.finditer(text):
        yield run.span()
        if block and run.start() - block[1] <= _LINE_BREAK and text[block[1] : run.start()].isspace():
            block, lines = (block[0], run.end()), lines + 1
        else:
            if block and lines:
                yield block
            block, lines = run.span(), 0
        if run.end() - run.start() < _FULL_LINE:
            if lines:
                yield block
            block = None
    if block and lines:
        yield block


def _readable(data: bytes) -> Iterator[str]:
    """Yield the bytes as text if they contain readable text, and decompressed if they are compressed."""
    if _READABLE.search(data):
        yield data.decode("latin-1")
    if data[:2] == b"\x1f\x8b" or (data[:1] == b"\x78" and not int.from_bytes(data[:2]) % 31):
        try:
            yield zlib.decompressobj(wbits=47).decompress(data, MAX_DECOMPRESSED).decode("utf-8", "replace")
        except zlib.error:
            return


def _merged(found: list[Span], text: str) -> list[Span]:
    """Return the spans with overlapping ones merged, named after the first. Placeholders are not secrets."""
    if not found:
        return []
    marks = [mark.span() for mark in PLACEHOLDER.finditer(text)]
    merged: list[Span] = []
    for span in sorted(found, key=lambda span: (span.start, -span.end)):
        if any(start <= span.start and span.end <= end for start, end in marks):
            continue
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = Span(last.start, max(last.end, span.end), last.kind, last.value)
        else:
            merged.append(span)
    return merged
