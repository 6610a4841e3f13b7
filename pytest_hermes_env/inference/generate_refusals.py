"""The requests to ``/generate`` that vLLM and SGLang refuse.

Source: ``example_trainer/vllm_api_server.py`` of atroposlib 0.4.0, which passes all fields to vLLM's ``SamplingParams``; vLLM 0.33,
``sampling_params.py``; SGLang 0.5.23, ``api/v1/api_types.py``, ``srt/entrypoints/http_server.py`` and ``srt/sampling/sampling_params.py``.
"""

# ruff: noqa: PLR2004 -- the limits are the servers' own
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any

from pytest_hermes_env.inference.refusals import BAD_REQUEST, SERVER_ERROR, Refusal

Rule = tuple[Callable[[Mapping[str, Any]], bool], str]
"""What must hold for the parameters, and what the server says if it does not."""

VLLM_FIELDS = frozenset([
    "n", "best_of", "presence_penalty", "frequency_penalty", "repetition_penalty", "temperature", "watermarking", "top_p", "top_k",
    "min_p", "seed", "stop", "stop_token_ids", "ignore_eos", "max_tokens", "min_tokens", "logprobs", "prompt_logprobs",
    "prompt_logprob_token_ids", "prompt_logprob_start", "logprob_token_ids", "flat_logprobs", "detokenize", "skip_special_tokens",
    "spaces_between_special_tokens", "include_stop_str_in_output", "output_kind", "stream_interval", "skip_clone",
    "output_text_buffer_length", "truncate_prompt_tokens", "structured_outputs", "guided_decoding", "logit_bias",
    "logits_processors", "allowed_token_ids", "extra_args", "bad_words", "skip_reading_prefix_cache", "thinking_token_budget",
    "repetition_detection", "routed_experts_prompt_start", "trace_decode_token_ids",
])  # fmt: skip
"""The fields of vLLM's ``SamplingParams``, of all its versions."""
VLLM_ENVELOPE = frozenset({"prompt", "stream"})
VLLM_DEFAULTS: Mapping[str, Any] = {
    "n": 1, "presence_penalty": 0.0, "frequency_penalty": 0.0, "repetition_penalty": 1.0, "temperature": 1.0, "top_p": 1.0,
    "top_k": 0, "min_p": 0.0, "max_tokens": 16, "min_tokens": 0, "logprobs": None, "prompt_logprobs": None, "stop": None,
    "bad_words": None, "detokenize": True,
}  # fmt: skip
VLLM_RULES: tuple[Rule, ...] = (
    (lambda p: isinstance(p["n"], int), "n must be an int, but is of type {n.__class__}"),
    (lambda p: p["n"] >= 1, "n must be at least 1, got {n}."),
    (lambda p: -2 <= p["presence_penalty"] <= 2, "presence_penalty must be in [-2, 2], got {presence_penalty}."),
    (lambda p: -2 <= p["frequency_penalty"] <= 2, "frequency_penalty must be in [-2, 2], got {frequency_penalty}."),
    (lambda p: isfinite(p["repetition_penalty"]), "repetition_penalty must be a finite number, got {repetition_penalty}."),
    (lambda p: p["repetition_penalty"] > 0, "repetition_penalty must be greater than zero, got {repetition_penalty}."),
    (lambda p: isfinite(p["temperature"]), "temperature must be a finite number, got {temperature}."),
    (lambda p: p["temperature"] >= 0, "temperature must be non-negative, got {temperature}."),
    (lambda p: p["temperature"] <= 2, "temperature must be in [0, 2], got {temperature}."),
    (lambda p: 0 < p["top_p"] <= 1, "top_p must be in (0, 1], got {top_p}."),
    (lambda p: p["top_k"] >= -1, "top_k must be 0 (disable), or at least 1, got {top_k}."),
    (lambda p: isinstance(p["top_k"], int), "top_k must be an integer, got {top_k.__class__.__name__}"),
    (lambda p: 0 <= p["min_p"] <= 1, "min_p must be in [0, 1], got {min_p}."),
    (lambda p: p["max_tokens"] is None or p["max_tokens"] >= 1, "max_tokens must be at least 1, got {max_tokens}."),
    (lambda p: p["min_tokens"] >= 0, "min_tokens must be greater than or equal to 0, got {min_tokens}."),
    (
        lambda p: p["max_tokens"] is None or p["min_tokens"] <= p["max_tokens"],
        "min_tokens must be less than or equal to max_tokens={max_tokens}, got {min_tokens}.",
    ),
    (lambda p: p["logprobs"] is None or p["logprobs"] >= -1, "logprobs must be non-negative or -1, got {logprobs}."),
    (
        lambda p: p["prompt_logprobs"] is None or p["prompt_logprobs"] >= -1,
        "prompt_logprobs must be non-negative or -1, got {prompt_logprobs}.",
    ),
    (lambda p: all([p["stop"]] if isinstance(p["stop"], str) else p["stop"] or ()), "stop cannot contain an empty string."),
    (
        lambda p: p["detokenize"] or not p["stop"],
        "stop strings are only supported when detokenize is True. Set detokenize=True to use stop.",
    ),
    (lambda p: all(p["bad_words"] or ()), "bad_words cannot contain an empty string. Got bad_words={bad_words}"),
    (lambda p: p["temperature"] > 0 or p["n"] == 1, "n must be 1 when using greedy sampling, got {n}."),
)

