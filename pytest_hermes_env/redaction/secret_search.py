"""Finds secrets in texts: known values in every encoding, shapes of keys, and both in what a text says once it is decoded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_hermes_env.redaction.encodings import decoded_runs, forms_of, run_around, unescaped
from pytest_hermes_env.redaction.key_shapes import KEY_PREFIXES, SHAPES, PrefixedKey, Shape
from pytest_hermes_env.redaction.secret_names import MIN_KNOWN

BEGINNING = "[redacted:"
PLACEHOLDER = re.compile(r"\[redacted:[^\[\]:]{1,80}:\d+\]")
MAX_DEPTH = 3
MAX_DECODED = 40
"""How many times the length of a text, or of 100,000 characters if that is more, is decoded at most. What is left is replaced as `UNDECODED`."""
UNDECODED = "undecoded"
_CUT = re.compile(r"([A-Za-z0-9_+/=-]{8,200})(?:\.\.\.|…)([A-Za-z0-9_+/=-]{8,200})")
MIN_PART = 16
"""Characters at the beginning or end of a known secret that give it away: messages are cut."""


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The position of a secret in a text, and its ``value``, which is equal for all its encodings."""

    start: int
    end: int
    kind: str
    value: str


@dataclass(frozen=True, slots=True)
class _Form:
    """One encoding of a known secret, in lower case; ``is_run``: it is the middle of a base64 run."""

    text: str
    value: str
    is_run: bool

    def places(self, folded: str) -> Iterator[tuple[int, int]]:
        """Yield where the form stands, also where a message cut its end or its beginning off."""
        form = self.text
        is_cut = len(form) > MIN_PART + MIN_KNOWN and not any(map(str.isspace, form))
        head = form[:MIN_PART] if is_cut else form
        at = folded.find(head)
        while at >= 0:
            end = at + _common(folded[at : at + len(form)], form)
            yield at, end
            at = folded.find(head, end)
        tail = form[-MIN_PART:]
        at = folded.find(tail) if is_cut else -1
        while at >= 0:
            before = folded[max(at + MIN_PART - len(form), 0) : at + MIN_PART][::-1]
            yield at + MIN_PART - _common(before, form[::-1]), at + MIN_PART
            at = folded.find(tail, at + MIN_PART)


class Search:
    """Finds secrets in texts. ``known``: secret values by name."""

    def __init__(self, known: Mapping[str, str], shapes: Sequence[Shape | PrefixedKey] = SHAPES) -> None:
        self._shapes = tuple(shapes)
        self._known = {value: name for name, value in known.items() if len(value) >= MIN_KNOWN}
        forms = {(_folded(form), is_run): value for value in self._known for form, is_run in forms_of(value)}
        self._forms = [
            _Form(form, value, is_run) for (form, is_run), value in sorted(forms.items(), key=lambda item: -len(item[0][0]))
        ]

    def spans(self, text: str) -> list[Span]:
        """Return the secrets in ``text``, from left to right, without overlaps."""
        return self._spans(text, 0, [MAX_DECODED * max(len(text), 100_000)])

    def _spans(self, text: str, depth: int, budget: list[int]) -> list[Span]:
        found = [*self._known_spans(text), *self._shape_spans(text), *_cut_spans(text, self._forms, self._known)]
        if depth < MAX_DEPTH:
            found.extend(self._encoded_spans(text, depth, budget))
        return _merged(found, text)

    def _known_spans(self, text: str) -> Iterator[Span]:
        folded = _folded(text) if self._forms else ""
        for form in self._forms:
            for start, end in form.places(folded):
                if form.is_run:  # the characters around it encode bits of the secret too
                    start, end = run_around(text, start, end)  # noqa: PLW2901
                yield Span(start, end, self._known[form.value], form.value)

    def _shape_spans(self, text: str) -> Iterator[Span]:
        for shape in self._shapes:
            for start, end in shape.spans(text):
                yield Span(start, end, shape.kind, text[start:end])

    def _encoded_spans(self, text: str, depth: int, budget: list[int]) -> Iterator[Span]:
        view = unescaped(text)
        if view is not None:
            for span in self._spans(view.text, depth + 1, budget):
                yield Span(*view.original(span.start, span.end), span.kind, span.value)
        for run in decoded_runs(text):
            budget[0] -= len(run.text)
            if budget[0] < 0 or run.is_cut:
                yield Span(run.start, run.end, UNDECODED, text[run.start : run.end])
                continue
            inner = self._spans(run.text, depth + 1 if run.is_text else MAX_DEPTH, budget)
            if inner:
                yield Span(run.start, run.end, inner[0].kind, inner[0].value)


def _cut_spans(text: str, forms: Sequence[_Form], known: Mapping[str, str]) -> Iterator[Span]:
    """Yield keys whose middle was cut out, as in pytest's ``'sk-proj-Tq4W...1jH6gF3dS7aP5'``."""
    if "..." not in text and "…" not in text:
        return
    for cut in _CUT.finditer(text):
        start, end = cut.group(1, 2)
        folded = _folded(start), _folded(end)
        for form in forms:
            if form.text.find(folded[0][-MIN_KNOWN:]) >= 0 or form.text.find(folded[1][:MIN_KNOWN]) >= 0:
                yield Span(*cut.span(), known[form.value], form.value)
        for key in KEY_PREFIXES:
            if key.prefix in start and any(map(str.isdigit, start.rpartition(key.prefix)[2] + end)):
                yield Span(*cut.span(), key.kind, cut[0])


def _common(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    return next((number for number, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _folded(text: str) -> str:
    """Return a text in lower case, of the same length."""
    folded = text.lower()
    return folded if len(folded) == len(text) else "".join(one if len(one.lower()) > 1 else one.lower() for one in text)


def _merged(found: list[Span], text: str) -> list[Span]:
    """Return the spans with overlapping ones merged, named after the first. Placeholders are not secrets."""
    if not found:
        return []
    marks = [(mark.start(), mark.start() + len(BEGINNING), mark.end()) for mark in PLACEHOLDER.finditer(text)]
    merged: list[Span] = []
    for span in sorted(found, key=lambda span: (span.start, -span.end)):
        if any(start <= span.start < kind and span.end <= end for start, kind, end in marks):
            continue  # what a placeholder names is searched, too: a model may write one around a key
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = Span(last.start, max(last.end, span.end), last.kind, last.value)
        else:
            merged.append(span)
    return merged
