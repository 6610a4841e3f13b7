"""Converts a chat or text completion to the server-sent events of ``stream: true``.

Source: the chunk types of the ``openai`` package, 2.x, and the order in which OpenAI and vLLM send them: the role
first, then reasoning, text and tool calls, then the finish reason, then usage if requested, then ``[DONE]``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_hermes_env.types import JsonObject, JsonValue


def chat_chunks(completion: JsonObject, *, include_usage: bool) -> list[JsonObject]:
    """Return the ``chat.completion.chunk`` objects that add up to the completion.

    Text is split after each word, and the arguments of a call into two halves.
    """
    head: JsonObject = {**_head(completion), "object": "chat.completion.chunk"}
    chunks: list[JsonObject] = []
    for choice in cast("list[JsonObject]", completion["choices"]):
        message = cast("JsonObject", choice["message"])
        deltas: list[JsonObject] = [{"role": "assistant", "content": ""}, *_deltas(message)]
        chunks.extend({**head, "choices": [_choice(choice, delta, None)]} for delta in deltas)
        chunks.append({**head, "choices": [_choice(choice, {}, choice["finish_reason"])]})
    return chunks + _usage_chunk(head, completion, include_usage=include_usage)


def text_chunks(completion: JsonObject, *, include_usage: bool) -> list[JsonObject]:
    """Return the streamed ``text_completion`` objects that add up to the completion: one for each choice.

    The text is not split: the openai package's type does not allow a chunk without a finish reason.
    """
    head: JsonObject = {**_head(completion), "object": "text_completion"}
    chunks: list[JsonObject] = [{**head, "choices": [choice]} for choice in cast("list[JsonObject]", completion["choices"])]
    return chunks + _usage_chunk(head, completion, include_usage=include_usage)


def server_sent_events(chunks: list[JsonObject]) -> str:
    """Return the chunks as the text of an event stream that ends with ``[DONE]``."""
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def _head(completion: JsonObject) -> JsonObject:
    return {name: completion[name] for name in ("id", "created", "model")}


def _choice(choice: JsonObject, delta: JsonObject, finish_reason: JsonValue) -> JsonObject:
    return {"index": choice["index"], "delta": delta, "finish_reason": finish_reason, "logprobs": None}


def _usage_chunk(head: JsonObject, completion: JsonObject, *, include_usage: bool) -> list[JsonObject]:
    return [{**head, "choices": [], "usage": completion["usage"]}] if include_usage else []


def _deltas(message: JsonObject) -> Iterator[JsonObject]:
    for field in ("reasoning_content", "content"):
        text = message.get(field)
        if isinstance(text, str):
            for word in _words(text):
                yield {field: word}
    for index, call in enumerate(cast("list[JsonObject]", message.get("tool_calls", []))):
        function = cast("JsonObject", call["function"])
        text = cast("str", function["arguments"])
        half = len(text) // 2
        opening: JsonObject = {"name": function["name"], "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": opening}]}
        for part in (text[:half], text[half:]):
            if part:
                yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}


def _words(text: str) -> list[str]:
    pieces = text.split(" ")
    return [piece for piece in (*(f"{word} " for word in pieces[:-1]), pieces[-1]) if piece]