STRINGS = "a value or an array of values for StringOrList"
SGLANG_FIELDS: Mapping[str, tuple[str, ...]] = {
    "max_new_tokens": ("i64",), "stop": (STRINGS, "a string"), "stop_token_ids": ("a sequence", "i64"),
    "stop_regex": (STRINGS, "a string"), "temperature": ("f64",), "top_p": ("f64",), "top_k": ("i64",), "min_p": ("f64",),
    "frequency_penalty": ("f64",), "presence_penalty": ("f64",), "repetition_penalty": ("f64",), "min_new_tokens": ("i64",),
    "n": ("i64",), "json_schema": ("a string",), "regex": ("a string",), "ebnf": ("a string",), "structural_tag": ("a string",),
    "ignore_eos": ("a boolean",), "skip_special_tokens": ("a boolean",), "spaces_between_special_tokens": ("a boolean",),
    "no_stop_trim": ("a boolean",), "stream_interval": ("i64",), "logit_bias": ("a map", "f64"), "sampling_seed": ("i64",),
    "custom_params": (), "beam_width": ("i64",), "watermark": ("struct WatermarkRequestConfig",), "choice": ("a sequence", "a string"),
}  # fmt: skip
"""The fields of SGLang's ``sampling_params`` and their types, as its errors name them: of the value, and of its elements."""
SGLANG_TYPES: Mapping[str, tuple[type, ...]] = {
    "i64": (int,), "f64": (int, float), "a string": (str,), "a boolean": (bool,), "a sequence": (list,), "a map": (dict,),
    STRINGS: (str, list), "struct WatermarkRequestConfig": (dict,),
}  # fmt: skip
SGLANG_DEFAULTS: Mapping[str, Any] = {
    "max_new_tokens": 128, "temperature": 1.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "frequency_penalty": 0.0,
    "presence_penalty": 0.0, "repetition_penalty": 1.0, "min_new_tokens": 0, "beam_width": 1, "sampling_seed": 0,
}  # fmt: skip
GREEDY = 1e-6
"""Below this temperature, SGLang ignores ``top_k``."""
GRAMMARS = ("json_schema", "regex", "ebnf", "structural_tag")
SGLANG_RULES: tuple[Rule, ...] = (
    (lambda p: p["beam_width"] >= 1, "beam_width must be at least 1, got {beam_width}."),
    (
        lambda p: isfinite(p["temperature"]) and p["temperature"] >= 0,
        "temperature must be a non-negative finite number, got {temperature}.",
    ),
    (lambda p: 0 < p["top_p"] <= 1, "top_p must be in (0, 1], got {top_p}."),
    (lambda p: 0 <= p["min_p"] <= 1, "min_p must be in [0, 1], got {min_p}."),
    (
        lambda p: p["top_k"] >= 1 or p["top_k"] == -1 or p["temperature"] < GREEDY,
        "top_k must be -1 (disable) or at least 1, got {top_k}.",
    ),
    (lambda p: -2 <= p["frequency_penalty"] <= 2, "frequency_penalty must be in [-2, 2], got {frequency_penalty}."),
    (lambda p: -2 <= p["presence_penalty"] <= 2, "presence_penalty must be in [-2, 2], got {presence_penalty}."),
    (
        lambda p: 0 < p["repetition_penalty"] <= 2,
        "repetition_penalty must be in (0, 2] (1.0 = no penalty), got {repetition_penalty}.",
    ),
    (lambda p: p["min_new_tokens"] >= 0, "min_new_tokens must be in [0, max_new_tokens], got {min_new_tokens}."),
    (lambda p: p["max_new_tokens"] >= 0, "max_new_tokens must be at least 0, got {max_new_tokens}."),
    (
        lambda p: p["min_new_tokens"] <= p["max_new_tokens"],
        "min_new_tokens must be in [0, max_new_tokens({max_new_tokens})], got {min_new_tokens}.",
    ),
    (lambda p: -(2**63) <= p["sampling_seed"] < 2**63, "sampling_seed must be in [-2**63, 2**63 - 1], got {sampling_seed}."),
    (
        lambda p: sum(bool(p.get(name)) for name in GRAMMARS) <= 1,
        "Only one of json_schema, regex, ebnf, or structural_tag can be set.",
    ),
)


