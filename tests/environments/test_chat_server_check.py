"""What is found out at start of a server of chat mode, which atroposlib would wait for without a word."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import openai
import pytest

from environments.tokens import server_check
from environments.tokens.server_check import ModelServerError, check_chat_servers
from pytest_hermes_env.inference import MockServer

KEY = "sk-a-long-secret-key"


def check(*urls: str, model: str = "mock-model", health_check: bool = True) -> None:
    """Check servers at these addresses."""

    async def scenario() -> None:
        clients = [openai.AsyncOpenAI(base_url=url, api_key=KEY) for url in urls]
        configs = [SimpleNamespace(base_url=url, model_name=model, api_key=KEY, health_check=health_check) for url in urls]
        servers: list[Any] = [SimpleNamespace(openai=one, config=two) for one, two in zip(clients, configs, strict=True)]
        try:
            await check_chat_servers(servers)
        finally:
            for client in clients:
                await client.close()

    asyncio.run(scenario())


def test_a_server_that_answers_is_asked_no_turn_of_a_script() -> None:
    """The question is atroposlib's own."""
    with MockServer(["said"], allow_leftovers=True) as mock:
        check(mock.base_url)

    assert [exchange.kind for exchange in mock.journal] == ["health"]


def test_a_refused_model_ends_the_run_with_its_cause() -> None:
    """At once, and without the key."""
    with MockServer(["said"], engine="vllm", allow_leftovers=True) as mock, pytest.raises(ModelServerError) as caught:
        check(mock.base_url, model=f"other-{KEY}")

    text = str(caught.value)
    assert "NotFoundError" in text and "does not exist" in text and mock.base_url in text  # noqa: PT018 - one message
    assert KEY not in text.partition("seen")[2]


def test_a_server_that_never_starts_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for, and that is said once."""
    monkeypatch.setattr(server_check, "START_S", 0.0)
    with MockServer(["said"], allow_leftovers=True) as mock:
        url = mock.base_url

    with pytest.raises(ModelServerError, match=r"APIConnectionError|APITimeoutError"):
        check(url)


def test_one_of_several_servers_may_be_down(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The others are used; the one is named."""
    monkeypatch.setattr(server_check, "START_S", 5.0)
    with (
        MockServer(["said"], allow_leftovers=True) as mock,
        MockServer(["x"], engine="vllm", model="b", allow_leftovers=True) as other,
    ):
        check(mock.base_url, other.base_url)

    assert other.base_url in caplog.text


def test_a_server_without_looks_is_not_asked() -> None:
    """As with `--openai.health_check false`."""
    with MockServer(["said"], allow_leftovers=True) as mock:
        check(mock.base_url, health_check=False)

    assert not mock.journal
