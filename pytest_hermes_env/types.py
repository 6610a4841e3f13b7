"""Shapes that cross room borders: messages, tool calls and tool schemas as OpenAI's chat API writes them."""

from __future__ import annotations

from typing import Literal, NotRequired, Required, TypeAlias, TypedDict

__all__ = [
    "ContentPart",
    "FunctionCall",
    "FunctionSchema",
    "JsonObject",
    "JsonValue",
    "Message",
    "ToolCall",
    "ToolSchema",
]

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject: TypeAlias = "dict[str, JsonValue]"


class ContentPart(TypedDict, total=False):
    """One part of a message whose content is a list; only parts of type ``text`` hold text."""

    type: Required[str]
    text: str


class FunctionCall(TypedDict):
    """The tool that a call names. ``arguments`` is JSON text as the model wrote it: it need not be valid JSON."""

    name: str
    arguments: str


class ToolCall(TypedDict):
    """One tool call of an assistant message."""

    id: str
    type: Literal["function"]
    function: FunctionCall


class Message(TypedDict, total=False):
    """One message of a conversation. ``content`` may be text, nothing, or a list of parts."""

    role: Required[str]
    content: str | list[ContentPart] | None
    tool_calls: list[ToolCall]
    tool_call_id: str
    name: str
    reasoning_content: str


class FunctionSchema(TypedDict):
    """What a tool is called, what it does, and the JSON schema of its arguments."""

    name: str
    description: NotRequired[str]
    parameters: NotRequired[JsonObject]


class ToolSchema(TypedDict):
    """One tool as a request offers it."""

    type: Literal["function"]
    function: FunctionSchema
