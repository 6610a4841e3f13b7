"""The requests to ``/generate`` that vLLM and SGLang refuse: their sampling parameters, as types.

Place in the flow: loaded with the first request to ``/generate``, because pydantic takes 100 ms.
Source: ``example_trainer/vllm_api_server.py`` of atroposlib 0.4.0, which passes all fields to vLLM's ``SamplingParams``; vLLM 0.33,
``sampling_params.py``; SGLang 0.5.23, ``srt/entrypoints/http_server.py`` and ``srt/sampling/sampling_params.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from pytest_hermes_env.errors import shorten
from pytest_hermes_env.inference.refusals import BAD_REQUEST, SERVER_ERROR, Refusal
from pytest_hermes_env.inference.wire import error_body

Penalty: TypeAlias = Annotated[float, Field(ge=-2, le=2)]
Share: TypeAlias = Annotated[float, Field(gt=0, le=1)]
Text: TypeAlias = Annotated[str, Field(min_length=1)]
Texts: TypeAlias = Text | list[Text] | None
OTHERWISE_NAMED = frozenset({"logprobs", "prompt_logprobs", "max_tokens"})
"""Fields of ``SamplingParams`` that a request to the OpenAI endpoints names, or means, otherwise."""
PROMPT = frozenset({"prompt", "stream"})
GREEDY = 1e-6
"""Below this temperature, SGLang ignores ``top_k``."""
GRAMMARS = ("json_schema", "regex", "ebnf", "structural_tag")


class _Vllm(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    n: Annotated[int, Field(ge=1)] = 1
    presence_penalty: Penalty = 0
    frequency_penalty: Penalty = 0
    repetition_penalty: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1
    temperature: Annotated[float, Field(ge=0, le=2)] = 1
    top_p: Share = 1
    top_k: Annotated[int, Field(ge=-1)] = 0
    min_p: Annotated[float, Field(ge=0, le=1)] = 0
    max_tokens: Annotated[int, Field(ge=1)] | None = 16
    min_tokens: Annotated[int, Field(ge=0)] = 0
    logprobs: Annotated[int, Field(ge=0)] | None = None  # -1, for the whole vocabulary, is not played
    prompt_logprobs: Annotated[int, Field(ge=0)] | None = None
    stop: Texts = None
    bad_words: list[Text] | None = None
    detokenize: bool = True


class _Sglang(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    n: Annotated[int, Field(ge=1)] = 1
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1
    top_p: Share = 1
    top_k: int = -1
    min_p: Annotated[float, Field(ge=0, le=1)] = 0
    presence_penalty: Penalty = 0
    frequency_penalty: Penalty = 0
    repetition_penalty: Annotated[float, Field(gt=0, le=2)] = 1
    max_new_tokens: Annotated[int, Field(ge=0)] = 128
    min_new_tokens: Annotated[int, Field(ge=0)] = 0
    beam_width: Annotated[int, Field(ge=1)] = 1
    sampling_seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] = 0
    stream_interval: int = 1
    stop: str | list[str] = ""
    stop_regex: str | list[str] = ""
    stop_token_ids: list[int] = []
    logit_bias: dict[str, float] = {}
    json_schema: str = ""
    regex: str = ""
    ebnf: str = ""
    structural_tag: str = ""
    ignore_eos: bool = False
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    no_stop_trim: bool = False
    custom_params: Any = None
    watermark: dict[str, Any] = {}
    choice: list[str] = []


OTHER_FIELDS_OF_VLLM = frozenset([
    "best_of", "watermarking", "seed", "stop_token_ids", "ignore_eos", "prompt_logprob_token_ids", "prompt_logprob_start",
    "logprob_token_ids", "flat_logprobs", "skip_special_tokens", "spaces_between_special_tokens",
    "include_stop_str_in_output", "output_kind", "stream_interval", "skip_clone", "output_text_buffer_length",
    "truncate_prompt_tokens", "structured_outputs", "guided_decoding", "logit_bias", "logits_processors",
    "allowed_token_ids", "extra_args", "skip_reading_prefix_cache", "thinking_token_budget", "repetition_detection",
    "routed_experts_prompt_start", "trace_decode_token_ids",
])  # fmt: skip
"""Fields of ``SamplingParams``, of all versions, whose values are not checked."""

Vllm: Any = create_model("Vllm", __base__=_Vllm, **dict.fromkeys(OTHER_FIELDS_OF_VLLM, (Any, None)))  # type: ignore[call-overload]


def generate_refusal(body: Mapping[str, object]) -> Refusal | None:
    """Return why vLLM or SGLang refuses a request to ``/generate``, or None."""
    if "prompt" in body:
        found = _misfit(Vllm, {name: value for name, value in body.items() if name not in PROMPT})
        # The server does not catch the exception of SamplingParams, so its answer names no cause.
        return found and Refusal(server="vLLM", status=SERVER_ERROR, body="Internal Server Error", field=found[0], why=found[1])
    sampling = body.get("sampling_params")
    if "token_ids" in body and isinstance(sampling, dict):  # of vLLM's ``/inference/v1/generate``, which ignores unknown fields
        found = _misfit(Vllm, {name: value for name, value in sampling.items() if name in Vllm.model_fields})
        told = error_body(": ".join(found or ()), kind="BadRequestError", code="400")
        return found and Refusal(server="vLLM", status=BAD_REQUEST, body=told, field=found[0], why=found[1])
    if not isinstance(sampling, dict):
        return None
    found = _misfit(_Sglang, {name: value for name, value in sampling.items() if value is not None})
    message: Any = {"error": {"message": ": ".join(found)}} if found else {}
    return found and Refusal(server="SGLang", status=BAD_REQUEST, body=message, field=found[0], why=found[1])


def sampling_refusal(body: Mapping[str, object]) -> Refusal | None:
    """Return why vLLM refuses the sampling parameters of a request to its OpenAI endpoints, or None. Its logprobs are checked elsewhere."""
    sampling = {name: body[name] for name in _Vllm.model_fields if name not in OTHERWISE_NAMED and body.get(name) is not None}
    limits = [body[name] for name in ("max_tokens", "max_completion_tokens") if body.get(name) is not None]
    found = _misfit(Vllm, {**sampling, "max_tokens": min(limits, default=None)})  # type: ignore[type-var]  # numbers, as checked before
    told = error_body(": ".join(found or ()), kind="BadRequestError", code="400")
    return found and Refusal(server="vLLM", status=BAD_REQUEST, body=told, field=found[0], why=found[1])


def _misfit(kind: Any, parameters: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the field that is refused, and why."""
    try:
        read = kind(**parameters)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return str(first["loc"][0]), f"{first['msg'][0].lower()}{first['msg'][1:]}, got {shorten(repr(first['input']))}"
    return _conflict_of_vllm(read) if kind is Vllm else _conflict_of_sglang(read)


def _conflict_of_vllm(read: Any) -> tuple[str, str] | None:
    if read.max_tokens is not None and read.min_tokens > read.max_tokens:
        return "min_tokens", f"must be at most max_tokens, got {read.min_tokens} and {read.max_tokens}"
    if read.stop and not read.detokenize:
        return "stop", "requires detokenize"
    if read.temperature == 0 and read.n > 1:
        return "n", f"must be 1 at temperature 0, got {read.n}"
    return None


def _conflict_of_sglang(read: _Sglang) -> tuple[str, str] | None:
    if read.top_k != -1 and read.top_k < 1 and read.temperature >= GREEDY:
        return "top_k", f"must be -1 or at least 1, got {read.top_k}"
    if read.min_new_tokens > read.max_new_tokens:
        return "min_new_tokens", f"must be at most max_new_tokens, got {read.min_new_tokens} and {read.max_new_tokens}"
    if len(given := [name for name in GRAMMARS if getattr(read, name)]) > 1:
        return given[1], f"cannot be combined with {given[0]}"
    return None
