"""Drawn groups: what an environment may send to the trainer."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from pytest_hermes_env.strategies import scored_groups

drawn = settings(max_examples=50, deadline=None, database=None)
shrunk = settings(max_examples=2000, database=None, phases=[Phase.generate, Phase.shrink])

EMPTY = {
    "advantages": None,
    "ref_logprobs": None,
    "overrides": None,
    "images": None,
    "distill_token_ids": None,
    "distill_logprobs": None,
    "group_overrides": {},
}


@drawn
@given(scored_groups(group_size=3, min_tokens=2, max_tokens=5))
def test_columns_belong_together(group: dict[str, Any]) -> None:
    """Every row has as many masks and logprobs as tokens; a label is its token, and has a logprob of at most 0."""
    assert [len(group[name]) for name in ("tokens", "masks", "scores")] == [3, 3, 3]
    assert all(2 <= len(row) <= 5 for row in group["tokens"])
    assert all(0.0 <= score <= 1.0 for score in group["scores"])
    for tokens, masks in zip(group["tokens"], group["masks"], strict=True):
        assert all(mask in {-100, token} for token, mask in zip(tokens, masks, strict=True))
    for masks, logprobs in zip(group["masks"], group["inference_logprobs"] or (), strict=bool(group["inference_logprobs"])):
        assert all(logprob == 1.0 if mask == -100 else logprob <= 0.0 for mask, logprob in zip(masks, logprobs, strict=True))
    assert group["messages"] is None or len(group["messages"]) == 3


@drawn
@given(scored_groups())
def test_the_trainer_takes_them(group: dict[str, Any]) -> None:
    """Atropos' API reads every one, and a group has the columns that the layer's own groups have."""
    from atroposlib.api.server import ScoredData

    from environments.trainer.scoring import group_of

    item = {"tokens": [1], "masks": [1], "scores": 0.0}
    assert set(group) == set(group_of([item]))
    assert ScoredData(**group).tokens == group["tokens"]


@pytest.mark.parametrize("wanted", [True, False])
def test_optional_columns_are_there_or_not(wanted: bool) -> None:
    """As it was asked for."""

    @settings(max_examples=20, deadline=None, database=None)
    @given(scored_groups(logprobs=wanted, messages=wanted))
    def look(group: dict[str, Any]) -> None:
        assert [group[name] is not None for name in ("inference_logprobs", "messages")] == [wanted, wanted]

    look()


def test_scores_can_be_drawn_from_elsewhere() -> None:
    """One strategy gives every score."""
    found = find(scored_groups(scores=st.just(7.0)), lambda group: True, settings=shrunk)

    assert found["scores"] == [7.0, 7.0]


@pytest.mark.parametrize(
    ("strategy", "condition", "smallest"),
    [
        (
            scored_groups(),
            lambda group: True,
            {
                "tokens": [[0], [0]],
                "masks": [[-100], [-100]],
                "scores": [0.0, 0.0],
                "messages": None,
                "inference_logprobs": None,
            },
        ),
        (
            scored_groups(group_size=1, logprobs=True),
            lambda group: group["masks"][0] != [-100],
            {"tokens": [[0]], "masks": [[0]], "scores": [0.0], "messages": None, "inference_logprobs": [[0.0]]},
        ),
        (
            scored_groups(group_size=1, messages=True, logprobs=False, min_tokens=0),
            lambda group: True,
            {
                "tokens": [[]],
                "masks": [[]],
                "scores": [0.0],
                "messages": [[{"role": "user", "content": "…"}, {"role": "assistant", "content": ""}]],
                "inference_logprobs": None,
            },
        ),
    ],
)
def test_groups_shrink_to_the_plainest(
    strategy: st.SearchStrategy[Any], condition: Callable[[Any], bool], smallest: dict[str, Any]
) -> None:
    """One token, nothing trained, score 0.0, no optional column."""
    assert find(strategy, condition, settings=shrunk, random=random.Random(0)) == {**EMPTY, **smallest}
