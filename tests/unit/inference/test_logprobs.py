"""Logprobs without a model."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from pytest_hermes_env.inference.generate import alternatives, logprob, seed_of

SEEDS = st.integers(0, 2**64 - 1)
PLACES = st.integers(0, 200_000)


@given(seed=SEEDS, place=PLACES, token=PLACES)
def test_a_logprob_is_below_zero_and_plausible(seed: int, place: int, token: int) -> None:
    """No sampled token is certain, and none is less likely than three in a hundred."""
    own = logprob(seed, place, token)

    assert math.log(0.029) < own < 0


def test_logprobs_differ_by_conversation_place_and_token() -> None:
    """Ten thousand of them are all different, and the same when asked again."""
    seeds = [seed_of(name) for name in ("a", "b", "c", "d")]
    first = [logprob(seed, place, token) for seed in seeds for place in range(50) for token in range(50)]
    again = [logprob(seed, place, token) for seed in seeds for place in range(50) for token in range(50)]

    assert (len(set(first)), first == again) == (10_000, True)


@given(seed=SEEDS, place=PLACES, token=st.integers(0, 99), count=st.integers(0, 120))
def test_the_sampled_token_stays_the_most_likely(seed: int, place: int, token: int, count: int) -> None:
    """Other tokens, each once, ever less likely, and all probabilities together at most 1."""
    own = logprob(seed, place, token)
    others = alternatives(own, token, count, 100)
    odds = [value for _, value in others]

    assert len({token, *(other for other, _ in others)}) == min(count, 99) + 1
    assert odds == sorted(odds, reverse=True)
    assert all(value < own for value in odds)
    assert math.fsum(math.exp(value) for value in (own, *odds)) <= 1 + 1e-12
