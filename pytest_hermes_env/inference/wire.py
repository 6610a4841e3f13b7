"""OpenAI's response shapes, as plain dicts: chat completions, text completions, models, errors, and the events of ``stream: true``.

Nothing here is random or reads a clock: the same conversation returns the same bytes.
Source: the response types of the ``openai`` package, 2.x; the tests validate every shape against them. Chunks are in the order in
which OpenAI and vLLM send them: the role first, then reasoning, text and tool calls, then the finish reason, then usage if
requested, then ``[DONE]``.
"""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from itertools import accumulate
from typing import TYPE_CHECKING, cast

from pytest_hermes_env.inference.steps import Call, EmptyChoices, Say, Think, Turn
from pytest_hermes_env.inference.tool_call_formats import call_format

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_hermes_env.types import JsonObject, JsonValue

CREATED = 1_700_000_000
"""The ``created`` of every response, in Unix seconds: a constant, so recordings do not change."""
BYTES_PER_TOKEN = 4


def count_tokens(size: int) -> int:
    """Return the token count that ``usage`` reports for ``size`` UTF-8 bytes: a quarter, rounded up."""
    return -(-size // BYTES_PER_TOKEN)


def chat_completion(*, turn: Turn, key: str, model: str, n: int, prompt_bytes: int, is_forced: bool = False) -> JsonObject:
    """Return the turn as a ``chat.completion`` with ``n`` equal choices.

    ``key`` identifies conversation and turn. The ids of the completion and of its tool calls derive from it, so they differ between
    choices, turns and conversations, and are the same in every run. ``is_forced``: the request named the tool to call.
    """
    choices: list[JsonValue] = []
    answer_bytes = sum(_size(step.text) for step in turn.steps if isinstance(step, Say | Think))
    answer_bytes += sum(_size(step.tool) + _size(step.arguments_text) for step in turn.every(Call))
    if turn.only(EmptyChoices) is None:
        for index in range(n):
            message = assistant_message(turn, f"{key}:{index}")
            finish = "tool_calls" if turn.only(Call) and not is_forced else "stop"
            choices.append({"index": index, "message": message, "finish_reason": finish, "logprobs": None})
    return {
        "id": f"chatcmpl-{_id(key)}",
        "object": "chat.completion",
        "created": CREATED,
        "model": model,
        "choices": choices,
        "usage": _usage(prompt_bytes, answer_bytes * len(choices), len(choices)),
    }


def assistant_message(turn: Turn, key: str) -> JsonObject:
    """Return the turn as a message; the ids of its tool calls derive from ``key``."""
    calls = turn.every(Call)
    said = turn.only(Say)
    message: JsonObject = {"role": "assistant", "content": said.text if said else (None if calls else "")}
    if (thought := turn.only(Think)) is not None:
        message["reasoning_content"] = thought.text
    if calls:
        functions: list[JsonValue] = [{"name": step.tool, "arguments": step.arguments_text} for step in calls]
        message["tool_calls"] = [
            {"id": f"call_{_id(f'{key}:{place}')}", "type": "function", "function": function}
            for place, function in enumerate(functions)
        ]
    return message


def text_completion(*, turns: Sequence[Turn], key: str, model: str, n: int, prompt_bytes: int) -> JsonObject:
    """Return the ``text_completion`` that says each turn ``n`` times, in the order of the prompts.

    Tool calls and reasoning become text, as a model without a chat layer writes them (see `hermes_text`).
    """
    texts = [hermes_text(turn) for turn in turns if turn.only(EmptyChoices) is None for _ in range(n)]
    choices: list[JsonValue] = [
        {"index": index, "text": text, "finish_reason": "stop", "logprobs": None} for index, text in enumerate(texts)
    ]
    return {
        "id": f"cmpl-{_id(key)}",
        "object": "text_completion",
        "created": CREATED,
        "model": model,
        "choices": choices,
        "usage": _usage(prompt_bytes, sum(_size(text) for text in texts), len(texts)),
    }


def model_entry(model: str) -> JsonObject:
    """Return what is said of one model."""
    return {"id": model, "object": "model", "created": CREATED, "owned_by": "pytest-hermes-env"}


def model_list(model: str) -> JsonObject:
    """Return the list of models with its only entry."""
    return {"object": "list", "data": [model_entry(model)]}


def error_body(message: str, *, kind: str, code: str | None = None, param: str | None = None) -> JsonObject:
    """Return an error body in OpenAI's format."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def hermes_text(turn: Turn) -> str:
    """Return the turn as one text in Hermes format: ``<think>``, the answer, then one ``<tool_call>`` per call."""
    parts: list[str] = []
    if (thought := turn.only(Think)) is not None:
        parts.append(f"<think>\n{thought.text}\n</think>")
    if (said := turn.only(Say)) is not None:
        parts.append(said.text)
    if calls := turn.every(Call):
        parts.append(call_format("hermes")(calls, 0))
    return "\n".join(parts)


def _usage(prompt_bytes: int, answer_bytes: int, choices: int) -> JsonObject:
    # Each choice ends with an end-of-turn token, so an empty answer has one token.
    prompt, completion = count_tokens(prompt_bytes), count_tokens(answer_bytes) + choices
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _id(key: str) -> str:
    return blake2b(key.encode(), digest_size=12).hexdigest()


def chat_chunks(completion: JsonObject, *, include_usage: bool) -> list[JsonObject]:
    """Return the ``chat.completion.chunk`` objects that add up to the completion.

    Text is split after each word, and the arguments of a call into two halves. Where logprobs or ids are asked for, a reply that is
    text alone is split after each token; thoughts and calls have their tokens shared out over their parts, in order.
    """
    head = _head(completion, "chat.completion.chunk")
    prompt: JsonObject = {name: completion[name] for name in ("prompt_token_ids",) if name in completion}
    chunks: list[JsonObject] = []
    for choice in cast("list[JsonObject]", completion["choices"]):
        opening: JsonObject = {"role": "assistant", "content": ""}
        chunks.append({**head, **prompt, "choices": [_choice(choice, opening, slice(0))]})
        *parts, last = _parts(choice)
        chunks.extend({**head, "choices": [_choice(choice, delta, own)]} for delta, own in parts)
        delta, own = last
        chunks.append({**head, "choices": [{**_choice(choice, delta, own), "finish_reason": choice["finish_reason"]}]})
    return chunks + _usage_chunk(head, completion, include_usage=include_usage)


def text_chunks(completion: JsonObject, *, include_usage: bool) -> list[JsonObject]:
    """Return the streamed ``text_completion`` objects that add up to the completion: one for each choice.

    The text is not split: the openai package's type does not allow a chunk without a finish reason.
    """
    head = _head(completion, "text_completion")
    chunks: list[JsonObject] = [{**head, "choices": [choice]} for choice in cast("list[JsonObject]", completion["choices"])]
    return chunks + _usage_chunk(head, completion, include_usage=include_usage)


def server_sent_events(chunks: list[JsonObject]) -> str:
    """Return the chunks as the text of an event stream that ends with ``[DONE]``."""
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def _head(completion: JsonObject, kind: str) -> JsonObject:
    return {**{name: completion[name] for name in ("id", "created", "model")}, "object": kind}


def _choice(choice: JsonObject, delta: JsonObject, own: slice) -> JsonObject:
    """Return the delta as a chunk's choice, with its own tokens where the completion has some."""
    logged = _logged(choice)
    part: JsonObject = {"index": choice["index"], "delta": delta, "finish_reason": None, "logprobs": None}
    if logged[own]:
        part["logprobs"] = {"content": [*logged[own]]}
    if "token_ids" in choice:
        part["token_ids"] = cast("list[JsonValue]", choice["token_ids"])[own]
    return part


def _logged(choice: JsonObject) -> list[JsonObject]:
    logprobs = cast("JsonObject | None", choice["logprobs"])
    return cast("list[JsonObject]", logprobs["content"]) if logprobs else []


def _parts(choice: JsonObject) -> list[tuple[JsonObject, slice]]:
    """Return the deltas that add up to the choice's message, each with the place of its tokens; the last one is empty."""
    message, logged = cast("JsonObject", choice["message"]), _logged(choice)
    count = len(cast("list[JsonValue]", choice.get("token_ids", logged)))
    spelt = list(accumulate(str(one["token"]) for one in logged))
    if logged and message.keys() == {"role", "content"} and message["content"] in spelt:
        said = spelt.index(str(message["content"])) + 1
        own: list[tuple[JsonObject, slice]] = [
            ({"content": one["token"]}, slice(at, at + 1)) for at, one in enumerate(logged[:said])
        ]
        return [*own, ({}, slice(said, count))]
    deltas = list(_deltas(message)) or [{}]
    ends = [count * number // len(deltas) for number in range(len(deltas) + 1)]
    shared = [(delta, slice(*ends[number : number + 2])) for number, delta in enumerate(deltas)]
    return [*shared, ({}, slice(count, count))] if deltas != [{}] else shared


def _usage_chunk(head: JsonObject, completion: JsonObject, *, include_usage: bool) -> list[JsonObject]:
    return [{**head, "choices": [], "usage": completion["usage"]}] if include_usage else []


def _deltas(message: JsonObject) -> Iterator[JsonObject]:
    for field in ("reasoning_content", "content"):
        text = message.get(field)
        if isinstance(text, str):
            for word in re.findall(r"[^ ]* |[^ ]+", text):
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
