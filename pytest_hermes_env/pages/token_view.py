"""Shows the tokens of a scored rollout: the prompt, trained and masked tokens, and the logprob of each.

print(token_view(group, env.tokenizer))                          # in colour on a terminal
print(token_view(group, env.tokenizer, row=1, positions=True))   # token by token
Path("rollout.html").write_text(token_view(group, env.tokenizer).html)
"""

from __future__ import annotations

import html
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, TypeAlias

from pytest_hermes_env.errors import UsageError

Kind: TypeAlias = Literal["prompt", "trained", "masked", "wrong label"]

IGNORED = -100
MORE_ROWS = "more_rows"
RESET = "\x1b[0m"
COLOURS: dict[Kind, str] = {"prompt": "\x1b[2m", "trained": "\x1b[32m", "masked": "\x1b[36m", "wrong label": "\x1b[41;97m"}
MEANINGS: dict[Kind, str] = {
    "prompt": "before the first trained token",
    "trained": "the label is the token",
    "masked": "the label is -100: tool results, and what the template writes",
    "wrong label": "the label is neither the token nor -100",
}
STYLE = """\
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em; color: #1b1f24; background: #fff; }
pre { font: 13px/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
table { border-collapse: collapse; font: 13px/1.45 ui-monospace, monospace; }
td, th { padding: 0 .8em; text-align: right; } td:last-child, th:last-child { text-align: left; white-space: pre-wrap; }
.prompt { color: #6b7280; } .trained { background: #c6efce; } .masked { background: #dbeafe; }
.wrong-label { background: #b91c1c; color: #fff; }
@media (prefers-color-scheme: dark) {
  body { color: #e5e7eb; background: #111827; } .prompt { color: #9ca3af; } .trained { background: #14532d; }
  .masked { background: #1e3a8a; }
}"""


@dataclass(frozen=True, kw_only=True)
class Span:
    """Adjacent tokens of one kind. ``start`` is the position of the first, ``logprobs [n]`` are in nats, () without any."""

    kind: Kind
    start: int
    tokens: tuple[int, ...]
    texts: tuple[str, ...]
    text: str
    logprobs: tuple[float | None, ...] = ()

    def heading(self) -> str:
        """Return the kind, the position and, for trained tokens, the logprobs of the span."""
        end = self.start + len(self.tokens) - 1
        where = f"position {self.start}" if end == self.start else f"positions {self.start} to {end}"
        return f"{self.kind}, {where}{self._likelihood()}"

    def _likelihood(self) -> str:
        known = [own for own in self.logprobs if own is not None]
        if self.kind != "trained" or not known:
            return ""
        return f", logprob {sum(known) / len(known):.3f} on average, {min(known):.3f} at least"

    def rows(self) -> Iterator[tuple[int, int, str, str]]:
        """Yield position, id, logprob and text of each token."""
        for place, (token, text) in enumerate(zip(self.tokens, self.texts, strict=True)):
            own = self.logprobs[place] if self.logprobs and self.kind == "trained" else None
            yield self.start + place, token, "" if own is None else f"{own:.4f}", text


@dataclass(frozen=True, kw_only=True)
class TokenView:
    """The tokens of one sequence in spans. ``print`` shows it in a terminal; ``html`` is a page, which notebooks display.

    Output has colours on a terminal or with FORCE_COLOR, unless NO_COLOR is set.
    """

    spans: tuple[Span, ...]
    has_positions: bool = False

    def __str__(self) -> str:
        return self.text(has_colour=_has_colour())

    def summary(self) -> str:
        """Return how many tokens there are of each kind."""
        counts = {kind: sum(len(span.tokens) for span in self.spans if span.kind == kind) for kind in MEANINGS}
        counted = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        total = sum(counts.values())
        return f"{total} {'token' if total == 1 else 'tokens'}: {counted or 'none'}"

    def text(self, *, has_colour: bool) -> str:
        """Return the view as text, each span under its heading."""
        lines = [self.summary()]
        for span in self.spans:
            before, after = (COLOURS[span.kind], RESET) if has_colour else ("", "")
            lines += ["", f"--- {span.heading()}"]
            body = self._position_lines(span) if self.has_positions else _visible(span.text).split("\n")
            # colour each line, so that a pager or a cut never leaves the terminal coloured
            lines += [f"{before}{line}{after}" if line else "" for line in body]
        return "\n".join(lines)

    @staticmethod
    def _position_lines(span: Span) -> list[str]:
        return [f"{place:>7} {token:>7} {own:>9}  {text!r}" for place, token, own, text in span.rows()]

    @property
    def html(self) -> str:
        """The view as a page that needs no other file."""
        known = list(dict.fromkeys(span.kind for span in self.spans))
        legend = " ".join(f'<span class="{_class(kind)}" title="{MEANINGS[kind]}">{kind}</span>' for kind in known)
        body = self._table() if self.has_positions else f"<pre>{''.join(map(_html_span, self.spans))}</pre>"
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Tokens of a rollout</title>\n'
            f"<style>\n{STYLE}\n</style>\n</head>\n<body>\n<p>{self.summary()}. {legend}</p>\n{body}\n</body>\n</html>\n"
        )

    def _table(self) -> str:
        rows = [
            f'<tr class="{_class(span.kind)}"><td>{place}</td><td>{token}</td><td>{own}</td><td>{html.escape(repr(text))}</td></tr>'
            for span in self.spans
            for place, token, own, text in span.rows()
        ]
        head = "<tr><th>position</th><th>token</th><th>logprob</th><th>text</th></tr>"
        return "\n".join(["<table>", head, *rows, "</table>"])

    def _repr_html_(self) -> str:
        return self.html


