"""Batches that can be trained on, and each way in which one cannot."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_hermes_env.atropos.batch import Row, check_batch, rows_of
from pytest_hermes_env.errors import BadBatch


def group(**changes: Any) -> dict[str, Any]:
    """Two sequences of four tokens, of which two are trained."""
    good = {
        "tokens": [[1, 2, 3, 4], [1, 2, 5, 6]],
        "masks": [[-100, -100, 3, 4], [-100, -100, 5, 6]],
        "scores": [1.0, 0.0],
        "inference_logprobs": [[1.0, 1.0, -0.5, -0.25], [1.0, 1.0, -2.0, 0.0]],
        "overrides": None,
    }
    return {**good, **changes}


def test_good_batch_gives_its_sequences():
    """Each row has its columns, and a place to name it by."""
    rows = check_batch([group()], batch_size=2, max_token_len=5)

    assert rows == (
        Row(
            place="group 0, sequence 0",
            tokens=(1, 2, 3, 4),
            masks=(-100, -100, 3, 4),
            score=1.0,
            logprobs=(1.0, 1.0, -0.5, -0.25),
            overrides={},
        ),
        Row(
            place="group 0, sequence 1",
            tokens=(1, 2, 5, 6),
            masks=(-100, -100, 5, 6),
            score=0.0,
            logprobs=(1.0, 1.0, -2.0, 0.0),
            overrides={},
        ),
    )
    assert [row.trained for row in rows] == [2, 2]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A change of the good group, and the sentence about it."""

    change: dict[str, Any]
    sentence: str


LOGPROBS = group()["inference_logprobs"]
FAULTS = [
    Fault(change={"scores": [1.0, float("nan")]}, sentence="group 0, sequence 1: its score is nan"),
    Fault(
        change={"tokens": [[1, 2, 3, 4], [1, 2, 5, 6, 7]], "masks": [[-100, -100, 3, 4], [-100, -100, 5, 6, -100]],
                "inference_logprobs": [LOGPROBS[0], [*LOGPROBS[1], 1.0]]},
        sentence="group 0, sequence 1: 5 tokens, but max_token_len is 5 and must be larger",
    ),
    Fault(change={"masks": [[-100, -100, 3], [-100, -100, 5, 6]]}, sentence="group 0, sequence 0: 4 tokens and 3 masks"),
    Fault(
        change={"masks": [[-100, -100, 4, 4], [-100, -100, 5, 6]]},
        sentence="group 0, sequence 0: the label at 2 is 4; expected -100 or the token id 3",
    ),
    Fault(change={"inference_logprobs": [LOGPROBS[0], LOGPROBS[1][:3]]},
          sentence="group 0, sequence 1: 4 tokens and 3 inference_logprobs"),
    Fault(
        change={"inference_logprobs": [LOGPROBS[0], [1.0, -0.5, -2.0, 0.0]]},
        sentence="group 0, sequence 1: the logprob at 1 is -0.5 although the position is not trained; expected 1.0",
    ),
    Fault(
        change={"inference_logprobs": [LOGPROBS[0], [1.0, 1.0, 1.0, 0.0]]},
        sentence="group 0, sequence 1: the logprob at 2 is 1.0 although the token is trained; expected at most 0",
    ),
    Fault(
        change={"overrides": [{"placeholder_tokens": True}, {}]},
        sentence="group 0, sequence 0: its tokens are chat mode's placeholders, not what was sampled: "
        "set server_type to vllm or sglang",
    ),
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.sentence)
def test_fault_is_named_with_its_place(fault):
    """One fault is one sentence: where, what was seen, what was expected."""
    with pytest.raises(BadBatch) as caught:
        check_batch([group(**fault.change)], batch_size=2, max_token_len=5)

    assert str(caught.value) == f"a batch cannot be trained on: 1 fault.\n  {fault.sentence}"


