"""Checks a trainer's batch: its sequences, and whether they can be trained on.

Place in the flow: `pytest_hermes_env.atropos.trainer` pulls a batch from run-api and checks it here; nothing here does I/O.

Source: atroposlib 0.4.0, ``api/server.py`` (``ScoredData``): a batch is a list of groups, a group has one list per column;
``example_trainer/data.py`` and ``training.py``: what they raise on is a fault here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_hermes_env.errors import BadBatch, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

IGNORED = -100
"""The label of a position that is not trained."""

FILLER_LOGPROB = 1.0
"""The logprob of a position that was not sampled."""

LARGEST_LOGPROB = 1e-3
"""Nats. Larger numbers are not log probabilities; rounding may produce slightly more than 0."""

FAULTS_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class Row:
    """One sequence of a batch; ``place`` names it in messages.

    Shapes: ``tokens [T]``, ``masks [T]`` (-100 or the token id), ``logprobs [T]`` in nats or None when the group has none.
    ``temperature`` is what the trainer reads: of the row's overrides, else of the group, else 1.0.
    """

    place: str
    tokens: tuple[int, ...]
    masks: tuple[int, ...]
    score: float
    logprobs: tuple[float, ...] | None
    overrides: Mapping[str, object]
    temperature: object = 1.0

    @property
    def has_placeholders(self) -> bool:
        """Whether the tokens are the encoded text of a chat server, not what was sampled."""
        return self.overrides.get("placeholder_tokens") is True

    @property
    def trained(self) -> int:
        """The number of trained positions."""
        return sum(label != IGNORED for label in self.masks)


def rows_of(batch: Sequence[object]) -> tuple[Row, ...]:
    """Return the sequences of all groups.

    Raises: a column that is missing, has the wrong type, or differs from the tokens in length → BadBatch.
    """
    return tuple(row for number, group in enumerate(batch) for row in _rows_of_group(number, group))


def check_batch(
    batch: Sequence[object], *, batch_size: int, max_token_len: int, allow_placeholders: bool = False
) -> tuple[Row, ...]:
    """Return the sequences of a batch that can be trained on.

    ``allow_placeholders`` accepts chat mode's tokens, which test the data flow and are not for training.
    Raises: any fault → BadBatch, which lists them.
    """
    rows = rows_of(batch)
    faults = list(faults_of(rows, batch_size=batch_size, max_token_len=max_token_len, allow_placeholders=allow_placeholders))
    if faults:
        shown = [f"  {fault}" for fault in faults[:FAULTS_SHOWN]]
        more = [f"  and {len(faults) - FAULTS_SHOWN} more"] if len(faults) > FAULTS_SHOWN else []
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        raise BadBatch("\n".join([f"a batch cannot be trained on: {count}.", *shown, *more]))
    return rows


def faults_of(rows: Sequence[Row], *, batch_size: int, max_token_len: int, allow_placeholders: bool = False) -> Iterator[str]:
    """Yield each fault of a batch as a sentence that begins with its place."""
    if len(rows) != batch_size:
        yield f"the batch: {len(rows)} sequences, but the trainer registered for {batch_size}"
    for row in rows:
        for fault in _faults_of_row(row, max_token_len, allow_placeholders=allow_placeholders):
            yield f"{row.place}: {fault}"


def _faults_of_row(row: Row, max_token_len: int, *, allow_placeholders: bool) -> Iterator[str]:
    count = len(row.tokens)
    if not math.isfinite(row.score):
        yield f"its score is {row.score}"
    if count == 0:
        yield "it has no tokens"
    if 0 < max_token_len <= count:
        yield f"{count} tokens, but max_token_len is {max_token_len} and must be larger"
    if len(row.masks) != count:
        yield f"{count} tokens and {len(row.masks)} masks"
    pairs = enumerate(zip(row.tokens, row.masks, strict=False))
    strange = next(((at, token, label) for at, (token, label) in pairs if label not in {IGNORED, token}), None)
    if strange is not None:
        at, token, label = strange
        yield f"the label at {at} is {label}; expected {IGNORED} or the token id {token}"
    if 0 < count == len(row.masks) and not any(label != IGNORED for label in row.masks[1:]):
        yield "it has no label after its first token: the trainer crashes on a micro-batch of such sequences"
    negative = next((token for token in row.tokens if token < 0), None)
    if negative is not None:
        yield f"it has the token id {negative}; expected ids from 0"
    if not _is_temperature(row.temperature):
        yield f"its temperature is {shorten(repr(row.temperature))}; expected a finite number"
    if row.has_placeholders and not allow_placeholders:
        yield "its tokens are chat mode's placeholders, not what was sampled: set server_type to vllm or sglang"
    elif not row.has_placeholders:
        yield from _faults_of_logprobs(row)


def _is_temperature(value: object) -> bool:
    """Return whether the trainer can compute with a temperature; it takes 0 for 1."""
    return isinstance(value, (int, float)) and math.isfinite(value)


def _faults_of_logprobs(row: Row) -> Iterator[str]:
    if row.logprobs is None:
        yield "it has no inference_logprobs"
        return
    if len(row.logprobs) != len(row.tokens):
        yield f"{len(row.tokens)} tokens and {len(row.logprobs)} inference_logprobs"
    for at, (label, logprob) in enumerate(zip(row.masks, row.logprobs, strict=False)):
        if label == IGNORED and logprob != FILLER_LOGPROB:
            yield f"the logprob at {at} is {logprob} although the position is not trained; expected {FILLER_LOGPROB}"
            return
        if label != IGNORED and not -math.inf < logprob <= LARGEST_LOGPROB:
            yield f"the logprob at {at} is {logprob} although the token is trained; expected at most 0"
            return


class _Group(BaseModel):
    """A group of a batch; all lists have one element for each sequence."""

    model_config = ConfigDict(strict=True)

    tokens: list[list[int]]
    masks: list[list[int]]
    scores: list[float]
    inference_logprobs: list[list[float]] | None = None
    overrides: list[dict[str, object]] | None = None
    generation_params: dict[str, object] | None = None
    group_overrides: dict[str, object] | None = None

    def temperature_of(self, overrides: Mapping[str, object]) -> object:
        """Return the temperature of a row, read as the example trainer reads it."""
        places = (overrides, self.generation_params or {}, self.group_overrides or {})
        return next((place["temperature"] for place in places if "temperature" in place), 1.0)


def _rows_of_group(number: int, content: object) -> Iterator[Row]:
    place = f"group {number}"
    if not isinstance(content, Mapping):
        raise BadBatch(f"{place}: expected an object with tokens, masks and scores, seen {shorten(repr(content))}")
    try:
        group = _Group.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = str(first["loc"][0]) + "".join(f"[{index}]" for index in first["loc"][1:])
        raise BadBatch(f"{place}: {where}: {first['msg']}, seen {shorten(repr(first['input']))}") from None
    count = len(group.tokens)
    columns = {name: getattr(group, name) or [None] * count for name in ("inference_logprobs", "overrides")}
    columns |= {"masks": group.masks, "scores": group.scores}
    for name, column in columns.items():
        if len(column) != count:
            raise BadBatch(f"{place}: {count} sequences of tokens and {len(column)} of {name}; there must be one for each")
    for index, tokens in enumerate(group.tokens):
        logprobs = columns["inference_logprobs"][index]
        overrides = columns["overrides"][index] or {}
        yield Row(
            place=f"{place}, sequence {index}",
            tokens=tuple(tokens),
            masks=tuple(group.masks[index]),
            score=group.scores[index],
            logprobs=None if logprobs is None else tuple(logprobs),
            overrides=overrides,
            temperature=group.temperature_of(overrides),
        )