def token_view(rollout: Mapping[str, Any], tokenizer: Any, *, row: int = 0, positions: bool = False) -> TokenView:
    """Return a view of one sequence of ``rollout``: a ScoredDataItem, or row ``row`` of a ScoredDataGroup.

    Requires ``tokens [T]`` and ``masks [T]``, shows ``inference_logprobs [T]`` if there are any. ``tokenizer`` has ``decode``, like
    those of transformers. ``positions`` lists every token with its id and logprob.

    Raises: no such row, or lists of different length → UsageError.
    """
    __tracebackhide__ = True
    tokens, masks, logprobs = _columns(rollout, row)
    kinds = _kinds(tokens, masks)
    spans = []
    for kind, places in groupby(range(len(tokens)), key=lambda place: kinds[place]):
        start, *_ = run = list(places)
        ids = tokens[start : start + len(run)]
        spans.append(
            Span(
                kind=kind,
                start=start,
                tokens=tuple(ids),
                texts=tuple(_decoded(tokenizer, [token]) for token in ids),
                text=_decoded(tokenizer, ids),
                logprobs=() if logprobs is None else tuple(logprobs[start : start + len(run)]),
            )
        )
    return TokenView(spans=tuple(spans), has_positions=positions)


def _columns(rollout: Mapping[str, Any], row: int) -> tuple[list[int], list[int], list[float | None] | None]:
    __tracebackhide__ = True
    names = ("tokens", "masks", "inference_logprobs")
    is_group = bool(rollout.get("tokens")) and isinstance(rollout["tokens"][0], Sequence)
    if is_group:
        rows = [
            {name: (rollout.get(name) or [None] * (place + 1))[place] for name in names} for place in range(_count(rollout))
        ]
    else:
        rows = [dict(rollout), *rollout.get(MORE_ROWS, ())]
    if not 0 <= row < len(rows):
        raise UsageError(f"token_view was asked for row {row}; the rollout has {len(rows)}, counted from 0")
    chosen = rows[row]
    tokens, masks = list(chosen.get("tokens") or ()), list(chosen.get("masks") or ())
    logprobs = chosen.get("inference_logprobs")
    lengths = {"tokens": len(tokens), "masks": len(masks)} | ({} if logprobs is None else {"inference_logprobs": len(logprobs)})
    if len(set(lengths.values())) != 1:
        counted = ", ".join(f"{count} {name}" for name, count in lengths.items())
        raise UsageError(
            f"token_view cannot tell which label belongs to which token: row {row} has {counted}.\n"
            "  expected  lists of one length, as a ScoredDataItem or ScoredDataGroup has\n"
            "  fix       pytest --hermes-env path/to/env.py --hermes-mode token -k HE5 shows where the lengths part"
        )
    return tokens, masks, None if logprobs is None else list(logprobs)


def _count(group: Mapping[str, Any]) -> int:
    return len(group["tokens"])


def _kinds(tokens: Sequence[int], masks: Sequence[int]) -> list[Kind]:
    labelled = next((place for place, mask in enumerate(masks) if mask != IGNORED), len(masks))
    return [
        ("prompt" if place < labelled else "masked") if mask == IGNORED else "trained" if mask == token else "wrong label"
        for place, (token, mask) in enumerate(zip(tokens, masks, strict=True))
    ]


def _decoded(tokenizer: Any, ids: Sequence[int]) -> str:
    return str(tokenizer.decode(list(ids), skip_special_tokens=False))


def _visible(text: str) -> str:
    """Return text without control characters, so that a model's output cannot move the cursor or change colours."""
    return "".join(one if one.isprintable() or one in "\n\t" else repr(one)[1:-1] for one in text)


def _has_colour() -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def _class(kind: Kind) -> str:
    return kind.replace(" ", "-")


def _html_span(span: Span) -> str:
    return f'<span class="{_class(span.kind)}" title="{html.escape(span.heading())}">{html.escape(span.text)}</span>'
