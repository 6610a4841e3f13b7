"""The mock server behind a real openai client, as Atropos uses it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import openai
import pytest
from openai import AsyncOpenAI

from pytest_hermes_env.inference import MockServer, call, fail, say, think, turn

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")
TOOLS: list[Any] = [{"type": "function", "function": {"name": "terminal", "parameters": {"properties": {"command": {}}}}}]


def run(coroutine: Coroutine[object, object, T]) -> T:
    """Return what the coroutine returns, with warnings as they are."""
    return asyncio.run(coroutine)


def connect(server: MockServer, *, max_retries: int = 0) -> AsyncOpenAI:
    """Return a client of the server."""
    return AsyncOpenAI(api_key="unused", base_url=server.base_url, max_retries=max_retries)


async def rollout(client: AsyncOpenAI, item: str, reply: str = "go on") -> list[str]:
    """Run one conversation to its end, as an agent loop does; return what the model said or called, in order."""
    messages: list[Any] = [{"role": "user", "content": item}]
    said: list[str] = []
    while True:
        answer = await client.chat.completions.create(model="m", messages=messages, tools=TOOLS)
        message = answer.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        said.append(message.content or message.tool_calls[0].function.arguments)  # type: ignore[index,union-attr]
        if not message.tool_calls:
            return said
        messages += [{"role": "tool", "tool_call_id": one.id, "content": reply} for one in message.tool_calls]


def test_identical_conversations_at_the_same_time_keep_their_own_turns() -> None:
    """64 rollouts of one item, all at once, with different tool results, each get turns 1, 2 and 3 in order."""

    async def group(server: MockServer) -> list[list[str]]:
        async with connect(server) as client:
            return await asyncio.gather(*[rollout(client, "same item", f"result {n}") for n in range(64)])

    with MockServer([call("terminal", command="one"), call("terminal", command="two"), "three"]) as server:
        said = run(group(server))
        server.verify()

    assert said == [['{"command": "one"}', '{"command": "two"}', "three"]] * 64


def test_a_stream_adds_up_in_the_real_client() -> None:
    """The openai client puts a streamed turn together: text, reasoning, arguments and usage."""

    async def stream(server: MockServer) -> tuple[str, str, str, list[str | None], int]:
        content = reasoning = arguments = ""
        finished: list[str | None] = []
        tokens = 0
        async with connect(server) as client:
            chunks = await client.chat.completions.create(
                model="m",
                messages=[{"role": "user", "content": "x"}],
                tools=TOOLS,
                stream=True,
                stream_options={"include_usage": True},
            )
            async for chunk in chunks:
                tokens = chunk.usage.total_tokens if chunk.usage else tokens
                for choice in chunk.choices:
                    content += choice.delta.content or ""
                    reasoning += getattr(choice.delta, "reasoning_content", None) or ""
                    for part in choice.delta.tool_calls or []:
                        arguments += (part.function.arguments if part.function else None) or ""
                    finished += [choice.finish_reason] if choice.finish_reason else []
        return content, reasoning, arguments, finished, tokens

    with MockServer([turn(think("let me see"), call("terminal", command="ls"), say("on my way"))]) as server:
        seen = run(stream(server))

    assert seen == ("on my way", "let me see", '{"command": "ls"}', ["tool_calls"], 20)


def test_text_completions_models_and_choices_work_in_the_real_client() -> None:
    """The other calls of the client are answered, too."""

    async def ask(server: MockServer) -> tuple[list[str], list[str]]:
        async with connect(server) as client:
            completion = await client.completions.create(model="m", prompt=["a", "b"], n=2)
            models = await client.models.list()
            model = await client.models.retrieve(models.data[0].id)
            return [choice.text for choice in completion.choices], [*(one.id for one in models.data), model.id]

    with MockServer(lambda conversation: conversation.first_user.upper()) as server:
        seen = run(ask(server))

    assert seen == (["A", "A", "B", "B"], ["mock-model"] * 2)


def test_the_client_retries_a_failure_and_gets_past_one_with_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scripted failure is retried as a real one; with ``times`` the last attempt succeeds."""
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.0)

    async def ask(server: MockServer, max_retries: int) -> str:
        async with connect(server, max_retries=max_retries) as client:
            try:
                return (await rollout(client, "x"))[0]
            except openai.InternalServerError as exc:
                return str(exc.body and {"error": exc.body})

    with MockServer([turn(fail(503, "overloaded", times=2), "ok")]) as server:
        seen = [run(ask(server, retries)) for retries in (1, 2)]
        statuses = [exchange.status for exchange in server.journal]

    assert (seen, statuses) == (
        [
            str({"error": {"message": "overloaded", "type": "fail", "param": None, "code": "503"}}),
            "ok",
        ],
        [503, 503, 503, 503, 200],
    )
