"""What goes over the wire, against the openai package's own types."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from pytest_hermes_env.inference import call, call_raw, empty_choices, say, think, turn
from pytest_hermes_env.inference.wire import (
    chat_chunks,
    chat_completion,
    count_tokens,
    hermes_text,
    text_chunks,
    text_completion,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

    from pytest_hermes_env.inference.steps import Turn
    from pytest_hermes_env.types import JsonObject

TURNS = {
    "text": turn("two words"),
    "empty": turn(say("")),
    "think": turn(think("hm"), say("ok")),
    "think only": turn(think("hm")),
    "calls": turn(call("terminal", command="ls"), call("read_file", path="a")),
    "all": turn(think("hm"), call("terminal", command="ls"), call_raw("terminal", "{bad"), say("both")),
    "no choices": turn(empty_choices()),
}


def chat(said: Turn, *, n: int = 1, key: str = "k") -> JsonObject:
    """Return the completion that says the turn."""
    return chat_completion(turn=said, key=key, model="m", n=n, prompt_bytes=41)


def strictly(kind: type[BaseModel], value: JsonObject) -> dict[str, object]:
    """Return the value as its type reads it, without fields that were not sent."""
    return kind.model_validate(value, strict=True).model_dump(exclude_unset=True)


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("said", TURNS.values(), ids=TURNS)
def test_chat_completions_are_valid_for_the_openai_package(said: Turn, n: int) -> None:
    """Each completion survives the package's own type, strictly, with nothing changed."""
    completion = chat(said, n=n)

    assert strictly(ChatCompletion, completion) == completion


@pytest.mark.parametrize("said", TURNS.values(), ids=TURNS)
def test_streamed_chat_chunks_are_valid_and_add_up(said: Turn) -> None:
    """Each chunk survives the package's own type, and together they say what the completion says."""
    completion = chat(said, n=2)
    chunks = chat_chunks(completion, include_usage=True)
    read = [strictly(ChatCompletionChunk, chunk) for chunk in chunks]

    assert (read, added_up(chunks)) == (chunks, [choice["message"] for choice in choices(completion)])


@pytest.mark.parametrize("said", TURNS.values(), ids=TURNS)
def test_text_completions_are_valid_for_the_openai_package(said: Turn) -> None:
    """Text completions and their streamed parts survive the package's own type."""
    completion = text_completion(turns=[said, turn("b")], key="k", model="m", n=2, prompt_bytes=8)
    chunks = text_chunks(completion, include_usage=True)
    read = [strictly(Completion, one) for one in (completion, *chunks)]
    texts = ["".join(str(c["text"]) for k in chunks for c in choices(k) if c["index"] == i) for i in range(4)]

    assert (read, texts[: len(choices(completion))]) == (
        [completion, *chunks],
        [choice["text"] for choice in choices(completion)],
    )


def test_ids_of_calls_differ_and_are_the_same_in_every_run() -> None:
    """No two calls of two turns and two choices share an id, and a second run gives the same ids."""
    said = turn(call("a"), call("b"))

    def ids() -> list[object]:
        made = [choice["message"] for key in ("x:0", "x:1") for choice in choices(chat(said, n=2, key=key))]
        return [one["id"] for message in made for one in cast("dict[str, list[JsonObject]]", message)["tool_calls"]]

    first, second = ids(), ids()

    assert (first, len(set(first))) == (second, 8)


def test_usage_counts_a_quarter_of_the_bytes_and_one_token_per_choice() -> None:
    """Usage is cheap and the same in every run: bytes / 4, rounded up, and an end-of-turn token per choice."""
    usage = chat(turn("12345"), n=2)["usage"]

    assert ([count_tokens(size) for size in (0, 1, 4, 5)], usage) == (
        [0, 1, 1, 2],
        {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16},
    )


def test_a_text_completion_writes_calls_in_hermes_format() -> None:
    """Without a chat layer, reasoning and calls are text, as Hermes models write them."""
    text = hermes_text(turn(think("hm"), call("terminal", command="ls"), say("ok")))

    assert text == (
        '<think>\nhm\n</think>\nok\n<tool_call>\n{"name": "terminal", "arguments": {"command": "ls"}}\n</tool_call>'
    )


def choices(completion: JsonObject) -> list[JsonObject]:
    """Return the choices of a completion or chunk."""
    return cast("list[JsonObject]", completion["choices"])


def added_up(chunks: list[JsonObject]) -> list[object]:
    """Return the messages that a client puts together from the chunks."""
    messages: dict[int, dict[str, object]] = {}
    for choice in (choice for chunk in chunks for choice in choices(chunk)):
        message = messages.setdefault(cast("int", choice["index"]), {})
        for field, value in cast("JsonObject", choice["delta"]).items():
            if field != "tool_calls":
                message[field] = str(message.get(field, "")) + str(value)
        for part in cast("dict[str, list[JsonObject]]", choice["delta"]).get("tool_calls", []):
            add_call(cast("list[JsonObject]", message.setdefault("tool_calls", [])), part)
    for message in messages.values():
        if "tool_calls" in message and message["content"] == "":
            message["content"] = None
    return list(messages.values())


def add_call(calls: list[JsonObject], part: JsonObject) -> None:
    """Put one delta of a tool call to the calls so far."""
    function = cast("JsonObject", part["function"])
    if part["index"] == len(calls):
        calls.append({"id": part["id"], "type": part["type"], "function": dict(function)})
    else:
        whole = cast("JsonObject", calls[cast("int", part["index"])]["function"])
        whole["arguments"] = str(whole["arguments"]) + str(function["arguments"])
