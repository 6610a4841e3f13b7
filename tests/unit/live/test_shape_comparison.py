"""Two answers to one request are compared by their shapes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pytest_hermes_env.live.shape_comparison import Answer, differences, mock_answer, probes

URL = "http://api.test/v1/chat/completions"


def answer(body: object, *, status: int = 200, media_type: str = "application/json") -> Answer:
    """Return an answer with that body, as JSON unless it is bytes."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(status=status, media_type=media_type, content=content)


def completion(message: dict[str, Any], **more: object) -> dict[str, Any]:
    """Return a completion as the mock model writes it, with that message."""
    return {
        "id": "chatcmpl-" + "0" * 24,
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    } | more


def compare(body: dict[str, Any], live: Answer) -> list[str]:
    """Return the differences between the mock's answer and that one."""
    return differences(asyncio.run(mock_answer(URL, body, live)), live)


ASKS = dict(probes("m"))


def test_a_provider_that_writes_as_the_mock_does_has_no_difference() -> None:
    """What is said does not count, only its shape."""
    live = answer(completion({"role": "assistant", "content": "anything"}))

    assert compare(ASKS["an answer"], live) == []


def test_fields_kinds_and_forms_are_told() -> None:
    """Absent on either side, of another kind, an id of another form, another finish reason."""
    row = {"id": "functions.look_up:0", "type": "function", "function": {"name": "look_up", "arguments": {"word": "hello"}}}
    body = completion({"role": "assistant", "content": "", "tool_calls": [row]}, service_tier="default")
    del body["usage"]["total_tokens"]

    assert compare(ASKS["a tool call"], answer(body)) == [
        "choices[].finish_reason: 'tool_calls' on the mock, 'stop' live",
        "choices[].message.content: null on the mock, empty text live",
        "choices[].message.tool_calls[].function.arguments: JSON text on the mock, an object live",
        "choices[].message.tool_calls[].function.arguments.word: absent on the mock, text live",
        "choices[].message.tool_calls[].id: call_ + 24 characters on the mock, functions. + 9 characters live",
        "service_tier: absent on the mock, text live",
        "usage.total_tokens: a number on the mock, absent live",
    ]


def test_errors_are_compared() -> None:
    """The status is the provider's; its body may be of another form."""
    assert compare(ASKS["an unknown model"], answer({"detail": "no"}, status=404)) == [
        "error: detail: absent on the mock, text live",
        "error: error: an object on the mock, absent live",
    ]


def test_streams_are_compared() -> None:
    """How they begin and end, and what their chunks hold."""
    chunk = {"id": "x1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    rows = [
        chunk | {"choices": [{"index": 0, "delta": {"role": "assistant"}}]},
        chunk | {"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1}},
    ]
    content = b"".join(b"data: " + json.dumps(row).encode() + b"\n\n" for row in rows)
    found = compare(ASKS["a stream"], answer(content, media_type="text/event-stream; charset=utf-8"))

    assert {row.partition(":")[2].partition(":")[0].strip() for row in found} >= {"begin", "end", "chunk.usage", "chunk.id"}


@pytest.mark.parametrize("name", list(ASKS))
def test_the_probes_are_requests_that_the_mock_answers(name: str) -> None:
    """Each is small, names the model, and can be compared."""
    body = ASKS[name]
    live = answer(completion({"role": "assistant", "content": "hello"}))

    assert asyncio.run(mock_answer(URL, body, live)).status in {200, 400}
    assert len(json.dumps(body)) < 500
