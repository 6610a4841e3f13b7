"""The interface of tool-call parsers, and functions that build calls, also of one JSON object: ``{"name": ..., "arguments": {...}}``."""

from __future__ import annotations

import json
import os
import string
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias

from openai.types.chat.chat_completion_message_tool_call import ChatCompletionMessageToolCall, Function

from environments.tool_call_parsers.json_extent import read_json

ParseResult: TypeAlias = tuple[str | None, list[ChatCompletionMessageToolCall] | None]
"""(content or None, tool calls or None)."""

ToolSchemas: TypeAlias = Sequence[dict[str, Any]] | None
"""The offered tools in OpenAI's format; None when they are not known."""


_ID_CHARACTERS = string.ascii_letters + string.digits


class ToolCallParser(ABC):
    """Reads the tool calls in one model family's raw output."""

    @abstractmethod
    def parse(self, text: str, tools: ToolSchemas = None) -> ParseResult:
        """Return content and calls; text without a call is returned unchanged, with None. Never raises.

        ``tools`` are the offered tools, if known: their schemas type the values of formats that write every value as plain text,
        and their names distinguish a call from an ordinary JSON answer in formats without markers.
        """


def new_id() -> str:
    """Return an id for a call of a format without ids: nine letters and digits, because Mistral's template refuses others."""
    return "".join(_ID_CHARACTERS[byte % len(_ID_CHARACTERS)] for byte in os.urandom(9))


def tool_call(name: object, arguments: str | None, call_id: str | None = None) -> ChatCompletionMessageToolCall | None:
    """Return the call; None when the name is invalid, or ``arguments`` is None because they were malformed."""
    if not isinstance(name, str) or not name or arguments is None or not (is_unicode(name) and is_unicode(arguments)):
        return None
    return ChatCompletionMessageToolCall(
        id=call_id or new_id(), type="function", function=Function(name=name, arguments=arguments)
    )


def json_text(value: object) -> str | None:
    """Return a value as JSON, unescaped if possible; None when JSON cannot represent it (infinity, NaN, a set)."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        return text if is_unicode(text) else json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None


def is_unicode(text: str) -> bool:
    """Return whether text can be encoded as UTF-8, which a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_NOTHING = object()
_KEYS_BESIDE_ARGUMENTS = {"name", "id"}


def read_envelope(
    text: str, *, argument_keys: tuple[str, ...] = ("arguments",), needs_arguments: bool = False
) -> ChatCompletionMessageToolCall | None:
    """Return the call in a JSON text, or None.

    An object with only a name is a call without arguments, unless ``needs_arguments`` is set. An object with other keys is not a
    call: they could be misspelt arguments.
    """
    value, _ = read_json(text)
    if not isinstance(value, dict):
        return None
    arguments: Any = next((value[key] for key in argument_keys if key in value), _NOTHING)
    if arguments is _NOTHING:
        if needs_arguments or not value.keys() <= _KEYS_BESIDE_ARGUMENTS:
            return None
        arguments = {}
    return tool_call(value.get("name"), _object_in(arguments) or json_text(arguments))


def _object_in(arguments: Any) -> str | None:
    """Return arguments that are a JSON object inside a JSON string; None for all others."""
    if not isinstance(arguments, str):
        return None
    value, _ = read_json(arguments)
    return json_text(value) if isinstance(value, dict) else None