def test_all_faults_are_listed_up_to_ten():
    """Faults of the batch stand first; after ten lines only their number is told."""
    with pytest.raises(BadBatch) as caught:
        check_batch([group(inference_logprobs=None), *[group(masks=[[], []])] * 5], batch_size=4, max_token_len=0)

    lines = str(caught.value).splitlines()
    assert lines[:4] == [
        "a batch cannot be trained on: 13 faults.",
        "  the batch: 12 sequences, but the trainer registered for 4",
        "  group 0, sequence 0: it has no inference_logprobs",
        "  group 0, sequence 1: it has no inference_logprobs",
    ]
    assert (len(lines), lines[-1]) == (12, "  and 3 more")


@pytest.mark.parametrize("masks", [[-100] * 4, [1, -100, -100, -100]], ids=["no label", "the first token's only"])
def test_sequence_that_trains_nothing_is_refused(masks):
    """The trainer shifts labels by one, and crashes on a micro-batch without a label, which may be one sequence."""
    nothing = group(
        masks=[masks, [-100, -100, 5, 6]],
        inference_logprobs=[[1.0 if at == -100 else -1.0 for at in masks], [1.0, 1.0, -2.0, 0.0]],
    )

    with pytest.raises(BadBatch) as caught:
        check_batch([nothing], batch_size=2, max_token_len=0)
    assert str(caught.value) == (
        "a batch cannot be trained on: 1 fault.\n"
        "  group 0, sequence 0: it has no label after its first token: the trainer crashes on a micro-batch of such sequences"
    )


@pytest.mark.parametrize("place", ["overrides", "generation_params", "group_overrides"])
@pytest.mark.parametrize("temperature", [None, "hot", math.nan])
def test_temperature_that_is_no_number_is_refused(place, temperature):
    """The trainer divides by it; it reads the row's, then the group's."""
    value = {"temperature": temperature}

    with pytest.raises(BadBatch, match="sequence 0: its temperature is"):
        check_batch([group(**{place: [value, value] if place == "overrides" else value})], batch_size=2, max_token_len=0)


def test_negative_token_is_refused():
    """No embedding has one."""
    with pytest.raises(BadBatch, match="it has the token id -7"):
        check_batch([group(tokens=[[-7, 2, 3, 4], [1, 2, 5, 6]])], batch_size=2, max_token_len=0)


def test_empty_sequence_is_refused():
    """A sequence without tokens is a fault of its own."""
    empty = {"tokens": [[], []], "masks": [[], []], "inference_logprobs": [[], []]}

    with pytest.raises(BadBatch) as caught:
        check_batch([group(**empty), group()], batch_size=4, max_token_len=0)
    assert str(caught.value) == (
        "a batch cannot be trained on: 2 faults.\n  group 0, sequence 0: it has no tokens\n  group 0, sequence 1: it has no tokens"
    )


def test_placeholders_are_taken_where_they_are_allowed():
    """Chat mode's sequences have no logprobs, and need none."""
    chat = group(inference_logprobs=None, overrides=[{"placeholder_tokens": True}] * 2)

    rows = check_batch([chat], batch_size=2, max_token_len=5, allow_placeholders=True)
    assert [(row.has_placeholders, row.logprobs) for row in rows] == [(True, None)] * 2


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A batch that cannot be read, and why."""

    batch: Callable[[], list[Any]]
    message: str


SHAPES = [
    Shape(batch=lambda: ["x"], message="group 0: expected an object with tokens, masks and scores, seen 'x'"),
    Shape(
        batch=lambda: [group(), group(masks=[[-100, -100, 3, 4], [1.5]])],
        message="group 1: masks[1][0]: Input should be a valid integer, seen 1.5",
    ),
    Shape(
        batch=lambda: [group(inference_logprobs=[LOGPROBS[0], [None]])],
        message="group 0: inference_logprobs[1][0]: Input should be a valid number, seen None",
    ),
    Shape(
        batch=lambda: [group(scores=[1.0])],
        message="group 0: 2 sequences of tokens and 1 of scores; there must be one for each",
    ),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.message)
def test_batch_of_another_shape_is_refused(shape):
    """What is no batch is said so, with its place."""
    with pytest.raises(BadBatch) as caught:
        rows_of(shape.batch())

    assert str(caught.value) == shape.message
