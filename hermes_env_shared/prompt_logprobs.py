"""How model servers return the likeliest tokens at each position of a prompt: the request and the answer of each kind of server.

Place in the flow: `environments.tokens.exact_tokens` asks with these for the distribution of a teacher. Pure functions. Shapes: rows
[position]; nothing comes before the first token, so its row is empty. Units: nats, of the model at temperature 1.

Source: vLLM 0.10.2 to 0.33, ``prompt_logprobs`` of ``entrypoints/openai/completion``; SGLang 0.5.23, ``srt/managers``:
``logprob_start_len`` and ``input_top_logprobs``; atroposlib 0.4.0, ``VLLMServer.get_logprobs``, of which its own
``example_trainer/vllm_api_server.py`` has no ``prompt_logprobs`` to return.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hermes_env_shared.token_servers import ATROPOS, SGLANG, BadAnswer, Wire

Row = dict[int, float]
ADVICE = "On-policy distillation needs `vllm serve` or SGLang, which return the logprobs of a prompt."


def prompt_logprobs_body(wire: Wire, model: str, prompt: Sequence[int], top: int) -> dict[str, Any]:
    """Return the request for the ``top`` likeliest tokens at each position of a prompt."""
    if wire is SGLANG:
        how = {"return_logprob": True, "logprob_start_len": 0, "top_logprobs_num": top, "return_text_in_logprobs": False}
        return {"input_ids": list(prompt), "sampling_params": {"max_new_tokens": 0, "temperature": 1.0}, **how}
    body: dict[str, Any] = {"prompt_logprobs": top, "max_tokens": 1, "temperature": 1.0}
    if wire is ATROPOS:
        return {"prompt": {"prompt_token_ids": list(prompt)}, **body}
    return {"model": model, "prompt": list(prompt), "return_token_ids": True, **body}


def read_prompt_logprobs(wire: Wire, answer: Any, prompt: Sequence[int]) -> list[Row]:
    """Return the rows of an answer. Raises: BadAnswer, unless there is one for each token of the prompt, with the token's own logprob.

    LookupError, TypeError, ValueError and AttributeError of another format.
    """
    if wire is SGLANG:
        meta = answer["meta_info"]
        own, tops = meta.get("input_token_logprobs"), meta.get("input_top_logprobs")
        rows = None if own is None or tops is None else [_sglang_row(*pair) for pair in zip(own, tops, strict=True)]
    else:
        holder = answer if wire is ATROPOS else answer["choices"][0]
        told = holder.get("prompt_logprobs")
        rows = None if told is None else [_vllm_row(entry) for entry in told]
    if rows is None:
        raise BadAnswer(f"returned no logprobs of the prompt. {ADVICE}")
    if len(rows) != len(prompt):
        raise BadAnswer(f"returned logprobs of {len(rows)} positions for a prompt of {len(prompt)} tokens")
    for place, token in enumerate(prompt[1:], start=1):
        if token not in rows[place]:
            raise BadAnswer(f"returned logprobs at position {place} of the prompt without that of its token, id {token}")
    return [{}, *rows[1:]]


def _vllm_row(entry: Any) -> Row:
    """Return a row of ``{id: {"logprob": number}}``, or of ``{id: number}``, alone or in a list, as patched servers of Atropos do."""
    merged: dict[Any, Any] = {}
    for one in entry if isinstance(entry, list) else [entry or {}]:
        merged |= one
    return {int(token): own["logprob"] if isinstance(own, Mapping) else own for token, own in merged.items()}


def _sglang_row(own: Sequence[Any] | None, tops: Sequence[Sequence[Any]] | None) -> Row:
    return {entry[1]: entry[0] for entry in (own or (None, 0), *(tops or ())) if entry[0] is not None}
