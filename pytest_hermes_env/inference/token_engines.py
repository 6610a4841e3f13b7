"""What the mock model is like as `vllm serve`, SGLang or Atropos' server: its endpoints, what it refuses, and its logprobs.

Place in the flow: `MockModel` asks `endpoint_answer` and `vllm_refusal` first.
Source: vLLM 0.33, ``entrypoints/openai/completion`` and ``config/model.py``; SGLang 0.5.23, ``srt/entrypoints/http_server.py`` and
``srt/layers/sampler.py``; ``example_trainer/vllm_api_server.py`` of atroposlib 0.4.0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from pytest_hermes_env.inference.wire import error_body

if TYPE_CHECKING:
    from pytest_hermes_env.types import JsonObject

Engine: TypeAlias = Literal["any", "vllm", "sglang", "atropos"]
"""``any`` has the endpoints of all; ``/version`` and ``/model_info`` name none."""
LogprobsMode: TypeAlias = Literal["raw_logprobs", "processed_logprobs"]
ENGINES: tuple[str, ...] = get_args(Engine)
MODES: tuple[str, ...] = get_args(LogprobsMode)

VERSIONS: Mapping[str, tuple[str, str]] = {"/version": ("vllm", "version"), "/model_info": ("sglang", "model_path")}
"""The engine that answers such a request, and the field of its answer."""
_OPENAI = ("/chat/completions", "/completions", "/models")
_TOKENS = "/inference/v1/generate"
LACKING: Mapping[str, tuple[str, ...]] = {
    "vllm": ("/generate",),
    "sglang": (_TOKENS,),
    "atropos": (*_OPENAI, _TOKENS),
    "any": (),
}
VLLM_VERSION = "0.33.0"
WITH_TOKENS, WITH_IDS = (0, 11, 1), (0, 10, 2)
"""The versions of vLLM from which it has ``/inference/v1/generate``, and ``return_token_ids``."""
DEFAULT_MODES: Mapping[str, str] = dict.fromkeys(ENGINES, "raw_logprobs") | {"sglang": "processed_logprobs"}
MAX_LOGPROBS = 20
NOT_FOUND, BAD_REQUEST = 404, 400
COLDEST, COLDEST_OF_ALL = 0.01, 1e-5
"""vLLM samples at no lower temperature than the first, unless it takes the likeliest token: below the second."""


def numbers_of(version: str) -> tuple[int, ...]:
    """Return a version for comparisons. Raises: ValueError for one that is not numbers and dots."""
    return tuple(int(part) for part in version.split("."))


def endpoint_answer(engine: Engine, path: str, model: str, version: str = VLLM_VERSION) -> tuple[int, JsonObject] | None:
    """Return status and body of a request to an endpoint that the engine lacks, or that says what it is; None for any other."""
    if path in VERSIONS:
        owner, field = VERSIONS[path]
        if engine == owner:
            return 200, {field: version if field == "version" else model}
    elif not path.startswith(LACKING[engine]) and (path != _TOKENS or numbers_of(version) >= WITH_TOKENS):
        return None
    return NOT_FOUND, {"detail": "Not Found"}


def vllm_refusal(body: Mapping[str, Any], model: str) -> tuple[int, JsonObject] | None:
    """Return how `vllm serve` refuses another model, more logprobs than it has, or sampling that it cannot do; None for any other request."""
    if body.get("model") not in {None, model}:
        text = f"The model `{body['model']}` does not exist."
        return NOT_FOUND, error_body(text, kind="NotFoundError", param="model", code="404")
    sampling = body["sampling_params"] if isinstance(body.get("sampling_params"), dict) else body
    temperature, count = sampling.get("temperature"), sampling.get("n")
    if isinstance(temperature, int | float) and temperature < COLDEST_OF_ALL and isinstance(count, int) and count > 1:
        text = f"n must be 1 when using greedy sampling, got {count}."
        return BAD_REQUEST, error_body(text, kind="BadRequestError", param="n", code="400")
    for field, kind in (("logprobs", "sample"), ("prompt_logprobs", "prompt")):
        count = sampling.get(field)
        if isinstance(count, int) and count > MAX_LOGPROBS:
            text = f"Requested {kind} logprobs of {count}, which is greater than max allowed: {MAX_LOGPROBS}"
            return BAD_REQUEST, error_body(text, kind="BadRequestError", param=field, code="400")
    return None


def normaliser(own: float, rest: float, temperature: float) -> float:
    """Return what is subtracted from each logprob divided by the temperature: all tokens are the sampled one and halves of ``rest``."""
    weights = [own, *(math.log(rest) - place * math.log(2) for place in range(1, 60))]
    return math.log(sum(math.exp(weight / temperature) for weight in weights))
