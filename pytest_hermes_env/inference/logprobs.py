"""Plausible logprobs that are the same in every run.

A logprob derives only from the conversation, the position in the sequence and the token. So the logprobs of a prompt are equal to
those that the mock model returned when it sampled its tokens.
"""

from __future__ import annotations

import math
from hashlib import blake2b

MASK = 2**64 - 1
MIN_UNCERTAINTY, SPREAD = 0.05, 0.97
"""With these, the lowest probability is 3 %, half of them are above 85 %, and none is 1."""


def seed_of(conversation_id: str) -> int:
    """Return the seed of all logprobs of a conversation."""
    return int.from_bytes(blake2b(conversation_id.encode(), digest_size=8).digest())


def logprob(seed: int, position: int, token: int) -> float:
    """Return the logprob of ``token`` at ``position`` of the sequence, including the prompt. Units: nats, below 0."""
    # The finaliser of splitmix64: adjacent arguments return unrelated values.
    mixed = (seed + (position + 1) * 0x9E3779B97F4A7C15 + (token + 1) * 0xD1B54A32D192ED03) & MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
    uncertainty = MIN_UNCERTAINTY + (1 - MIN_UNCERTAINTY) * ((mixed ^ (mixed >> 31)) / 2**64)
    return math.log1p(-SPREAD * uncertainty**3)


def alternatives(own: float, token: int, count: int, size: int) -> list[tuple[int, float]]:
    """Return ``count`` other tokens with their logprobs, most likely first and none above ``own``, the sampled token's.

    The probabilities add up to less than 1. ``size`` is the size of the vocabulary, which limits the count.
    """
    rest = min(-math.expm1(own), math.exp(own))
    return [((token + place) % size, math.log(rest) - place * math.log(2)) for place in range(1, min(count, size - 1) + 1)]
