"""Ways to ask a mock server, for the tests of this directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from pytest_hermes_env.inference import MockServer

Ask = Callable[..., httpx.Response]

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
