"""Token ids and logprobs in the fields of `vllm serve`: completions, chat completions, and ``/inference/v1/generate`` of two forms.

Source: vLLM 0.10.2 to 0.33, ``entrypoints/openai/completion``, ``entrypoints/openai/chat_completion`` and
``entrypoints/scale_out/token_in_token_out``; SGLang 0.5.23, ``srt/entrypoints/openai/protocol.py``, whose chat completions name the
ids otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_hermes_env.inference.generate import Generation, Request, prompt_rows, rows_of
from pytest_hermes_env.inference.wire import CREATED

if TYPE_CHECKING:
    from pytest_hermes_env.inference.sampled_turn import TokenSampler
    from pytest_hermes_env.inference.token_engines import Engine
    from pytest_hermes_env.types import JsonObject, JsonValue

NEW_FORM, WITH_PROMPT_IDS = (0, 32), (0, 30)
"""The versions from which ``/inference/v1/generate`` has integer ids in its logprobs, and returns the ids of the prompt."""


def completions_answer(request: Request, generation: Generation, *, size: int, model: str) -> JsonObject:
    """Return the answer of ``/v1/completions``. ``size``: the size of the vocabulary."""
    sample, rows = generation.sample, rows_of(generation, request.top or 0, size)
    logged: JsonObject | None = None
    if request.top is not None and generation.logprobs != "missing":
        logged = {
            "text_offset": [0] * len(rows),
            "tokens": [f"token_id:{row[0][0]}" for row in rows],
            "token_logprobs": [row[0][1] for row in rows],
            "top_logprobs": [{f"token_id:{token}": own for token, own in row} for row in rows],
        }
    choice: JsonObject = {"text": sample.text, "logprobs": logged, "finish_reason": sample.finish, "stop_reason": None}
    if request.sampling.get("return_token_ids") is True:
        choice |= {"token_ids": list(sample.ids), "prompt_token_ids": list(generation.prompt)}
    if request.prompt_top is not None:
        scored = prompt_rows(generation, request.prompt_top, size)
        told: list[Any] = [
            {str(token): {"logprob": own, "rank": rank} for rank, (token, own) in enumerate(row, 1)} for row in scored
        ]
        choice["prompt_logprobs"] = [None, *told]
    count = 0 if generation.is_empty else request.n
    prompt, completion = len(generation.prompt), count * len(sample.ids)
    choices: list[JsonValue] = [{"index": index, **choice} for index in range(count)]
    return {
        "id": f"cmpl-{generation.key}",
        "object": "text_completion",
        "created": CREATED,
        "model": model,
        "choices": choices,
        "usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion},
    }


def tokens_answer(request: Request, generation: Generation, *, size: int, version: tuple[int, ...]) -> JsonObject:
    """Return the answer of ``/inference/v1/generate``: ids in, ids out, and no text."""
    sample, is_new = generation.sample, version >= NEW_FORM

    def entry(token: int, own: float | None, rank: int) -> JsonObject:
        return {"token_id": token, "logprob": own, "rank": rank} if is_new else {"token": f"token_id:{token}", "logprob": own}

    logged: JsonObject | None = None
    if request.top is not None and generation.logprobs != "missing":
        content: list[JsonValue] = []
        for row in rows_of(generation, request.top, size):
            entries = [entry(token, own, rank) for rank, (token, own) in enumerate(row, 1)]
            content.append({**entries[0], "top_logprobs": [*entries[: request.top]]})
        logged = {"content": content}
    choice: JsonObject = {"token_ids": list(sample.ids), "logprobs": logged, "finish_reason": sample.finish}
    choice |= {"stop_reason": None} if is_new else {}
    choices: list[JsonValue] = [{"index": index, **choice} for index in range(0 if generation.is_empty else request.n)]
    gives_prompt = request.sampling.get("return_token_ids") is True and version >= WITH_PROMPT_IDS
    ids: JsonObject = {"prompt_token_ids": list(generation.prompt)} if gives_prompt else {}
    return {"request_id": generation.key, "choices": choices, "prompt_logprobs": None, **ids}


def add_tokens(completion: Any, body: Any, generation: Generation, *, engine: Engine, sampler: TokenSampler) -> None:
    """Add to a chat completion what the request asks for: logprobs, and the ids of prompt and reply. A cut reply loses its rest."""
    sample, top = generation.sample, body.get("top_logprobs") or 0

    def entry(token: int, own: float | None) -> JsonObject:
        text = f"token_id:{token}" if body.get("return_tokens_as_token_ids") is True else sampler.decode((token,))
        return {"token": text, "logprob": own, "bytes": list(text.encode())}

    for choice in completion["choices"]:
        if body.get("logprobs") is True and generation.logprobs != "missing":
            rows = rows_of(generation, top, sampler.last_id + 1)
            choice["logprobs"] = {
                "content": [{**entry(*row[0]), "top_logprobs": [entry(*one) for one in row[:top]]} for row in rows]
            }
        if sample.finish == "length":
            choice |= {"message": {"role": "assistant", "content": sample.text}, "finish_reason": "length"}
        if body.get("return_token_ids") is True and engine == "sglang":
            choice |= {"prompt_token_ids": list(generation.prompt), "response_token_ids": list(sample.ids)}
        elif body.get("return_token_ids") is True:
            choice["token_ids"] = list(sample.ids)
            completion["prompt_token_ids"] = list(generation.prompt)
    prompt, count = len(generation.prompt), len(completion["choices"]) * len(sample.ids)
    completion["usage"] = {
        **completion["usage"],
        "prompt_tokens": prompt,
        "completion_tokens": count,
        "total_tokens": prompt + count,
    }
