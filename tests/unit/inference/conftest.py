"""Ways to ask a mock server, for the tests of this directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from pytest_hermes_env.inference import TEMPLATES, build_tokenizer

if TYPE_CHECKING:
    from pytest_hermes_env.inference import MockServer

Ask = Callable[..., httpx.Response]
Paths = dict[str, Path]
Connect = Callable[..., Any]

TERMINAL: dict[str, object] = {
    "type": "function",
    "function": {
        "name": "terminal",
        "description": "Run a command.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}, "timeout": {"type": "integer"}},
            "required": ["command"],
        },
    },
}
READ_FILE: dict[str, object] = {
    "type": "function",
    "function": {"name": "read_file", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}},
}


@pytest.fixture
def tools() -> list[dict[str, object]]:
    """Two tools as a request offers them: terminal(command, timeout) and read_file(path)."""
    return [TERMINAL, READ_FILE]


@pytest.fixture
def ask(tools: list[dict[str, object]]) -> Iterator[Ask]:
    """Post a chat request; messages may be text (one user message), tools are offered unless ``tools=None``."""
    with httpx.Client(timeout=30) as client:

        def post(
            server: MockServer,
            messages: object = "hello",
            *,
            headers: dict[str, str] | None = None,
            **fields: object,
        ) -> httpx.Response:
            if isinstance(messages, str):
                messages = [{"role": "user", "content": messages}]
            body: dict[str, object] = {"model": "m", "messages": messages, "tools": tools, **fields}
            body = {name: value for name, value in body.items() if value is not None}
            return client.post(f"{server.base_url}/chat/completions", json=body, headers=headers)

        yield post


@pytest.fixture(scope="session")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    """The directories of the tokenizers of all templates."""
    directory = tmp_path_factory.mktemp("tokenizers")
    return {name: build_tokenizer(directory / name, template=name) for name in TEMPLATES}


@pytest.fixture
def connect(paths: Paths) -> Iterator[Connect]:
    """atroposlib's own server class for a mock in token mode: ``connect(mock, "vllm")``; without retries, closed at the end."""
    from atroposlib.envs.server_handling.server_baseline import APIServerConfig
    from atroposlib.envs.server_handling.sglang_server import SGLangServer
    from atroposlib.envs.server_handling.vllm_server import VLLMServer

    from pytest_hermes_env.atropos import clients

    made: list[Any] = []

    def to(mock: MockServer, kind: str) -> Any:
        config = APIServerConfig(
            base_url=mock.base_url,
            model_name="m",
            api_key="x",
            server_type=kind,
            tokenizer_name=str(paths[mock.template or "chatml"]),
            health_check=False,
        )
        server = (VLLMServer if kind == "vllm" else SGLangServer)(config)
        clients.tame(server)
        made.append(server)
        return server

    yield to
    for server in made:
        clients.release(server)
