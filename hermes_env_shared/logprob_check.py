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

NEUTRAL: dict[str, Any] = {"top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
"""Sent with each question, and for what a rollout does not set: a server's defaults, such as those of a model's generation_config.json, cut the distribution."""
PENALTY = 1.0
MAX_TOKENS = 8


@dataclass(frozen=True, kw_only=True)
class Probe:
    """Two questions about one prompt, of ids that every vocabulary has, at the temperatures ``hot`` and ``cold``."""

    prompt: tuple[int, ...]
    hot: float
    cold: float

    @property
    def questions(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The sampling parameters of both."""
        same = {"max_tokens": MAX_TOKENS, "n": 8, **NEUTRAL}
        return {"temperature": self.hot, **same}, {"temperature": self.cold, "presence_penalty": PENALTY, **same}

    @property
    def ratio(self) -> float:
        """By how much processed logprobs grow apart."""
        return self.hot / self.cold


PROBES = (
    Probe(prompt=(10,) * 8, hot=1.0, cold=0.5),  # a model that repeats itself shows what a penalty does
    Probe(prompt=(51, 9, 72, 30, 66, 17, 84, 45), hot=2.0, cold=0.25),  # what follows noise is uncertain, all the more when hot
)
"""The second is asked where the first does not tell."""
TOPS = (20, 5, 1, 0)
"""Other tokens to ask for; a server that returns fewer refuses the first numbers."""
NOISE = 0.05
"""By how much two logprobs of the same token may differ where batches and kernels differ."""
CERTAIN = -0.1
"""A token that is likelier has about the same logprob at every temperature."""
IMPOSSIBLE = -104.0
"""A logprob below it stands for minus infinity: of a token that cannot be sampled."""

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
            return "logprobs that may be raw or processed: its answers at different temperatures do not tell"
        if self.mode == "raw":
            return "raw logprobs, before temperature and penalties"
        of = {True: " and penalties", False: ", without penalties", None: ""}[self.has_penalties]
        return f"processed logprobs, after temperature{of}"


def judged(probe: Probe, hot: Sequence[Completion], cold: Sequence[Completion]) -> Finding:
    """Return what the logprobs are, from the answers to a probe. Raises: LookupError or TypeError for an answer without logprobs."""
    for one in (*hot, *cold):
        if problem := of_another_token(one):
            return Finding(mode="unknown", problem=problem)
    first, second = _known(hot), _known(cold)
    for seen in (first[()], second[()]):
        total = sum(map(math.exp, seen.values()))
        if total > 1 + NOISE:
            return Finding(
                mode="unknown",
                problem=f"are not natural: as such, the probabilities of {len(seen)} tokens add up to {total:.3g}",
            )
    mode = _mode(first, second, probe.ratio)
    if mode is None:
        return Finding(mode="unknown", problem="change with the temperature, but not as those of the sampled distribution do")
    if mode == "processed" and not _is_natural(probe, hot, first[()], second[()]):
        return Finding(mode="unknown", problem="are not natural: with another base, they fit the temperatures")
    return Finding(mode=mode, has_penalties=_has_penalties(probe, hot, cold) if mode == "processed" else False)


def of_another_token(one: Completion) -> str:
    """Return what contradicts the logprobs of an answer in its own lists of likely tokens; empty where nothing does."""
    for token, own, top in zip(one.tokens, one.logprobs, one.tops, strict=False):
        others = [likely for other, likely in top.items() if other != token]
        if not all(isinstance(one, int | float) for one in (own, *top.values())):
            continue  # which is told elsewhere
        if abs(top.get(token, own) - own) > NOISE:
            return f"are not those of the sampled tokens: {own:.4g} was returned for id {token}, which has {top[token]:.4g}"
        if others and (token not in top or len(others) >= TOPS[0]) and own > min(others) + NOISE:
            return (
                f"are not those of the sampled tokens: id {token} is not among the likeliest, and has more than they: {own:.4g}"
            )
    return ""


def _known(answers: Sequence[Completion]) -> dict[tuple[int, ...], dict[int, float]]:
    """Return the logprob of every token that is known after each sequence of sampled tokens, which several answers may share."""
    known: dict[tuple[int, ...], dict[int, float]] = {}
    for one in answers:
        for place, token in enumerate(one.tokens):
            row = {**(one.tops[place] if place < len(one.tops) else {}), token: one.logprobs[place]}
            possible = {likely: own for likely, own in row.items() if own > IMPOSSIBLE}
            known.setdefault(tuple(one.tokens[:place]), {}).update(possible)
    return known


def _mode(first: Mapping[tuple[int, ...], Logprobs], second: Mapping[tuple[int, ...], Logprobs], ratio: float) -> Mode | None:
    """Return which of both fits what is known at both temperatures: "unknown" if both do, None if neither does."""
    raw: list[float] = []
    processed: list[float] = []
    places = 0
    for prefix in first.keys() & second.keys():
        tokens = (first[prefix].keys() & second[prefix].keys()) - set(prefix)  # a penalty moves those that were sampled
        own, other = ([one[prefix][token] for token in sorted(tokens)] for one in (first, second))
        if not tokens or (len(tokens) == 1 and own[0] > CERTAIN):
            continue
        places += 1
        scales = [max(1.0, max(own) - likely) for likely in own]  # noise grows with the distance
        shift = statistics.median(ratio * one - two for one, two in zip(own, other, strict=True))
        raw += [abs(one - two) / scale for one, two, scale in zip(own, other, scales, strict=True)]
        if len(tokens) > 1:
            fits = [abs(ratio * one - shift - two) for one, two in zip(own, other, strict=True)]
            processed += [fit / scale for fit, scale in zip(fits, scales, strict=True)]
    if not raw:
        return "unknown"
    change, misfit = statistics.mean(raw), statistics.mean(processed or [0.0])
    if change > NOISE:
        return "processed" if misfit <= ratio * NOISE else None
    is_clear = misfit > ratio * max(change, NOISE / 5) if processed else places > 1
    return "raw" if is_clear else "unknown"


def _is_natural(probe: Probe, hot: Sequence[Completion], first: Logprobs, second: Logprobs) -> bool:
    """Return whether processed logprobs are normalised as natural ones are; also True where too few tokens are known."""
    tops = [sorted(one.tops[0].values(), reverse=True) for one in hot if one.tops]
    if not tops or len(tops[0]) < TOPS[0]:
        return True
    least = tops[0][TOPS[0] - 1]  # no token that is not known is likelier
    known = sum(math.exp(probe.ratio * own) for own in first.values())
    rest = max(0.0, 1 - sum(map(math.exp, first.values()))) * math.exp((probe.ratio - 1) * least)
    normaliser = statistics.median(probe.ratio * first[token] - second[token] for token in first.keys() & second.keys())
    return math.log(known) - NOISE <= normaliser <= math.log(known + rest) + NOISE


def _has_penalties(probe: Probe, hot: Sequence[Completion], cold: Sequence[Completion]) -> bool | None:
    """Return whether the second token shows the penalty on the first; None where no two answers began alike."""
    for one in hot:
        for other in cold:
            if one.tokens[0] != other.tokens[0] or min(len(one.tops), len(other.tops)) < 2:  # noqa: PLR2004 - the second place
                continue
            first, second = one.tops[1], other.tops[1]
            shifts = {token: probe.ratio * first[token] - second[token] for token in first.keys() & second.keys()}
            repeated = shifts.pop(one.tokens[0], None)
            if repeated is not None and shifts:
                return repeated - statistics.median(shifts.values()) > PENALTY / probe.cold / 2
    return None
