"""Logprobs that look like a model's and are the same in every run.

A logprob derives from the conversation, the place in the sequence and the token, and from nothing else: asked again for the
logprobs of a prompt, the mock model gives for each sampled token what it gave when it sampled it.
"""

from __future__ import annotations

import math
from hashlib import blake2b

__all__ = ["logprob", "runners_up", "seed_of"]

MASK = 2**64 - 1
LEAST_DOUBT, SPREAD = 0.05, 0.97
"""The least likely token has a probability of 3 %, half of them more than 85 %, and none is certain."""


def seed_of(conversation_id: str) -> int:
    """Return the number from which all logprobs of a conversation derive."""
    return int.from_bytes(blake2b(conversation_id.encode(), digest_size=8).digest())


def logprob(seed: int, position: int, token: int) -> float:
    """Return the logprob of ``token`` at ``position`` of the whole sequence, prompt included. Units: nats, below 0."""
    # The finaliser of splitmix64: one multiplication per step, and neighbours in any argument have nothing in common.
    mixed = (seed + (position + 1) * 0x9E3779B97F4A7C15 + (token + 1) * 0xD1B54A32D192ED03) & MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
    doubt = LEAST_DOUBT + (1 - LEAST_DOUBT) * ((mixed ^ (mixed >> 31)) / 2**64)
    return math.log1p(-SPREAD * doubt**3)


def runners_up(own: float, token: int, count: int, size: int) -> list[tuple[int, float]]:
    """Return ``count`` other tokens with their logprobs, most likely first, none above ``own``, the sampled token's.

    All probabilities together stay below 1. ``size`` is the number of tokens that there are; fewer others, fewer runners-up.
    """
    rest = min(-math.expm1(own), math.exp(own))
    return [((token + place) % size, math.log(rest) - place * math.log(2)) for place in range(1, min(count, size - 1) + 1)]
