"""From rollouts and rewards to what the trainer gets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.scoring import as_reward, chat_item, did_work, group_of, transcript


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
    assert chat_item(Letters(), messages, 0.5) == {
        "tokens": tokens,
        "masks": masks,
        "scores": 0.5,
        "messages": messages,
        "overrides": {"placeholder_tokens": True},
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


def test_columns_that_nobody_has_are_none():
    """An optional column is absent as a whole."""
    group = group_of([item(), item()])

    assert {name for name, value in group.items() if value is None} == {
        "messages",
        "inference_logprobs",
        "advantages",
        "ref_logprobs",
        "overrides",
        "images",
        "distill_token_ids",
        "distill_logprobs",
    }


def test_column_that_only_some_have_is_an_error():
    """Entries could not be told apart afterwards."""
    with pytest.raises(ValueError, match="1 of 2 items of the group have no 'inference_logprobs'; all must have it, or none"):
        group_of([item(inference_logprobs=[1.0, -0.5]), item()])


def test_overrides_that_only_some_have_are_empty_for_the_others():
    """Overrides are by item: none is an empty one."""
    assert group_of([item(overrides={"a": 1}), item()])["overrides"] == [{"a": 1}, {}]


def test_key_without_a_place_is_left_out_with_a_warning(caplog):
    """Old environments put what they like into an item; that it does not reach the trainer is said."""
    group = group_of([item(reward_parts={"a": 1})])

    assert "reward_parts" not in group
    assert "A group has no place for ['reward_parts']" in caplog.text


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**9), 10**9))
def test_finite_number_is_a_reward(number):
    """Every finite number, as a float."""
    assert as_reward(number) == float(number)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "must return a number, got NoneType 'None'"),
        (True, "must return a number, got bool 'True'"),
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
