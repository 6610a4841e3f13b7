"""What a mock server sampled, read back from its journal."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_hermes_env.inference.conversation import Exchange
from pytest_hermes_env.play import sampling
from pytest_hermes_env.play.sampling import SampledReply, replies_of

VLLM_REQUEST = {"prompt": {"prompt_token_ids": [1, 2]}, "logprobs": 0}
VLLM_RESPONSE = {"token_ids": [[7, 8]], "prompt_token_ids": [1, 2], "logprobs": [[[{"7": -0.5}], [{"8": -0.25}]]]}
SGLANG_RESPONSE = {"output_ids": [7, 8], "meta_info": {"output_token_logprobs": [[-0.5, 7, None], [-0.25, 8, None]]}}
REPLY = SampledReply(prompt=(1, 2), output=(7, 8), logprobs=(-0.5, -0.25))


def exchange(request: Any, response: Any, **fields: Any) -> Exchange:
    """Return an answered exchange."""
    return Exchange(
        **{"path": "/generate", "kind": "generate", "started_s": 0.0, "status": 200, "request": request, "response": response}
        | fields
    )


@pytest.mark.parametrize(
    ("request_body", "response"),
    [
        (VLLM_REQUEST, VLLM_RESPONSE),
        ({"input_ids": [1, 2]}, SGLANG_RESPONSE),
        ({"input_ids": [[1, 2]]}, [SGLANG_RESPONSE]),
    ],
    ids=["vllm", "sglang", "sglang-batch"],
)
def test_a_reply_is_read_in_every_shape(request_body: Any, response: Any) -> None:
    """vLLM's, SGLang's and SGLang's batch answer say the same."""
    (reply,) = replies_of([exchange(request_body, response)])

    assert (reply, reply.sequence) == (REPLY, (1, 2, 7, 8))


def test_several_samples_of_several_prompts_are_told_apart() -> None:
    """SGLang lists the n answers of each prompt one after the other."""
    answers = [SGLANG_RESPONSE] * 4

    replies = replies_of([exchange({"input_ids": [[1, 2], [3]], "sampling_params": {"n": 2}}, answers)])

    assert [reply.prompt for reply in replies] == [(1, 2), (1, 2), (3,), (3,)]


def test_missing_logprobs_are_not_made_up() -> None:
    """A server that gives none leaves none."""
    bare = {"token_ids": [[7, 8]], "prompt_token_ids": [1, 2]}

    (reply,) = replies_of([exchange(VLLM_REQUEST, bare)])

    assert reply.logprobs == ()


def test_only_answered_generate_requests_of_rollouts_count() -> None:
    """Chat completions, failures, and judges beside rollouts sample nothing that could train."""
    others = [
        exchange({"messages": []}, {}, path="/v1/chat/completions", kind="chat"),
        exchange(VLLM_REQUEST, {}, status=500),
        exchange(VLLM_REQUEST, VLLM_RESPONSE, kind="judge"),
        exchange(VLLM_REQUEST, VLLM_RESPONSE, kind="score"),
    ]

    assert (replies_of([*others, exchange(VLLM_REQUEST, VLLM_RESPONSE)]), replies_of(others)) == ((REPLY,), (REPLY,))


def test_reply_that_the_limit_of_tokens_ended_is_cut() -> None:
    """On both kinds of servers."""
    vllm = {**VLLM_RESPONSE, "finish_reasons": ["length"]}
    sglang = {"output_ids": [7], "meta_info": {"finish_reason": {"type": "length", "length": 1}}}

    replies = [*sampling._vllm(vllm), *sampling._vllm(VLLM_RESPONSE), *sampling._sglang([1], sglang)]

    assert [reply.is_cut for reply in replies] == [True, False, True]
