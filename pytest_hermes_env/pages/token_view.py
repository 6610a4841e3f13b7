"""Shows the tokens of a scored rollout: the prompt, trained and masked tokens, and the logprob of each.

print(token_view(group, env.tokenizer))                          # in colour on a terminal
print(token_view(group, env.tokenizer, row=1, positions=True))   # token by token
Path("rollout.html").write_text(token_view(group, env.tokenizer).html)

``hermes-env view --tokens TOKENIZER`` writes the same page below the conversation. It has no script and loads nothing; every text is
escaped.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, TypeAlias

from hermes_env_shared.pages import page_template
from pytest_hermes_env.atomic_files import write_text
from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.layer import rollout_file

Kind: TypeAlias = Literal["prompt", "trained", "masked", "wrong label"]

IGNORED = -100
MORE_ROWS = "more_rows"
RESET = "\x1b[0m"
BUCKETS = (0.9, 0.5, 0.2, 0.02, 0.0)
"""The least probability of each colour, from sure to unsure."""
PLACE = re.compile(r"g(\d+)r(\d+)")
COLOURS: dict[Kind, str] = {"prompt": "\x1b[2m", "trained": "\x1b[32m", "masked": "\x1b[36m", "wrong label": "\x1b[41;97m"}
MEANINGS: dict[Kind, str] = {
    "prompt": "before the first trained token",
    "trained": "the label is the token",
    "masked": "the label is -100: tool results, and what the template writes",
    "wrong label": "the label is neither the token nor -100",
}


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
            body = _visible(span.text).split("\n")
            if self.has_positions:
                body = [f"{place:>7} {token:>7} {own:>9}  {text!r}" for place, token, own, text in span.rows()]
            # colour each line, so that a pager or a cut never leaves the terminal coloured
            lines += [f"{before}{line}{after}" if line else "" for line in body]
        return "\n".join(lines)

    @property
    def html(self) -> str:
        """The view as a page that needs no other file."""
        return _page(self, "Tokens of a rollout")

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
        places = range(len(rollout["tokens"]))
        rows = [{name: (rollout.get(name) or [None] * (place + 1))[place] for name in names} for place in places]
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


def page_of(file: Path, place: str) -> Path:
    """Return the file of the page of one rollout."""
    return file.with_name(f"{file.stem}.{place}.html")


def write_token_page(file: Path, place: str, tokenizer: Any) -> Path:
    """Write the page of the rollout at ``place``, such as g3r2, next to ``file``, and return its path.

    Raises: there is no such rollout, or it has no tokens → UsageError.
    """
    found = PLACE.fullmatch(place)
    if found is None:
        raise UsageError(f"--rollout: must be a line and a rollout, such as g3r2, not {place!r}")
    line, row = map(int, found.groups())
    group = next((group for group in rollout_file().read_groups(file) if group.line == line), None)
    if group is None or not 1 <= row <= len(group.rollouts):
        raise UsageError(f"{file} has no rollout {place}.\n  seen      {group.problem if group else 'no such line'}")
    with file.open(encoding="utf-8", errors="replace") as lines:
        columns = json.loads(next(text for number, text in enumerate(lines, start=1) if number == line))
    if not columns.get("tokens"):
        raise UsageError(f"{place} of {file} has no tokens.\n  expected  a file of groups, as process writes it in token mode")
    page = page_of(file, place)
    view = token_view(columns, tokenizer, row=row - 1)
    write_text(str(page), _page(view, f"{file.name}, {place}", group.rollouts[row - 1], file.with_suffix(".html").name))
    return page


def _page(view: TokenView, title: str, rollout: Any = None, overview: str = "") -> str:
    """Return a page of a view, below the conversation of its rollout, if there is one, with a link to its ``overview``."""
    template = page_template(Path(__file__).with_name("token_page.html.jinja"))
    buckets = _bucket_names()
    return template.render(title=title, rollout=rollout, overview=overview, view=view, buckets=buckets, bucket=_bucket)


def _bucket(logprob: str) -> int:
    """Return the colour of a logprob."""
    probability = math.exp(min(float(logprob), 0.0))
    return next(number for number, least in enumerate(BUCKETS) if probability >= least)


def _bucket_names() -> list[str]:
    return [f"probability {least:.0%} or more" for least in BUCKETS[:-1]] + [f"less than {BUCKETS[-2]:.0%}"]
