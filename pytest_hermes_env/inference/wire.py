"""OpenAI's response shapes, as plain dicts: chat completions, text completions, models and errors.

Nothing here is random or reads a clock: the same conversation returns the same bytes.
Source: the response types of the ``openai`` package, 2.x; the tests validate every shape against them.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from pytest_hermes_env.inference.steps import Call, EmptyChoices, Say, Think, Turn
from pytest_hermes_env.inference.tool_call_formats import call_format

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        "usage": _usage(prompt_bytes, _answer_bytes(turn) * len(choices), len(choices)),
    }


def assistant_message(turn: Turn, key: str) -> JsonObject:
    """Return the turn as a message; the ids of its tool calls derive from ``key``."""
    calls = turn.every(Call)
    said = turn.only(Say)
    message: JsonObject = {"role": "assistant", "content": said.text if said else (None if calls else "")}
    if (thought := turn.only(Think)) is not None:
        message["reasoning_content"] = thought.text
    if calls:
        message["tool_calls"] = [_tool_call(step, f"{key}:{place}") for place, step in enumerate(calls)]
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


def _tool_call(step: Call, key: str) -> JsonValue:
    return {
        "id": f"call_{_id(key)}",
        "type": "function",
        "function": {"name": step.tool, "arguments": step.arguments_text},
    }


def _answer_bytes(turn: Turn) -> int:
    texts = [step.text for step in turn.steps if isinstance(step, Say | Think)]
    return sum(map(_size, texts)) + sum(_size(step.tool) + _size(step.arguments_text) for step in turn.every(Call))


def _usage(prompt_bytes: int, answer_bytes: int, choices: int) -> JsonObject:
    # Each choice ends with an end-of-turn token, so an empty answer has one token.
    prompt, completion = count_tokens(prompt_bytes), count_tokens(answer_bytes) + choices
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _id(key: str) -> str:
    return blake2b(key.encode(), digest_size=12).hexdigest()
