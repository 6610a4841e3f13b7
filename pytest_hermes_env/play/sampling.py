"""Reads what a mock server sampled in token mode from its log: the ground truth for scored items.

Both shapes of ``/generate`` are read, vLLM's and SGLang's; chat completions hold no tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

OK = 200
LENGTH = "length"


@dataclass(frozen=True, kw_only=True)
class SampledReply:
    """One reply: token ids of the prompt [P] and of the output [N], and the output's logprobs [N] in nats.

    ``logprobs`` is shorter, or holds None, where the server returned fewer. ``is_cut``: the limit of tokens ended it.
    """

    prompt: tuple[int, ...]
    output: tuple[int, ...]
    logprobs: tuple[float | None, ...]
    is_cut: bool = False

    @property
    def sequence(self) -> tuple[int, ...]:
        """The token ids of prompt and output."""
        return (*self.prompt, *self.output)


def replies_of(exchanges: Iterable[Any]) -> tuple[SampledReply, ...]:
    """Return the replies among the exchanges of a mock server, in the order of their requests.

    Requests without tools are a judge's, unless the rollouts use no tools themselves.
    """
    answered = [exchange for exchange in exchanges if exchange.path.endswith("/generate") and exchange.status == OK]
    by_kind = {kind: [exchange for exchange in answered if exchange.kind == kind] for kind in ("generate", "judge")}
    return tuple(
        reply
        for exchange in by_kind["generate"] or by_kind["judge"]
        for reply in _replies(exchange.request or {}, exchange.response)
    )


def _replies(request: Any, response: Any) -> Iterator[SampledReply]:
    if "prompt" in request:
        yield from _vllm(response)
    else:
        yield from _sglang(request.get("input_ids"), response)


def _vllm(response: Any) -> Iterator[SampledReply]:
    count = len(response["token_ids"])
    rows, reasons = response.get("logprobs") or [[]] * count, response.get("finish_reasons") or [None] * count
    for ids, places, reason in zip(response["token_ids"], rows, reasons, strict=True):
        own = [place[0].get(str(token)) for token, place in zip(ids, places, strict=False)]
        yield SampledReply(
            prompt=tuple(response["prompt_token_ids"]), output=tuple(ids), logprobs=tuple(own), is_cut=reason == LENGTH
        )


def _sglang(prompts: Any, response: Any) -> Iterator[SampledReply]:
    answers = response if isinstance(response, list) else [response]
    several = prompts if prompts and isinstance(prompts[0], list) else [prompts or []]
    copies = max(1, len(answers) // len(several))
    for number, answer in enumerate(answers):
        places = answer["meta_info"].get("output_token_logprobs") or []
        yield SampledReply(
            prompt=tuple(several[number // copies]),
            output=tuple(answer["output_ids"]),
            logprobs=tuple(place[0] for place in places),
            is_cut=(answer["meta_info"].get("finish_reason") or {}).get("type") == LENGTH,
        )
