"""The teacher's distribution for the tokens that the student sampled: the same model, which got a hint.

Shapes: ``ids`` and ``logprobs`` [position][top_k] of a `Distribution` belong to the tokens at the same positions of the sequence,
as ``masks`` and ``inference_logprobs`` do. Units: nats.

Place in the flow: `AgenticOPDEnv.distill` asks for the `Distribution` of a row, and replaces in it the turns with a hint.

Source: atroposlib 0.4.0, ``ScoredDataGroup.distill_token_ids`` and ``VLLMServer.get_logprobs``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from environments.trainer.scoring import IGNORED


class TeacherError(ValueError):
    """The model server's answer does not have a distribution for each token."""


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """The most likely tokens at each position, the most likely first, and their logprobs."""

    ids: list[list[int]]
    logprobs: list[list[float]]

    def replaced(self, start: int, other: Distribution) -> Distribution:
        """Return this with the last positions of ``other`` from ``start`` on: as many as ``other`` has."""
        stop = start + len(other.ids)
        return Distribution(
            ids=[*self.ids[:start], *other.ids, *self.ids[stop:]],
            logprobs=[*self.logprobs[:start], *other.logprobs, *self.logprobs[stop:]],
        )


def sampled_spans(masks: Sequence[int]) -> list[tuple[int, int]]:
    """Return (start, stop) of each run of positions with a label: the model's turns."""
    labelled = [label != IGNORED for label in masks]
    starts = [place for place, here in enumerate(labelled) if here and not (place and labelled[place - 1])]
    stops = [
        place + 1 for place, here in enumerate(labelled) if here and not (place + 1 < len(labelled) and labelled[place + 1])
    ]
    return list(zip(starts, stops, strict=True))


def hinted_prompt(tokenizer: Any, prompt: Sequence[int], request: str, hint: str) -> list[int] | None:
    """Return a prompt with ``hint`` after the user's ``request``; all else stays as it was sampled. None if the request is not in it.

    The request is where its text comes first: later it would be quoted by the model or a tool.
    """
    text = tokenizer.decode(prompt, skip_special_tokens=False)
    request = request.strip()
    if not request or request not in text:
        return None
    before, _, after = text.partition(request)
    ids: list[int] = tokenizer.encode(f"{before}{request}\n\n[hint]\n{hint}{after}", add_special_tokens=False)
    return ids


async def distribution_of(server: Any, tokens: Sequence[int], *, top_k: int, start: int = 0) -> Distribution:
    """Return the model's distribution for the tokens from ``start`` on, given those before each.

    Nothing comes before the first token of a sequence, and no trainer predicts it: there it is certain.

    Raises: TeacherError unless there are ``top_k`` tokens at each position.
    """
    answer = await server.get_logprobs(input_ids=list(tokens), top_k=top_k)
    rows = list(zip(answer["prompt_topk_token_ids"], answer["prompt_topk_logprobs"], strict=True))
    if len(rows) != len(tokens):
        raise TeacherError(f"the model server returned logprobs of {len(rows)} positions for {len(tokens)} tokens")
    ranked = [sorted(zip(*row, strict=True), key=lambda pair: -pair[1])[:top_k] for row in rows]
    if start == 0:
        ranked[0] = [(tokens[0], 0.0)] * top_k
    short = next((place for place, row in enumerate(ranked[start:], start) if len(row) < top_k), None)
    if short is not None:
        raise TeacherError(f"the model server returned {len(ranked[short])} tokens at position {short}, {top_k} were asked for")
    return Distribution(
        ids=[[token for token, _ in row] for row in ranked[start:]],
        logprobs=[[logprob for _, logprob in row] for row in ranked[start:]],
    )
