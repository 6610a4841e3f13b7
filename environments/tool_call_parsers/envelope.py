"""Calls that are one JSON object each: ``{"name": ..., "arguments": {...}}``."""

from __future__ import annotations

from typing import Any

from openai.types.chat.chat_completion_message_tool_call import ChatCompletionMessageToolCall

from environments.tool_call_parsers.interface import json_text, tool_call
from environments.tool_call_parsers.json_extent import read_json

__all__ = ["read_envelope"]

_NOTHING = object()
_KEYS_BESIDE_ARGUMENTS = {"name", "id"}


def read_envelope(
    text: str, *, argument_keys: tuple[str, ...] = ("arguments",), needs_arguments: bool = False
) -> ChatCompletionMessageToolCall | None:
    """Return the call in a JSON text, or None.

    An object with only a name is a call without arguments, unless ``needs_arguments`` is set. An object with other keys is no
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
