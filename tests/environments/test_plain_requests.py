"""Chat requests that go around the openai client's transform are the same requests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from atroposlib.envs.server_handling.openai_server import OpenAIServer
from atroposlib.envs.server_handling.server_baseline import APIServerConfig
from openai.types.chat import ChatCompletionMessage

from environments.loop.plain_requests import PlainOpenAIServer
from pytest_hermes_env.atropos import clients
from pytest_hermes_env.inference import MockServer

TOOLS = [{"type": "function", "function": {"name": "terminal", "parameters": {"type": "object", "properties": {}}}}]
CALL = {"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
CONVERSATION = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "done"},
]


def sent(server_class: type, **request: Any) -> Any:
    """The body that a server gets."""

    async def ask(url: str) -> None:
        server = server_class(APIServerConfig(base_url=url, model_name="mock-model", api_key="k", health_check=False))
        clients.tame(server, None)
        try:
            await server.chat_completion(**request)
        finally:
            clients.release(server)

    with MockServer(lambda _: "said") as mock:
        asyncio.run(ask(mock.base_url))
        mock.verify()
        return mock.journal[0].request


@pytest.mark.parametrize(
    "request_",
    [
        {"messages": CONVERSATION, "tools": TOOLS, "temperature": 0.5, "max_tokens": 9, "n": 1},
        {"messages": CONVERSATION, "extra_body": {"top_k": 3, "tool_choice": "none"}, "tools": TOOLS},
        {"messages": CONVERSATION[:1]},
        {"messages": [*CONVERSATION[:1], ChatCompletionMessage(role="assistant", content="hm"), CONVERSATION[0]]},
        {"messages": tuple(CONVERSATION[:1]), "tools": TOOLS},
    ],
    ids=["tools", "extra body", "no tools", "a message that is no JSON", "a tuple"],
)
def test_the_request_is_the_same(request_):
    """Also where something has to be transformed."""
    assert sent(PlainOpenAIServer, **request_) == sent(OpenAIServer, **request_)
