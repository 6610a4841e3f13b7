"""Reads replies with what other libraries know of a model's format: `renderers`, and transformers' response templates.

Place in the flow: `model_reply.ReplyReader` gives the ids of a prompt and of its reply, and takes content, calls and reasoning. Unlike
our parsers, which read text, these read tokens: formats such as gpt-oss' have channels between special tokens.

Source: renderers 0.1.12, ``base.py``; transformers 5.24, ``tokenization_utils_base.py``.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from openai.types.chat.chat_completion_message_tool_call import ChatCompletionMessageToolCall

from environments.tool_call_parsers.interface import json_text, tool_call

RENDERERS_PREFIX = "renderers:"
"""``tool_call_parser="renderers:gpt-oss"`` selects the renderer of that name."""
TRANSFORMERS = "transformers"
"""``tool_call_parser="transformers"`` selects the response template that the tokenizer brings."""
INSTALL = "pip install 'pytest-hermes-env[renderers]'"

_CALLS = ("ok", "unknown_tool")
"""What counts as a call: the agent loop tells the model which tools there are."""

Parsed = tuple[str, list[ChatCompletionMessageToolCall], str | None]
"""(content, calls, reasoning)"""
LibraryParser = Callable[[Sequence[int], Sequence[int], Any], Parsed]
"""Takes the ids of the prompt, those of the reply, and the offered tools."""


class LibraryProblem(ValueError):
    """The library is not installed, does not know the name, or cannot serve the tokenizer."""


def is_library_parser(name: str) -> bool:
    """Return whether a name selects a parser of a library."""
    return name == TRANSFORMERS or name.startswith(RENDERERS_PREFIX)


@functools.lru_cache(maxsize=16)
def library_parser(name: str, tokenizer: Any) -> LibraryParser:
    """Return the parser of that name, which is kept: creating one takes seconds. Raises: LibraryProblem."""
    if name == TRANSFORMERS:
        return _response_template(tokenizer)
    return _renderer(name.removeprefix(RENDERERS_PREFIX), tokenizer)


def _renderer(name: str, tokenizer: Any) -> LibraryParser:
    selected = f'tool_call_parser="{RENDERERS_PREFIX}{name}"'
    try:
        renderers = importlib.import_module("renderers")
    except ImportError as error:
        raise LibraryProblem(
            f"{selected} needs the package renderers, which cannot be imported ({error}). {INSTALL}"
        ) from error
    try:
        renderer: Any = renderers.create_renderer(tokenizer, renderers.config_from_name(name))
    except Exception as error:
        raise LibraryProblem(f"{selected}: the package renderers cannot make it for this tokenizer: {error}") from error
    if type(renderer).__name__ == "DefaultRenderer":
        raise LibraryProblem(
            f"{selected}: the package renderers does not know this model, and its default reads no calls: every call would be trained "
            "as a final answer. Name the renderer of the model's family, or one of our parsers"
        )

    def parse(prompt: Sequence[int], reply: Sequence[int], tools: Any) -> Parsed:
        functions = [tool.get("function", tool) for tool in tools or ()]
        opened = _open_header(tokenizer, prompt) if type(renderer).__name__ == "GptOssRenderer" else []
        before = prompt[: len(prompt) - len(opened)]
        parsed = renderer.parse_response([*opened, *reply], tools=functions or None, prompt_ids=list(before))
        content, calls = parsed.content or "", []
        for one in parsed.tool_calls:
            call = _call(one.name, one.arguments, one.id) if one.status in _CALLS else None
            if call is not None:
                calls.append(call)
            elif one.raw not in content:  # a malformed call is text, as with our parsers
                content += one.raw
        return content, calls, parsed.reasoning_content

    return parse


def _open_header(tokenizer: Any, prompt: Sequence[int]) -> list[int]:
    """Return the header that a prompt of gpt-oss' own chat template opens, ``<|start|>assistant``: renderers takes finished ones alone."""
    start, message = tokenizer.convert_tokens_to_ids(["<|start|>", "<|message|>"])
    length = next((length for length, token in enumerate(reversed(prompt), 1) if token == start), 0)
    header = list(prompt[len(prompt) - length :])
    return [] if message in header else header


def _response_template(tokenizer: Any) -> LibraryParser:
    if getattr(tokenizer, "response_template", None) is None:
        raise LibraryProblem(
            f'tool_call_parser="{TRANSFORMERS}" needs a tokenizer with a response_template; '
            f"{getattr(tokenizer, 'name_or_path', tokenizer)!r} brings none"
        )

    def parse(prompt: Sequence[int], reply: Sequence[int], tools: Any) -> Parsed:
        message = tokenizer.parse_response(list(reply), prefix=list(prompt), tools=tools or None)
        functions = [(call.get("function", call), call.get("id")) for call in message.get("tool_calls") or ()]
        calls = [_call(one.get("name"), one.get("arguments"), call_id) for one, call_id in functions]
        if None in calls:
            raise ValueError(f"a call without a name or with arguments that are not JSON: {functions}")
        reasoning = message.get("reasoning_content") or message.get("reasoning") or message.get("thinking")
        return message.get("content") or "", [call for call in calls if call], reasoning

    return parse


def _call(name: Any, arguments: Any, call_id: str | None) -> ChatCompletionMessageToolCall | None:
    return tool_call(name, arguments if isinstance(arguments, str) else json_text(arguments or {}), call_id)
