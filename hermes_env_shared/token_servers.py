"""How model servers return exactly the tokens that they sampled: the requests and the answers of three kinds of server.

Place in the flow: `environments.tokens.exact_tokens` asks with these for every turn in token mode, live mode's preflight for its two
questions. Pure functions; the caller sends the requests.

Source: vLLM 0.10.2 to 0.33, ``entrypoints/openai/completion`` (`VLLM`); SGLang 0.5.23, ``srt/managers`` (`SGLANG`); atroposlib 0.4.0,
``example_trainer/vllm_api_server.py`` (`ATROPOS`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Answer = Any
ADVICE = (
    "Token mode needs the id and the logprob of every sampled token: from vLLM as token_ids and token_logprobs, or [{id: logprob}] for "
    "each token, from SGLang as meta_info.output_token_logprobs."
)


class BadAnswer(ValueError):
    """An answer without exact tokens. Its text continues a sentence that begins with the server."""


@dataclass(frozen=True, kw_only=True)
class Completion:
    """One sampled reply. ``prompt`` are the ids that the server worked on, or their number; None where it does not say.

    ``tops``: for each token the logprobs of the most likely ones and of itself, by id; empty where none were asked for.
    """

    tokens: list[int]
    logprobs: list[Any]
    finish_reason: Any
    text: Any = None
    prompt: Sequence[int] | int | None = None
    tops: Sequence[Mapping[int, float]] = ()


@dataclass(frozen=True, kw_only=True)
class Wire:
    """One kind of server. ``body(model, prompt, sampling, top)`` is the request; ``top`` asks for that many other tokens.

    ``processed`` says how to get the logprobs with which the server samples.
    """

    name: str
    path: str
    body: Callable[[str, list[int], Mapping[str, Any], int], dict[str, Any]]
    read: Callable[[Answer], list[Completion]]
    processed: str

    def url(self, base_url: str) -> str:
        """Return the address of the requests."""
        return f"{root_of(base_url)}{self.path}"


def root_of(base_url: str) -> str:
    """Return a server's address without ``/v1``."""
    return base_url.rstrip("/").removesuffix("/v1")


def message_of(body: Any) -> str:
    """Return the message of an error answer of any common shape: ``{"error": {"message"}}``, ``{"error"}``, ``{"detail"}``; else ""."""
    for key in ("error", "detail", "message"):
        said = body.get(key) if isinstance(body, dict) else None
        said = said.get("message") if isinstance(said, dict) else said
        if isinstance(said, str):
            return said
    return ""


def _renamed(sampling: Mapping[str, Any], limit: str) -> dict[str, Any]:
    """Return the sampling parameters with the server's name for the largest number of tokens."""
    names = ("max_tokens", "max_new_tokens", "max_completion_tokens")
    return {limit if name in names else name: value for name, value in sampling.items()}


def _all_of(with_logprobs: list[int], sampled: Sequence[int], matched: Any = None) -> list[int]:
    """Return the sampled ids, of which each has its logprob or none. ``matched`` is an id that ended the reply, and may be left out."""
    for place, (own, other) in enumerate(zip(with_logprobs, sampled, strict=False)):
        if own != other:
            raise BadAnswer(
                f"returned as the logprob of sampled token {place} that of id {own}, but id {other} was sampled. {ADVICE}"
            )
    extra = with_logprobs[len(sampled) :] if sampled else []
    if extra and (extra != [matched] or sampled[-1] == matched):
        raise BadAnswer(
            f"returned {len(with_logprobs)} logprobs for {len(sampled)} sampled tokens; there must be one for each token. {ADVICE}"
        )
    return list(sampled) if len(sampled) > len(with_logprobs) else with_logprobs


# ---------------------------------------------------------------------- vllm serve

_ID = "token_id:"


def _vllm_body(model: str, prompt: list[int], sampling: Mapping[str, Any], top: int) -> dict[str, Any]:
    how = {"logprobs": top, "return_token_ids": True, "return_tokens_as_token_ids": True}
    return {"model": model, "prompt": prompt, **how, **_renamed(sampling, "max_tokens")}


def _read_vllm(answer: Answer) -> list[Completion]:
    return [_vllm_choice(choice) for choice in sorted(answer["choices"], key=lambda choice: choice.get("index", 0))]


