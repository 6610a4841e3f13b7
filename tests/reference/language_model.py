"""A language model that anyone can compute: the logits after a context are normal numbers seeded with its ids.

What it says is planned, as if chance had wanted it so; each of its tokens has the probability that the model gives it.
"""

from __future__ import annotations

import hashlib

import numpy as np


class LanguageModel:
    """Logits over ``size`` tokens, with the standard deviation ``spread``."""

    def __init__(self, size: int, spread: float) -> None:
        self.size, self.spread = size, spread

    def logits(self, context: list[int]) -> np.ndarray:
        """Return the logits after a context."""
        seed = hashlib.sha256(np.asarray(context, dtype=np.int64).tobytes()).digest()[:8]
        return np.random.default_rng(int.from_bytes(seed, "big")).normal(0, self.spread, self.size)

    def logprobs(self, context: list[int], temperature: float = 1.0, penalties: dict[int, float] | None = None) -> np.ndarray:
        """Return the logprobs of all tokens: those that a sampler draws with."""
        logits = self.logits(context)
        for token, penalty in (penalties or {}).items():
            logits[token] -= penalty
        scaled = logits / temperature
        shifted = scaled - scaled.max()
        return shifted - np.log(np.exp(shifted).sum())
