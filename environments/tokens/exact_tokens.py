"""Reads the sampled tokens of an inference server, and checks that each has an id and a logprob.

Place in the flow: `HermesAgentBaseEnv` uses `ExactVLLMServer` and `ExactSGLangServer` instead of atroposlib's classes, which
take the ids from the list of logprobs: a missing logprob silently removes its token, and `ManagedServer` fills the gap with
1.0. `answer_checks` has the checks that need more than the answer's format.

Source: the requests are those of atroposlib 0.4.0, ``envs/server_handling/vllm_server.py`` and ``sglang_server.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import aiohttp
from atroposlib.envs.server_handling.server_baseline import APIServer
from atroposlib.envs.server_handling.sglang_server import SGLangServer
from atroposlib.envs.server_handling.vllm_server import VLLMServer

from environments.tokens.answer_checks import ADVICE, SampledIds, TokenModeError, check_prompt, check_prompt_length, described

__all__ = ["ExactSGLangServer", "ExactVLLMServer", "TokenModeError", "exact_server_class"]

Completions = tuple[list[int], list[list[int]], list[list[float]], list[Any]]
"""(prompt tokens, and per completion: tokens, logprobs, finish reason)."""


def exact_server_class(server_type: str) -> type[APIServer] | None:
    """Return the class for a server of that type; None means atroposlib's own."""
    return {"vllm": ExactVLLMServer, "sglang": ExactSGLangServer}.get(server_type)


class ExactVLLMServer(VLLMServer):
    """A VLLMServer that returns every sampled token, even without a logprob."""

    async def _tokens_and_logprobs_completion_wrapper(self, **kwargs: Any) -> Completions:
        prompt = _take_prompt(self.tokenizer, kwargs)
        for name in ("max_new_tokens", "max_completion_tokens"):
            if name in kwargs:
                kwargs["max_tokens"] = kwargs.pop(name)
        answer = await _generate(self, {"prompt": {"prompt_token_ids": prompt}, "logprobs": 0, **kwargs})
        with _reading_answer(self):
            finish_reasons = list(answer["finish_reasons"])
            logged = answer.get("logprobs") or [[]] * len(finish_reasons)
            pairs = [[next(iter(place[0].items())) for place in places] for places in logged]
            ids = [[int(token) for token, _ in row] for row in pairs]
            tokens: list[list[int]] = [
                _all_of(self, own, sampled) for own, sampled in zip(ids, answer.get("token_ids") or ids, strict=True)
            ]
            if len(tokens) != len(finish_reasons):
                raise TokenModeError(
                    f"{described(self)} returned {len(tokens)} completions and {len(finish_reasons)} finish reasons. {ADVICE}"
                )
            if (seen := answer.get("prompt_token_ids")) is not None:
                check_prompt(self, prompt, seen)
            texts = answer.get("text") or []
            tokens = [SampledIds(row, texts[n] if n < len(texts) else None) for n, row in enumerate(tokens)]
        return prompt, tokens, [[logprob for _, logprob in row] for row in pairs], finish_reasons


class ExactSGLangServer(SGLangServer):
    """An SGLangServer that returns every sampled token, even without a logprob."""

    async def _tokens_and_logprobs_completion_wrapper(self, **kwargs: Any) -> Completions:
        prompt = _take_prompt(self.tokenizer, kwargs)
        if "max_tokens" in kwargs:
            kwargs["max_new_tokens"] = kwargs.pop("max_tokens")
        body = {"input_ids": prompt, "sampling_params": kwargs, "return_logprob": True, "return_text_in_logprobs": False}
        answer = await _generate(self, body)
        with _reading_answer(self):
            read = [_read_sglang(self, prompt, one) for one in (answer if isinstance(answer, list) else [answer])]
        return prompt, [tokens for tokens, _, _ in read], [logprobs for _, logprobs, _ in read], [end for _, _, end in read]


def _read_sglang(server: Any, prompt: list[int], answer: Mapping[str, Any]) -> tuple[list[int], list[float], Any]:
    """Return tokens, logprobs and finish reason of one completion."""
    meta = answer["meta_info"]
    entries = meta.get("output_token_logprobs") or []
    ids = _all_of(server, [entry[1] for entry in entries], answer.get("output_ids") or [], meta.get("finish_reason"))
    if meta.get("completion_tokens", 0) > len(ids):
        raise TokenModeError(
            f"{described(server)} sampled {meta['completion_tokens']} tokens and returned the ids of {len(ids)}. {ADVICE}"
        )
    if (seen := meta.get("prompt_tokens")) is not None:
        check_prompt_length(server, prompt, seen)
    return SampledIds(ids, answer.get("text")), [entry[0] for entry in entries], meta.get("finish_reason")


def _take_prompt(tokenizer: Any, kwargs: dict[str, Any]) -> list[int]:
    """Remove the prompt from ``kwargs`` and return its ids, without a second start token if template and tokenizer both add one."""
    kwargs.pop("model", None)
    text, ids = kwargs.pop("prompt", None), kwargs.pop("input_ids", None)
    prompt = list(tokenizer.encode(text) if ids is None else ids)
    is_doubled = len(prompt) > 1 and prompt[0] == prompt[1] == tokenizer.bos_token_id
    return prompt[1:] if is_doubled else prompt


async def _generate(server: Any, body: Mapping[str, Any]) -> Any:
    config = server.config
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{config.base_url.replace('/v1', '')}/generate",
            json=body,
            headers={"Authorization": f"Bearer {config.api_key}"} if config.api_key else {},
            timeout=aiohttp.ClientTimeout(total=config.timeout),
        ) as response,
    ):
        if response.status == HTTPStatus.NOT_FOUND:
            raise TokenModeError(
                f"{described(server)} has no /generate: token mode needs SGLang's server, or vLLM behind an API server that returns "
                'token ids and logprobs, such as example_trainer/vllm_api_server.py of Atropos. Use server_type "openai" (chat '
                "mode) for a plain OpenAI-compatible one."
            )
        response.raise_for_status()
        with _reading_answer(server):
            return await response.json()


@contextmanager
def _reading_answer(server: Any) -> Iterator[None]:
    """Raise a `TokenModeError` when an answer cannot be read."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError, aiohttp.ContentTypeError) as error:
        raise TokenModeError(
            f"{described(server)} answered in a format that cannot be read: {type(error).__name__}: {error}. {ADVICE}"
        ) from error


def _all_of(server: Any, with_logprobs: list[int], sampled: Sequence[int], finish_reason: Any = None) -> list[int]:
    """Return the sampled ids.

    SGLang omits the token that ended the reply from them, and returns its logprob. Raises: TokenModeError for more logprobs than
    that, or logprobs of other tokens.
    """
    for place, (own, other) in enumerate(zip(with_logprobs, sampled, strict=False)):
        if own != other:
            raise TokenModeError(
                f"The logprob of sampled token {place} is that of id {own}, but id {other} was sampled. {ADVICE}"
            )
    matched = finish_reason.get("matched") if isinstance(finish_reason, Mapping) else None
    extra = with_logprobs[len(sampled) :] if sampled else []
    if extra and (extra != [matched] or sampled[-1] == matched):
        raise TokenModeError(
            f"{described(server)} returned {len(with_logprobs)} logprobs for {len(sampled)} sampled tokens; there must be one for each "
            f"token. {ADVICE}"
        )
    return list(sampled) if len(sampled) > len(with_logprobs) else with_logprobs
