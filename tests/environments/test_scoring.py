"""From rollouts and rewards to what the trainer gets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.trainer.groups import layers_of, too_long
from environments.trainer.scoring import (
    as_reward,
    chat_item,
    did_work,
    group_of,
    token_item,
    transcript,
)


class Letters:
    """A tokenizer of one token per character."""

    def encode(self, text: str) -> list[int]:
        return [ord(letter) for letter in text]


USER, SYSTEM = {"role": "user", "content": "hi"}, {"role": "system", "content": "be good"}


def said(text: str | None) -> dict:
    return {"role": "assistant", "content": text}


@pytest.mark.parametrize(
    ("messages", "worked"),
    [
        ([], False),
        ([USER], False),
        ([SYSTEM, USER], False),
        ([USER, USER], False),
        ([USER, said("")], True),
        ([SYSTEM, USER, said(None)], True),
    ],
)
def test_work_is_anything_that_the_model_said(messages, worked):
    """More came back than system and user messages, be it empty."""
    assert did_work(messages) is worked


@pytest.mark.parametrize(
    ("messages", "tokens", "masks"),
    [
        ([], [], []),
        ([{"role": "user", "content": ""}], [], []),
        ([{"role": "user", "content": ""}, said("")], [], []),
        ([{"role": "user", "content": ""}, said("a")], [97], [-100]),
        ([{"role": "user", "content": "a"}, said("b")], [97, 10, 98], [-100, 10, 98]),
        ([{"role": "user", "content": "ab"}], [97, 98], [-100, -100]),
        ([{"role": "user", "content": None}, said(None)], [], []),
    ],
)
def test_item_of_chat_mode(messages, tokens, masks):
    """The whole conversation, its first label masked; all masked when the model said nothing; also for an empty text."""
    nothing = {} if did_work(messages) else {"set_advantage_to_zero": True}
    assert chat_item(Letters(), messages, 0.5) == {
        "tokens": tokens,
        "masks": masks,
        "scores": 0.5,
        "messages": messages,
        "overrides": {"placeholder_tokens": True, **nothing},
    }


@given(st.lists(st.tuples(st.sampled_from(["system", "user", "assistant", "tool"]), st.text(max_size=5) | st.none())))
def test_masks_are_as_long_as_tokens(conversation):
    """Every label is its token or -100, for every conversation."""
    item = chat_item(Letters(), [{"role": role, "content": text} for role, text in conversation], 1.0)

    assert len(item["masks"]) == len(item["tokens"])
    assert all(mask in {-100, token} for mask, token in zip(item["masks"], item["tokens"], strict=True))


def test_transcript_holds_texts_and_calls():
    """Content parts, tool calls with their arguments, tool results."""
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"at": "ü"}'}}

    text = transcript(
        [
            {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {}}]},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "sky"},
        ]
    )

    assert text == 'see\n\n{"name": "look", "arguments": "{\\"at\\": \\"ü\\"}"}\nsky'


def item(**more: object) -> dict:
    return {"tokens": [1, 2], "masks": [-100, 2], "scores": 1.0, **more}


def test_group_carries_every_column_that_the_trainer_knows():
    """Logprobs, messages, advantages and the rest: nothing that all items have is lost."""
    full = item(
        messages=[USER],
        inference_logprobs=[1.0, -0.5],
        advantages=[0.0, 1.0],
        ref_logprobs=[0.0, -1.0],
        overrides={"a": 1},
        images=["i"],
        distill_token_ids=[[1]],
        distill_logprobs=[[0.5]],
    )

    group = group_of([{**full, "group_overrides": {"x": 1}}, {**full, "group_overrides": {"y": 2}}])

    assert group == {**{name: [value, value] for name, value in full.items()}, "group_overrides": {"x": 1, "y": 2}}


def test_column_that_only_some_have_is_an_error():
    """Entries could not be distinguished afterwards."""
    with pytest.raises(ValueError, match="1 of 2 items of the group have no 'inference_logprobs'; all must have it, or none"):
        group_of([item(inference_logprobs=[1.0, -0.5]), item()])


def test_overrides_that_only_some_have_are_empty_for_the_others():
    """Overrides are by item: none is an empty one."""
    assert group_of([item(overrides={"a": 1}), item()])["overrides"] == [{"a": 1}, {}]


def test_key_without_a_place_is_left_out_with_a_warning(caplog):
    """Old environments put what they like into an item; that it does not reach the trainer is said."""
    group = group_of([item(reward_parts={"a": 1})])

    assert "reward_parts" not in group
    assert "A group cannot hold ['reward_parts']" in caplog.text


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**9), 10**9))
def test_finite_number_is_a_reward(number):
    """Every finite number, as a float."""
    assert as_reward(number) == float(number)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "must return a number, got NoneType 'None'"),
        ("1", "must return a number, got str '1'"),
        (float("nan"), "must return a finite number, got nan"),
        (float("-inf"), "must return a finite number, got -inf"),
        (10**400, "must return one number, got int"),
    ],
)
def test_what_is_no_reward_is_an_error_that_shows_it(value, words):
    """The message says what came back."""
    with pytest.raises(ValueError, match=words):
        as_reward(value)


@pytest.mark.parametrize("value", [True, False, np.bool_(True), np.False_])
def test_a_bool_is_a_number_with_one_warning_for_each_source(value, caplog):
    """The trainer gets 1.0 or 0.0, never a lost rollout; the author hears of it once, not in every rollout."""
    source = f"compute_reward of {value!r} {type(value)}"

    assert [as_reward(value, source) for _ in range(3)] == [float(value)] * 3
    assert [record.getMessage() for record in caplog.records] == [
        f"{source} returned a bool, which is taken as 1.0 or 0.0: return a number (logged once)"
    ]


# ---------------------------------------------------------------------- token mode


def node(*labels: int) -> Any:
    """A node of a managed server: a prompt of two tokens, then what was sampled."""
    logprobs = [-0.5 * number for number in range(len(labels))]
    return SimpleNamespace(
        tokens=[1, 2, *labels], masked_tokens=[-100, -100, *labels], logprobs=[1.0, 1.0, *logprobs], full_text="not looked at"
    )


TALK = [USER, said("done")]


def test_item_of_token_mode_is_what_was_sampled():
    """Tokens, labels and logprobs of the node, as they are."""
    assert token_item([node(7, 8)], TALK, 0.5, rollout_id="r") == {
        "tokens": [1, 2, 7, 8],
        "masks": [-100, -100, 7, 8],
        "inference_logprobs": [1.0, 1.0, 0.0, -0.5],
        "scores": 0.5,
        "messages": TALK,
    }


def test_further_sequences_of_a_rollout_are_kept():
    """All share the reward and say which rollout they are of."""
    item = token_item([node(7), node(8), node(9)], TALK, 0.5, rollout_id="r")

    rows = [item, *item["more_rows"]]
    assert [(row["tokens"], row["masks"], row["scores"], row["overrides"]) for row in rows] == [
        ([1, 2, label], [-100, -100, label], 0.5, {"rollout_id": "r", "sequence": number, "sequences": 3})
        for number, label in enumerate((7, 8, 9))
    ]


def test_rejected_rollout_trains_nothing_and_keeps_its_score():
    """It still counts in the mean of its group."""
    assert token_item([node(7), node(8)], TALK, 0.5, rollout_id="r", split_rollouts="reject") == {
        "tokens": [1, 2, 7],
        "masks": [-100, -100, -100],
        "inference_logprobs": [1.0, 1.0, 1.0],
        "scores": 0.5,
        "messages": TALK,
        "overrides": {"rollout_id": "r", "sequence": 0, "sequences": 2, "rejected": "split", "set_advantage_to_zero": True},
    }


@pytest.mark.parametrize(("nodes", "tokens"), [([], [4, 5]), ([node(7)], [1, 2, 7])], ids=["nothing sampled", "reply was lost"])
def test_rollout_in_which_the_model_said_nothing_trains_nothing(nodes, tokens):
    """The prompt stands for it, all masked; also when something was sampled and never became a message."""
    assert token_item(nodes, [USER], 0.0, rollout_id="r", prompt_tokens=[4, 5]) == {
        "tokens": tokens,
        "masks": [-100] * len(tokens),
        "inference_logprobs": [1.0] * len(tokens),
        "scores": 0.0,
        "messages": [USER],
        "overrides": {"set_advantage_to_zero": True},
    }


def test_replies_without_tokens_are_an_error():
    """A double, or a server that forgets, would train on nothing unseen."""
    with pytest.raises(ValueError, match=r"^Rollout r has replies of the model, but its server has no tokens of them$"):
        token_item([], TALK, 1.0, rollout_id="r")


def test_columns_of_different_lengths_are_an_error():
    """The trainer would assign labels to the wrong tokens."""
    broken = SimpleNamespace(tokens=[1, 2], masked_tokens=[-100], logprobs=[1.0, -0.5])

    with pytest.raises(ValueError, match="different lengths") as error:
        token_item([broken], TALK, 1.0, rollout_id="r")

    assert str(error.value) == (
        "The columns of a sequence of rollout r have different lengths: {'tokens': 2, 'masks': 1, 'inference_logprobs': 2}"
    )


def split_group() -> dict[str, Any]:
    """Three rollouts: one sequence, three, one that nothing trains in."""
    return group_of(
        [
            token_item([node(5)], TALK, 0.0, rollout_id="a"),
            token_item([node(6), node(7, 7), node(8)], TALK, 1.0, rollout_id="b"),
            token_item([], [USER], 0.5, rollout_id="c", prompt_tokens=[1, 2]),
        ]
    )


def test_group_has_a_row_for_each_sequence():
    """The number of rows is said as atroposlib wants to know it."""
    group = split_group()

    assert group["tokens"] == [[1, 2, 5], [1, 2, 6], [1, 2, 7, 7], [1, 2, 8], [1, 2]]
    assert group["scores"] == [0.0, 1.0, 1.0, 1.0, 0.5]
    assert [override.get("rollout_id") for override in group["overrides"]] == [None, "b", "b", "b", None]
    assert group["group_overrides"] == {"group_size": 5}


def test_group_without_split_rollouts_is_sent_as_it_is():
    """Also one of an environment that groups by itself, without overrides."""
    group = {"tokens": [[1], [2]], "masks": [[1], [2]], "scores": [0.0, 1.0]}

    assert layers_of(group, 4) == [group]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_every_sequence_is_sent_once_and_every_group_has_all_scores(counts):
    """However many sequences the rollouts of a group have."""
    labels = iter(range(10, 100))
    items = [
        token_item([node(next(labels)) for _ in range(count)], TALK, float(number), rollout_id=f"r{number}")
        for number, count in enumerate(counts)
    ]

    layers = layers_of(group_of(items), len(counts))

    sent = [label for layer in layers for masks in layer["masks"] for label in masks if label != -100]
    assert sorted(sent) == list(range(10, 10 + sum(counts)))
    assert [layer["scores"] for layer in layers] == [[float(number) for number in range(len(counts))]] * max(counts)
    assert {len(layer[name]) for layer in layers for name in ("tokens", "masks", "inference_logprobs", "messages")} == {
        len(counts)
    }


@pytest.mark.parametrize(("limit", "lengths"), [(-1, []), (0, []), (3, [3, 4]), (4, [4]), (5, [])])
def test_sequences_at_the_trainers_limit_are_too_long(limit, lengths):
    """atroposlib drops a group with a sequence that is not shorter; no limit is none."""
    assert too_long({"tokens": [[1], [1, 2, 3], [1, 2, 3, 4]]}, limit) == lengths