def _vllm_choice(choice: Mapping[str, Any]) -> Completion:
    sampled, logged = choice.get("token_ids"), choice.get("logprobs") or {}
    if sampled is None:
        raise BadAnswer(
            f"returned a text without its token_ids: vllm serve returns them from 0.10.2 on (return_token_ids). {ADVICE}"
        )
    names, logprobs = logged.get("tokens") or [], logged.get("token_logprobs") or []
    ids = [int(name.removeprefix(_ID)) for name in names if name.startswith(_ID)]
    return Completion(
        tokens=_all_of(ids, sampled) if len(ids) == len(names) else list(sampled),
        logprobs=list(logprobs),
        finish_reason=choice["finish_reason"],
        text=choice.get("text"),
        prompt=choice.get("prompt_token_ids"),
        tops=[
            {int(name.removeprefix(_ID)): own for name, own in (place or {}).items() if name.startswith(_ID)}
            for place in logged.get("top_logprobs") or []
        ],
    )


VLLM = Wire(
    name="vllm serve",
    path="/v1/completions",
    body=_vllm_body,
    read=_read_vllm,
    processed="start it with --logprobs-mode processed_logprobs (vLLM's default is raw_logprobs)",
)

# ---------------------------------------------------------------------- Atropos' vllm_api_server.py


def _atropos_body(_: str, prompt: list[int], sampling: Mapping[str, Any], top: int) -> dict[str, Any]:
    return {"prompt": {"prompt_token_ids": prompt}, "logprobs": top, **_renamed(sampling, "max_tokens")}


def _read_atropos(answer: Answer) -> list[Completion]:
    reasons = list(answer["finish_reasons"])
    logged = answer.get("logprobs") or [[]] * len(reasons)
    rows = [[{int(token): own for entry in place for token, own in entry.items()} for place in places] for places in logged]
    ids = [[next(iter(place)) for place in row] for row in rows]  # the sampled token is the first
    tokens = [_all_of(own, sampled) for own, sampled in zip(ids, answer.get("token_ids") or ids, strict=True)]
    if len(tokens) != len(reasons):
        raise BadAnswer(f"returned {len(tokens)} completions and {len(reasons)} finish reasons. {ADVICE}")
    texts = answer.get("text") or []
    return [
        Completion(
            tokens=row,
            logprobs=[next(iter(place.values())) for place in rows[number]],
            finish_reason=reasons[number],
            text=texts[number] if number < len(texts) else None,
            prompt=answer.get("prompt_token_ids"),
            tops=rows[number],
        )
        for number, row in enumerate(tokens)
    ]


ATROPOS = Wire(
    name="Atropos' vllm_api_server",
    path="/generate",
    body=_atropos_body,
    read=_read_atropos,
    processed=VLLM.processed,
)

# ---------------------------------------------------------------------- SGLang


def _sglang_body(_: str, prompt: list[int], sampling: Mapping[str, Any], top: int) -> dict[str, Any]:
    how = {"return_logprob": True, "return_text_in_logprobs": False, **({"top_logprobs_num": top} if top else {})}
    return {"input_ids": prompt, "sampling_params": _renamed(sampling, "max_new_tokens"), **how}


def _read_sglang(answer: Answer) -> list[Completion]:
    return [_sglang_one(one) for one in (answer if isinstance(answer, list) else [answer])]


def _sglang_one(answer: Mapping[str, Any]) -> Completion:
    meta = answer["meta_info"]
    entries, reason = meta.get("output_token_logprobs") or [], meta.get("finish_reason")
    matched = reason.get("matched") if isinstance(reason, Mapping) else None
    ids = _all_of([entry[1] for entry in entries], answer.get("output_ids") or [], matched)
    if meta.get("completion_tokens", 0) > len(ids):
        raise BadAnswer(f"sampled {meta['completion_tokens']} tokens and returned the ids of {len(ids)}. {ADVICE}")
    return Completion(
        tokens=ids,
        logprobs=[entry[0] for entry in entries],
        finish_reason=reason,
        text=answer.get("text"),
        prompt=meta.get("prompt_tokens"),
        tops=[{entry[1]: entry[0] for entry in place or ()} for place in meta.get("output_top_logprobs") or []],
    )


SGLANG = Wire(
    name="SGLang",
    path="/generate",
    body=_sglang_body,
    read=_read_sglang,
    processed="start it without SGLANG_RETURN_ORIGINAL_LOGPROB=1",
)


def wires_to_try(server_type: str, version: Any, model_info: Any) -> list[Wire]:
    """Return the kinds that a server may be, likely ones first, from its answers to ``GET /version`` and ``GET /model_info``.

    None is an answer without JSON. The address decides, and ``server_type`` only where the server says neither.
    """
    if isinstance(model_info, dict) and "model_path" in model_info:
        return [SGLANG]
    if isinstance(version, dict) and "version" in version:
        return [VLLM, ATROPOS]
    return [SGLANG, VLLM, ATROPOS] if server_type == "sglang" else [ATROPOS, VLLM, SGLANG]
