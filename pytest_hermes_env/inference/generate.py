"""``/generate`` in the formats of Atropos' server and SGLang; also reads the requests of vLLM that `vllm_answers` answers.

The body shows which format of ``/generate`` it is: ``prompt`` is Atropos', ``input_ids`` or ``text`` is SGLang's. Logprobs are the same in every run: one
derives only from the conversation, the position in the sequence and the token, so that those of a prompt are equal to those that the
model returned when it sampled its tokens.
Source: the requests and readers of ``VLLMServer`` and ``SGLangServer`` in atroposlib 0.4.0; Atropos' own vLLM server; the native API
of SGLang 0.5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from hermes_env_shared.logprob_check import MAX_TOKENS, PROBES
from pytest_hermes_env.errors import UnexpectedRequest, shorten
from pytest_hermes_env.inference.token_engines import normaliser

if TYPE_CHECKING:
    from pytest_hermes_env.inference.sampled_turn import Sample
    from pytest_hermes_env.inference.steps import Logprobs
    from pytest_hermes_env.types import JsonObject, JsonValue

Shape: TypeAlias = Literal["vllm", "sglang", "completions", "tokens"]
NOT_PLAYED = {"logprob_start_len": (None, -1, 0), "return_text_in_logprobs": (None, False)}
"""Fields of SGLang, and the values that are played: logprobs of the whole prompt or none, without texts."""
TOKENS_PATH = "/inference/v1/generate"
MASK = 2**64 - 1
MIN_UNCERTAINTY, SPREAD = 0.05, 0.97
"""With these, the lowest probability is 3 %, half of them are above 85 %, and none is 1."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request to ``/generate``.

    ``prompt``: token ids, or text that the server encodes. ``top``: how many alternatives to return at each position, None for no
    logprobs. ``prompt_top``: the same for the tokens of the prompt. ``is_in_list``: the body has a list of prompts.
    """

    shape: Shape
    prompt: str | tuple[int, ...]
    n: int
    max_tokens: int | None
    top: int | None
    prompt_top: int | None
    sampling: Mapping[str, object]
    returns_prompt: bool = False
    is_in_list: bool = False

    @property
    def is_scoring(self) -> bool:
        """Whether the client only wants the logprobs of the prompt, and discards the one token that must be generated."""
        return self.prompt_top is not None and self.max_tokens is not None and self.max_tokens <= 1

    @property
    def is_check(self) -> bool:
        """Whether this is one of the questions that find out what the logprobs are, outside of any rollout."""
        return self.max_tokens == MAX_TOKENS and self.prompt in {probe.prompt for probe in PROBES}


@dataclass(frozen=True, kw_only=True)
class Generation:
    """The answer to one prompt: the prompt's ids and text, the sampled answer, and the seed of its logprobs."""

    prompt: tuple[int, ...]
    prompt_text: str
    sample: Sample
    seed: int
    key: str
    logprobs: Logprobs
    is_empty: bool = False
    temperature: float = 1.0
    """That of processed logprobs; 1 for raw ones."""


def read_requests(path: str, body: Mapping[str, Any]) -> list[Request]:
    """Return a request for each prompt of the body: completions and SGLang take lists of prompts.

    Raises: as `read_request`.
    """
    field = "prompt" if path.endswith("/completions") else "input_ids" if body.get("input_ids") is not None else "text"
    prompts = body.get(field)
    if not isinstance(prompts, list) or not prompts or not all(isinstance(one, str | list) for one in prompts):
        return [read_request(path, body)]
    return [replace(read_request(path, {**body, field: one}), is_in_list=True) for one in prompts]


def joined(answers: Sequence[Any]) -> Any:
    """Return the answers to a list of prompts as one: SGLang's as a list, those of completions as choices of one completion."""
    if isinstance(answers[0], list) or "choices" not in answers[0]:
        return [one for answer in answers for one in (answer if isinstance(answer, list) else [answer])]
    choices = [choice for answer in answers for choice in answer["choices"]]
    usage = {name: sum(answer["usage"][name] for answer in answers) for name in answers[0]["usage"]}
    return {**answers[0], "choices": [{**one, "index": index} for index, one in enumerate(choices)], "usage": usage}


