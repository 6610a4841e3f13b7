"""What an inference server says it sampled, read from the answers of vLLM and SGLang."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator
from typing import Any

import pytest
from atroposlib.envs.server_handling.server_baseline import APIServer, APIServerConfig
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from environments.tokens.exact_tokens import (
    ExactSGLangServer,
    ExactVLLMServer,
    TokenModeError,
    exact_server_class,
    kept_connections,
)
from hermes_env_shared.logprob_check import NEUTRAL
from pytest_hermes_env.atropos import clients
from pytest_hermes_env.inference.server_thread import ServerThread
from pytest_hermes_env.play.builder import shared_tokenizer

ADVICE = (
    " Token mode needs the id and the logprob of every sampled token: from vLLM as token_ids and token_logprobs, or [{id: logprob}] for "
    "each token, from SGLang as meta_info.output_token_logprobs."
)


class Backend:
    """Answers /generate with what the test says; keeps the requests."""

    def __init__(self) -> None:
        self.answer: Any = None
        self.requests: list[tuple[str | None, Any]] = []
        self.connections: list[Any] = []
        self.thread = ServerThread(Starlette(routes=[Route("/generate", self.generate, methods=["POST"])]), "127.0.0.1", 0)

    async def generate(self, request: Any) -> JSONResponse:
        self.connections.append(request.client)
        self.requests.append((request.headers.get("authorization"), await request.json()))
        return JSONResponse(self.answer)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.thread.port}/v1"


@pytest.fixture
def backend() -> Iterator[Backend]:
    """A server without a model."""
    served = Backend()
    served.thread.start()
    yield served
    served.thread.stop()


def complete(server_class: type, backend: Backend, **request: Any) -> Any:
    """Ask a server of that class for tokens, once and without retries."""

    async def scenario() -> Any:
        config = APIServerConfig(
            base_url=backend.url,
            model_name="m",
            api_key="k",
            tokenizer_name=shared_tokenizer("llama3"),
            health_check=False,
        )
        server = server_class(config)
        clients.tame(server, None)
        try:
            return await server.tokens_and_logprobs_completion(**request)
        finally:
            clients.release(server)

    return asyncio.run(scenario())


def vllm(pairs: list[tuple[int, float]], **fields: Any) -> dict[str, Any]:
    return {"logprobs": [[[{str(token): logprob}] for token, logprob in pairs]], "finish_reasons": ["stop"], **fields}


def sglang(pairs: list[tuple[int, float]], **fields: Any) -> dict[str, Any]:
    meta = {"output_token_logprobs": [[logprob, token, None] for token, logprob in pairs], "finish_reason": {"type": "stop"}}
    return {"meta_info": {**meta, **fields.pop("meta", {})}, **fields}


def test_request_to_vllm_is_atroposlibs(backend):
    """Ids, logprobs of the sampled tokens alone, and the sampling settings under vLLM's names."""
    backend.answer = vllm([(7, -0.5)])

    answer = complete(
        ExactVLLMServer, backend, input_ids=[1, 2], prompt="not used", max_completion_tokens=9, temperature=0.5, n=1
    )

    assert answer == ([1, 2], [[7]], [[-0.5]], ["stop"])
    assert backend.requests == [
        (
            "Bearer k",
            {"prompt": {"prompt_token_ids": [1, 2]}, "logprobs": 0, **NEUTRAL, "temperature": 0.5, "n": 1, "max_tokens": 9},
        )
    ]


def test_request_to_sglang_is_atroposlibs(backend):
    """The sampling settings under SGLang's names."""
    backend.answer = sglang([(7, -0.5)])

    answer = complete(ExactSGLangServer, backend, input_ids=[1, 2], max_tokens=9, temperature=0.5)

    assert answer == ([1, 2], [[7]], [[-0.5]], [{"type": "stop"}])
    assert backend.requests == [
        (
            "Bearer k",
            {
                "input_ids": [1, 2],
                "sampling_params": {**NEUTRAL, "temperature": 0.5, "max_new_tokens": 9},
                "return_logprob": True,
                "return_text_in_logprobs": False,
            },
        )
    ]


@pytest.mark.parametrize("server_class", [ExactVLLMServer, ExactSGLangServer])
def test_text_that_begins_twice_begins_once(backend, server_class):
    """Chat template and tokenizer both write the token that begins a text."""
    backend.answer = vllm([(7, -0.5)]) if server_class is ExactVLLMServer else sglang([(7, -0.5)])

    prompt, *_ = complete(server_class, backend, prompt="<|begin_of_text|>hi")

    (_, body) = backend.requests[0]
    sent = body["prompt"]["prompt_token_ids"] if server_class is ExactVLLMServer else body["input_ids"]
    assert prompt == sent
    assert sent.count(sent[0]) == 1


