"""What a tool-call parser is, and how the calls it finds are made."""

from __future__ import annotations

import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias

from openai.types.chat.chat_completion_message_tool_call import ChatCompletionMessageToolCall, Function

__all__ = ["ParseResult", "ToolCallParser", "ToolSchemas", "json_text", "new_id", "tool_call"]

ParseResult: TypeAlias = tuple[str | None, list[ChatCompletionMessageToolCall] | None]
"""(content or None, tool calls or None)."""

ToolSchemas: TypeAlias = Sequence[dict[str, Any]] | None
"""The offered tools in OpenAI's format; None where they are not known."""


class ToolCallParser(ABC):
    """Reads the tool calls in one model family's raw output."""

    @abstractmethod
    def parse(self, text: str, tools: ToolSchemas = None) -> ParseResult:
        """Return content and calls. Never raises; text without a call comes back unchanged, with None.

        ``tools`` are the offered tools, where they are known: they type the values of formats that write every value as plain
        text, and tell a call from an ordinary JSON answer in formats that mark neither.
        """


def new_id() -> str:
    """Return an id for a call whose format has none."""
    return f"call_{uuid.uuid4().hex[:24]}"


def tool_call(name: object, arguments: str | None, call_id: str | None = None) -> ChatCompletionMessageToolCall | None:
    """Return the call; None when the name is no name, or when there are no arguments because they were malformed."""
    if not isinstance(name, str) or not name or arguments is None or not (is_unicode(name) and is_unicode(arguments)):
        return None
    return ChatCompletionMessageToolCall(
        id=call_id or new_id(), type="function", function=Function(name=name, arguments=arguments)
    )


def json_text(value: object) -> str | None:
    """Return a value as JSON, readable where it can be; None when JSON cannot say it (infinity, not a number)."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        return text if is_unicode(text) else json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return None


def is_unicode(text: str) -> bool:
    """Say whether text can be written as UTF-8, which half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
