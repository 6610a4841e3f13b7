"""The mock model as one server: its endpoints, its refusals, and logprobs that fit a temperature."""

from __future__ import annotations

import httpx
import pytest

from pytest_hermes_env.errors import UsageError
from pytest_hermes_env.inference import MockServer
from pytest_hermes_env.live.token_check import check_tokens

IDS = [2857, 82, 1680]


def status_of(engine: str, method: str, path: str, **body: object) -> tuple[int, int]:
    """Status of the answer, and how many problems the mock noted."""
    with MockServer(["said"], template="chatml", engine=engine) as mock:  # type: ignore[arg-type]
        return httpx.request(method, f"{mock.url}{path}", json=body or None).status_code, mock.problem_count


@pytest.mark.parametrize(
    ("engine", "method", "path", "status"),
    [
        ("vllm", "POST", "/generate", 404),
        ("vllm", "GET", "/version", 200),
        ("vllm", "GET", "/model_info", 404),
        ("sglang", "GET", "/model_info", 200),
        ("sglang", "GET", "/version", 404),
        ("atropos", "POST", "/v1/chat/completions", 404),
        ("atropos", "GET", "/v1/models", 404),
        ("atropos", "GET", "/health", 200),
        ("any", "GET", "/version", 404),
        ("any", "GET", "/v1/models", 200),
    ],
)
def test_endpoints_are_those_of_the_server(engine, method, path, status):
    """One that it lacks is its own 404, no mistake of a test."""
    assert status_of(engine, method, path) == (status, 0)


def test_vllm_returns_ids_where_they_are_asked_for():
    """In the fields of its completions."""
    with MockServer(["said"], template="chatml", engine="vllm") as mock:
        body = {"model": mock.model, "prompt": IDS, "max_tokens": 9, "logprobs": 0, "return_token_ids": True}
        (choice,) = httpx.post(f"{mock.base_url}/completions", json=body).json()["choices"]

    ids = choice["token_ids"]
    assert choice["prompt_token_ids"] == IDS
    assert choice["logprobs"]["tokens"] == [f"token_id:{token}" for token in ids]
    assert len(choice["logprobs"]["token_logprobs"]) == len(ids)
    assert (choice["text"], choice["finish_reason"], choice["stop_reason"]) == ("said", "stop", None)


@pytest.mark.parametrize(("more", "status"), [({"model": "other"}, 404), ({"logprobs": 21}, 400), ({}, 200)])
def test_vllm_refuses_other_models_and_too_many_logprobs(more, status):
    """As its own server does."""
    body = {"prompt": IDS, "max_tokens": 9, "logprobs": 0, "return_token_ids": True, **more}

    assert status_of("vllm", "POST", "/v1/completions", **body) == (status, 0)


@pytest.mark.parametrize(
    ("engine", "mode", "expected"),
    [
        ("vllm", None, "raw"),
        ("vllm", "processed_logprobs", "processed"),
        ("sglang", None, "processed"),
        ("sglang", "raw_logprobs", "raw"),
        ("atropos", None, "raw"),
        ("atropos", "processed_logprobs", "processed"),
    ],
)
def test_logprobs_are_what_the_server_says(engine, mode, expected):
    """The check of ``serve`` finds the mode; its questions use no turn."""
    with MockServer(["said"], template="chatml", engine=engine, logprobs_mode=mode, allow_leftovers=True) as mock:
        found = check_tokens(mock.base_url, model=mock.model)

        assert (found.finding.mode, found.finding.problem) == (expected, "")
        assert {exchange.kind for exchange in mock.journal} == {"health"}
        mock.verify()


@pytest.mark.parametrize("setting", [{"engine": "tgi"}, {"logprobs_mode": "raw"}])
def test_unknown_engines_are_usage_errors(setting):
    """With the known ones."""
    with pytest.raises(UsageError, match="expected  one of"):
        MockServer(**setting)