def read_request(path: str, body: Mapping[str, Any]) -> Request:
    """Return the request in the body, whose sampling parameters `generate_refusals` has checked.

    Raises: neither of the two formats, or a field of the wrong type → UnexpectedRequest.
    """
    if path.endswith("/completions"):
        return replace(_vllm_request(path, body), shape="completions")
    if body.get("stream") is True:
        raise _bad(path, "'stream' is not supported, and neither VLLMServer nor SGLangServer streams", body)
    if path.endswith(TOKENS_PATH):
        return _tokens_request(path, body)
    if "prompt" in body:
        return _vllm_request(path, body)
    if "input_ids" in body or "text" in body:
        return _sglang_request(path, body)
    raise _bad(path, "the body has neither 'prompt' (vLLM) nor 'input_ids' or 'text' (SGLang)", body)


def _vllm_request(path: str, body: Mapping[str, Any]) -> Request:
    prompt = body["prompt"]
    if isinstance(prompt, Mapping):
        prompt = prompt.get("prompt_token_ids", prompt.get("prompt"))
    return Request(
        shape="vllm",
        prompt=_prompt(path, prompt, "'prompt' must be a string, or an object with 'prompt_token_ids' or 'prompt'"),
        n=body.get("n", 1),
        max_tokens=body.get("max_tokens"),
        top=body.get("logprobs"),
        prompt_top=body.get("prompt_logprobs"),
        sampling={name: value for name, value in body.items() if name != "prompt"},
    )


def _tokens_request(path: str, body: Mapping[str, Any]) -> Request:
    sampling = body.get("sampling_params")
    if not isinstance(sampling, Mapping):
        raise _bad(path, "'sampling_params' must be an object", sampling)
    asked = {**sampling, "return_token_ids": body.get("return_token_ids"), "prompt": body.get("token_ids")}
    if not isinstance(asked["prompt"], list):
        raise _bad(path, "'token_ids' must be token ids, and not empty", asked["prompt"])
    return replace(_vllm_request(path, asked), shape="tokens")


def _sglang_request(path: str, body: Mapping[str, Any]) -> Request:
    field = "input_ids" if body.get("input_ids") is not None else "text"
    sampling = body.get("sampling_params") or {}
    if not isinstance(sampling, Mapping):
        raise _bad(path, "'sampling_params' must be an object", sampling)
    for name, played in NOT_PLAYED.items():
        if body.get(name) not in played:
            raise _bad(path, f"{name!r} is not supported, and SGLangServer does not send it", body[name])
    if isinstance(body.get("return_logprob"), list):
        raise _bad(path, "'return_logprob' for each prompt is not supported: give one for all", body["return_logprob"])
    has_logprobs = body.get("return_logprob") is True
    what = "'input_ids' must be token ids" if field == "input_ids" else "'text' must be a string"
    return Request(
        shape="sglang",
        prompt=_prompt(path, body.get(field), f"{what}, of one prompt"),
        n=sampling.get("n") or 1,
        max_tokens=sampling.get("max_new_tokens"),
        top=(body.get("top_logprobs_num") or 0) if has_logprobs else None,
        prompt_top=(body.get("top_logprobs_num") or 0) if body.get("logprob_start_len") == 0 and has_logprobs else None,
        sampling=sampling,
        returns_prompt=body.get("return_prompt_token_ids") is True,
    )


def _prompt(path: str, value: object, what: str) -> str | tuple[int, ...]:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, list) and set(map(type, value)) == {int} and min(value) >= 0:
        return tuple(value)
    raise _bad(path, f"{what}, and not empty", value)


def vllm_answer(request: Request, generation: Generation, *, size: int) -> JsonObject:
    """Return the answer in vLLM's format. ``size``: the size of the vocabulary."""
    count = 0 if generation.is_empty else request.n
    sample = generation.sample
    answer: JsonObject = {
        "text": [sample.text] * count,
        "prompt": generation.prompt_text,
        "finish_reasons": [sample.finish] * count,
        "token_ids": [list(sample.ids)] * count,
        "prompt_token_ids": list(generation.prompt),
    }
    if request.top is not None and generation.logprobs != "missing":
        rows = rows_of(generation, request.top, size)
        places: list[JsonValue] = [[{str(token): own for token, own in row}] for row in rows]
        answer["logprobs"] = [places] * count
    if request.prompt_top is not None:
        # The first token of a prompt has no logprob, because nothing precedes it.
        scored: list[Any] = [{str(one): own for one, own in row} for row in prompt_rows(generation, request.prompt_top, size)]
        answer["prompt_logprobs"] = [None, *scored]
    return answer