@pytest.mark.parametrize(
    ("server_class", "answer", "expected"),
    [
        (ExactVLLMServer, vllm([(7, -0.5)], token_ids=[[7, 8]]), ([[7, 8]], [[-0.5]])),
        (ExactVLLMServer, {"token_ids": [[7]], "logprobs": None, "finish_reasons": ["stop"]}, ([[7]], [[]])),
        (
            ExactSGLangServer,
            sglang([(7, -0.5), (8, -1.0)], output_ids=[7], meta={"finish_reason": {"type": "stop", "matched": 8}}),
            ([[7, 8]], [[-0.5, -1.0]]),
        ),
        (ExactSGLangServer, sglang([(7, -0.5)], output_ids=[7, 8]), ([[7, 8]], [[-0.5]])),
        (ExactSGLangServer, [sglang([(7, -0.5)]), sglang([(8, -1.0)])], ([[7], [8]], [[-0.5], [-1.0]])),
    ],
    ids=["fewer logprobs", "no logprobs", "end left out of the ids", "fewer logprobs of SGLang", "two of SGLang"],
)
def test_every_sampled_token_is_there(backend, server_class, answer, expected):
    """Also those without a logprob; what is missing is judged afterwards."""
    backend.answer = answer

    _, tokens, logprobs, _ = complete(server_class, backend, input_ids=[1])

    assert (tokens, logprobs) == expected


def test_ids_that_sglang_counts_and_does_not_give(backend):
    """Only the number of tokens shows that some are missing."""
    backend.answer = sglang([(7, -0.5)], meta={"completion_tokens": 3})

    with pytest.raises(TokenModeError) as error:
        complete(ExactSGLangServer, backend, input_ids=[1])

    assert str(error.value) == (
        f"The inference server {backend.url} (ExactSGLangServer) sampled 3 tokens and returned the ids of 1.{ADVICE}"
    )


def test_logprobs_of_other_tokens(backend):
    """A logprob belongs to the token that was sampled, or it says nothing."""
    backend.answer = vllm([(7, -0.5), (9, -0.5)], token_ids=[[7, 8]])

    with pytest.raises(TokenModeError) as error:
        complete(ExactVLLMServer, backend, input_ids=[1])

    assert str(error.value) == (
        f"The inference server {backend.url} (ExactVLLMServer) returned as the logprob of sampled token 1 that of id 9, but id 8 was "
        f"sampled.{ADVICE}"
    )


@pytest.mark.parametrize(
    ("top", "problem"),
    [
        ([[-0.9, 7, None]], "are not those of the sampled tokens: -0.5 was returned for id 7, which has -0.9"),
        (
            [[-0.7, 8, None]],
            "are not those of the sampled tokens: id 7 is not among the likeliest, and has more than they: -0.5",
        ),
        ([[-0.5, 7, None], [-0.9, 8, None]], ""),
        ([[-0.3, 8, None]], ""),
        (None, ""),
    ],
)
def test_an_answer_that_contradicts_itself(backend, top, problem):
    """Its own list of likely tokens has another figure for what was sampled; nobody can say which is right."""
    backend.answer = sglang([(7, -0.5)], meta={"output_top_logprobs": [top]})

    with pytest.raises(TokenModeError, match=re.escape(problem)) if problem else contextlib.nullcontext():
        complete(ExactSGLangServer, backend, input_ids=[1])


def test_classes_for_server_types():
    """Chat mode and trl keep atroposlib's."""
    classes: dict[str, type[APIServer] | None] = {
        kind: exact_server_class(kind) for kind in ("openai", "trl", "vllm", "sglang")
    }

    assert classes == {"openai": None, "trl": None, "vllm": ExactVLLMServer, "sglang": ExactSGLangServer}


def test_requests_of_a_rollout_share_a_connection(backend):
    """And nobody else has it: not what comes before or after, nor a task of the rollout that outlives it, nor a thread with a loop."""
    backend.answer = {}
    name = shared_tokenizer("llama3")
    server = ExactVLLMServer(APIServerConfig(base_url=backend.url, model_name="m", tokenizer_name=name, health_check=False))

    async def ask() -> None:
        await server.request("POST", f"{backend.url.removesuffix('/v1')}/generate", {})

    async def ask_later(event: asyncio.Event) -> None:
        await event.wait()
        await ask()

    async def scenario() -> None:
        ended = asyncio.Event()
        await ask()
        async with kept_connections():
            await ask()
            await ask()
            await asyncio.to_thread(lambda: asyncio.run(ask()))
            late = asyncio.create_task(ask_later(ended))
            await asyncio.sleep(0)
        ended.set()
        await late
        await ask()

    asyncio.run(scenario())

    before, first, second, thread, late, after = backend.connections
    assert first == second
    assert len({before, first, thread, late, after}) == 5


def test_another_task_may_end_what_keeps_connections(backend):
    """As the parts of an asynchronous fixture do; what it kept is not used again."""
    backend.answer = {}
    name = shared_tokenizer("llama3")
    server = ExactVLLMServer(APIServerConfig(base_url=backend.url, model_name="m", tokenizer_name=name, health_check=False))
    block = kept_connections()

    async def begin() -> None:
        await block.__aenter__()
        await ask()

    async def ask() -> None:
        await server.request("POST", f"{backend.url.removesuffix('/v1')}/generate", {})

    async def scenario() -> None:
        await asyncio.create_task(begin())
        await asyncio.create_task(block.__aexit__(None, None, None))
        await ask()

    asyncio.run(scenario())

    assert len(set(backend.connections)) == 2
