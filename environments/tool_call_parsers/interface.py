"""The interface of tool-call parsers, and functions that build calls."""

from __future__ import annotations

import json
import os
import string
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias

from openai.types.chat.chat_completion_message_tool_call import ChatCompletionMessageToolCall, Function

__all__ = ["ParseResult", "ToolCallParser", "ToolSchemas", "json_text", "new_id", "tool_call"]

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
    """Return a value as JSON, unescaped if possible; None when JSON cannot represent it (infinity, NaN)."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        return text if is_unicode(text) else json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return None


def is_unicode(text: str) -> bool:
    """Return whether text can be encoded as UTF-8, which a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