def generate_refusal(body: Mapping[str, object]) -> Refusal | None:
    """Return why vLLM or SGLang refuses a request to ``/generate``, or None."""
    if "prompt" in body:
        return _vllm_refusal(body)
    sampling = body.get("sampling_params")
    return _sglang_refusal(sampling) if isinstance(sampling, dict) else None


def _vllm_refusal(body: Mapping[str, object]) -> Refusal | None:
    unknown = next((name for name in body if name not in VLLM_FIELDS | VLLM_ENVELOPE), None)
    try:
        broken = _broken_rule(VLLM_RULES, {**VLLM_DEFAULTS, **body})
    except TypeError as error:
        broken = f"TypeError: {error}"
    if unknown is not None:
        broken = f"TypeError: Unexpected keyword argument '{unknown}'"
    if broken is None:
        return None
    # The server does not catch the exception of SamplingParams, so its answer names no cause.
    answer = "Internal Server Error"
    fix = "send fields that vLLM's SamplingParams takes"
    return Refusal(server="vLLM", status=SERVER_ERROR, body=answer, message=f"{answer} ({broken})", fix=fix)


def _sglang_refusal(sampling: Mapping[str, Any]) -> Refusal | None:
    for name, value in sampling.items():
        if name not in SGLANG_FIELDS:
            message = f"unknown field `{name}`, expected one of {', '.join(f'`{known}`' for known in SGLANG_FIELDS)}"
            return _sglang_says(message, {"error": message}, f"remove {name!r} from 'sampling_params'")
        if value is not None and (error := _type_error(value, *SGLANG_FIELDS[name])):
            return _sglang_says(error, {"error": error}, f"correct the type of {name!r} in 'sampling_params'")
    given = {name: value for name, value in sampling.items() if value is not None}
    broken = _broken_rule(SGLANG_RULES, {**SGLANG_DEFAULTS, **given})
    return None if broken is None else _sglang_says(broken, {"error": {"message": broken}}, "correct 'sampling_params'")


def _sglang_says(message: str, body: Any, fix: str) -> Refusal:
    return Refusal(server="SGLang", status=BAD_REQUEST, body=body, message=message, fix=fix)


def _broken_rule(rules: Iterable[Rule], parameters: Mapping[str, Any]) -> str | None:
    return next((text.format_map(parameters) for holds, text in rules if not holds(parameters)), None)


def _type_error(value: Any, expected: str = "", of_elements: str = "") -> str | None:
    """Return SGLang's error for a value of another type, or with an element of another type."""
    if not expected:
        return None
    if not isinstance(value, SGLANG_TYPES[expected]) or (isinstance(value, bool) and expected != "a boolean"):
        return f"invalid type: {_serde_words(value)}, expected {expected}"
    elements = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((error for one in elements if (error := _type_error(one, of_elements))), None)


def _serde_words(value: object) -> str:
    """Return how serde, the JSON library of SGLang's servers, describes an unexpected value."""
    if isinstance(value, bool):
        return f"boolean `{str(value).lower()}`"
    if isinstance(value, str):
        return f'string "{value}"'
    if isinstance(value, int | float):
        return f"{'integer' if isinstance(value, int) else 'floating point'} `{value}`"
    if value is None:
        return "null"
    return "sequence" if isinstance(value, list) else "map"
