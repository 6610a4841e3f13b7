"""Finds out which logprobs a model server returns, from its answers to two short questions at different temperatures.

What must change between them: processed logprobs, with which the tokens were sampled, grow apart by the ratio of the temperatures;
raw ones, of the model at temperature 1, stay as they are. The second question has a penalty on tokens that were sampled before.

Place in the flow: `environments.tokens.server_check` asks before ``serve`` and ``evaluate``, live mode's preflight before tests. Pure
functions. Units: nats.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hermes_env_shared.token_servers import Completion

QUESTION = (10,) * 8
"""The prompt: an id that every vocabulary has. A model that repeats it shows what a penalty does."""
HOT, COLD = 1.0, 0.5
PENALTY = 1.0
QUESTIONS: tuple[dict[str, Any], ...] = (
    {"temperature": HOT, "max_tokens": 2, "n": 8},
    {"temperature": COLD, "max_tokens": 2, "n": 8, "presence_penalty": PENALTY},
)
TOPS = (20, 0)
"""Other tokens to ask for; a server that returns fewer refuses the first number."""
NOISE = 0.05
"""By how much two logprobs of the same token may differ where batches and kernels differ."""
CERTAIN = -0.1
"""A token that is likelier has about the same logprob at every temperature."""

Mode = Literal["raw", "processed", "unknown"]
Logprobs = Mapping[int, float]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What the logprobs of a server are. ``problem`` says why nobody can train on them, in words that continue "its logprobs"."""

    mode: Mode
    has_penalties: bool | None = None
    problem: str = ""

    def __str__(self) -> str:
        """Return the finding as part of a sentence."""
        if self.problem:
            return f"logprobs that {self.problem}"
        if self.mode == "unknown":
            return "logprobs of which two questions do not tell whether they are raw or processed"
        if self.mode == "raw":
            return "raw logprobs, before temperature and penalties"
        of = {True: " and penalties", False: ", without penalties", None: ""}[self.has_penalties]
        return f"processed logprobs, after temperature{of}"


def judged(hot: Sequence[Completion], cold: Sequence[Completion]) -> Finding:
    """Return what the logprobs are, from the answers to `QUESTIONS`. Raises: LookupError or TypeError for an answer without logprobs."""
    for one in (*hot, *cold):
        if problem := _of_another_token(one):
            return Finding(mode="unknown", problem=problem)
    first, second = _at_first_place(hot), _at_first_place(cold)
    for seen in (first, second):
        total = sum(map(math.exp, seen.values()))
        if total > 1 + NOISE:
            return Finding(
                mode="unknown",
                problem=f"are not natural: as such, the probabilities of {len(seen)} tokens add up to {total:.3g}",
            )
    mode = _mode(first, second)
    if mode is None:
        return Finding(mode="unknown", problem="change with the temperature, but not as those of the sampled distribution do")
    if mode == "processed" and not _is_natural(hot, first, second):
        return Finding(mode="unknown", problem="are not natural: with another base, they fit the temperatures")
    return Finding(mode=mode, has_penalties=_has_penalties(hot, cold) if mode == "processed" else False)


def _of_another_token(one: Completion) -> str:
    for token, own, top in zip(one.tokens, one.logprobs, one.tops, strict=False):
        others = [likely for other, likely in top.items() if other != token]
        if abs(top.get(token, own) - own) > NOISE:
            return f"are not those of the sampled tokens: {own:.4g} was returned for id {token}, which has {top[token]:.4g}"
        if len(others) >= TOPS[0] and own > min(others) + NOISE:
            return (
                f"are not those of the sampled tokens: id {token} is not among the likeliest, and has more than they: {own:.4g}"
            )
    return ""


def _at_first_place(answers: Sequence[Completion]) -> dict[int, float]:
    """Return the logprob of every token that is known at the first place: all answers continue the same prompt."""
    known: dict[int, float] = {}
    for one in answers:
        known |= {**(one.tops[0] if one.tops else {}), one.tokens[0]: one.logprobs[0]}
    return known


def _mode(first: Logprobs, second: Logprobs) -> Mode | None:
    common = sorted(first.keys() & second.keys(), key=lambda token: -first[token])
    if not common:
        return "unknown"
    changes = [abs(second[token] - first[token]) for token in common]
    spread = first[common[0]] - first[common[-1]]
    if spread < 10 * NOISE:  # one token, or several that are as likely
        if first[common[0]] > CERTAIN or (len(common) > 1 and changes[0] <= NOISE):
            return "unknown"
        return "raw" if changes[0] <= NOISE else "processed"
    tolerance = NOISE * max(1.0, spread)
    if statistics.mean(changes) <= tolerance:
        return "raw"
    normalisers = [HOT / COLD * first[token] - second[token] for token in common]
    error = statistics.mean(abs(one - statistics.median(normalisers)) for one in normalisers)
    return "processed" if error <= tolerance else None


def _is_natural(hot: Sequence[Completion], first: Logprobs, second: Logprobs) -> bool:
    """Return whether processed logprobs are normalised as natural ones are; also True where too few tokens are known."""
    tops = [sorted(one.tops[0].values(), reverse=True) for one in hot if one.tops]
    if not tops or len(tops[0]) < TOPS[0]:
        return True
    least = tops[0][TOPS[0] - 1]  # no token that is not known is likelier
    known = sum(math.exp(HOT / COLD * own) for own in first.values())
    rest = max(0.0, 1 - sum(map(math.exp, first.values()))) * math.exp((HOT / COLD - 1) * least)
    normaliser = statistics.median(HOT / COLD * first[token] - second[token] for token in first.keys() & second.keys())
    return math.log(known) - NOISE <= normaliser <= math.log(known + rest) + NOISE


def _has_penalties(hot: Sequence[Completion], cold: Sequence[Completion]) -> bool | None:
    """Return whether the second token shows the penalty on the first; None where no two answers began alike."""
    for one in hot:
        for other in cold:
            if one.tokens[0] != other.tokens[0] or min(len(one.tops), len(other.tops)) < 2:  # noqa: PLR2004 - the second place
                continue
            first, second = one.tops[1], other.tops[1]
            shifts = {token: HOT / COLD * first[token] - second[token] for token in first.keys() & second.keys()}
            repeated = shifts.pop(one.tokens[0], None)
            if repeated is not None and shifts:
                return repeated - statistics.median(shifts.values()) > PENALTY / COLD / 2
    return None