def sglang_answer(request: Request, generation: Generation, *, size: int) -> JsonObject | list[JsonValue]:
    """Return the answer in SGLang's format: an object, or a list for ``n`` above 1, and of nothing."""
    answers = [_sglang_one(request, generation, index, size) for index in range(0 if generation.is_empty else request.n)]
    return answers[0] if len(answers) == 1 else [*answers]


def _sglang_one(request: Request, generation: Generation, index: int, size: int) -> JsonObject:
    sample = generation.sample
    if sample.finish == "length":
        finish: JsonObject = {"type": "length", "length": len(sample.ids)}
    else:
        finish = {"type": "stop", "matched": sample.matched}
    meta: JsonObject = {
        "id": f"{generation.key}:{index}",
        "finish_reason": finish,
        "prompt_tokens": len(generation.prompt),
        "completion_tokens": len(sample.ids),
        "cached_tokens": 0,
    }
    if request.top is not None and generation.logprobs != "missing":
        rows = rows_of(generation, request.top, size)
        meta["output_token_logprobs"] = [[own, token, None] for (token, own), *_ in rows]
        if request.top:
            meta["output_top_logprobs"] = [[[own, token, None] for token, own in row] for row in rows]
    if request.prompt_top is not None:
        scored = prompt_rows(generation, request.prompt_top, size)
        tops: list[Any] = [[[own, token, None] for token, own in row] for row in scored]
        meta["input_token_logprobs"] = [[None, generation.prompt[0], None], *(row[0] for row in tops)]
        if request.prompt_top:
            meta["input_top_logprobs"] = [None, *tops]
    ids: JsonObject = {"prompt_token_ids": list(generation.prompt)} if request.returns_prompt else {}
    return {"text": sample.text, "output_ids": list(sample.ids), "meta_info": meta, **ids}


def rows_of(generation: Generation, top: int, size: int) -> list[list[tuple[int, float | None]]]:
    """Return for each sampled token the token and its alternatives with logprobs, as scripted: short, or without numbers."""
    places = list(enumerate(generation.sample.ids, start=len(generation.prompt)))
    if generation.logprobs == "short":
        places = places[:-1]
    if generation.logprobs == "null":
        return [[(token, None)] for _, token in places]
    return [_row(generation.seed, place, token, top - 1, size, generation.temperature) for place, token in places]


def prompt_rows(generation: Generation, top: int, size: int) -> list[list[tuple[int, float | None]]]:
    """Return the same for each token of the prompt but the first."""
    return [_row(generation.seed, place, token, top - 1, size) for place, token in enumerate(generation.prompt[1:], start=1)]


def _row(seed: int, place: int, token: int, others: int, size: int, temperature: float = 1.0) -> list[tuple[int, float | None]]:
    own = logprob(seed, place, token)
    row = [(token, own), *(alternatives(own, token, others, size) if others > 0 else [])]
    if temperature == 1:
        return [*row]
    shift = normaliser(own, _rest(own), temperature)
    return [(one, raw / temperature - shift) for one, raw in row]


def _bad(path: str, what: str, seen: object) -> UnexpectedRequest:
    return UnexpectedRequest(
        f"the request to {path} cannot be read: {what}.\n"
        f"  seen      {shorten(repr(seen))}\n"
        "  fix       send a request like VLLMServer or SGLangServer of atroposlib: hermes-env docs mock-model"
    )


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
    rest = _rest(own)
    return [((token + place) % size, math.log(rest) - place * math.log(2)) for place in range(1, min(count, size - 1) + 1)]


def _rest(own: float) -> float:
    """Return the probability of all other tokens together; each of them is less likely than the sampled one."""
    return min(-math.expm1(own), math.exp(own))
