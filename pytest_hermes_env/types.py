"""Shapes that cross room borders: messages, tool calls and tool schemas as OpenAI's chat API writes them, and the seams' Protocols."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, Protocol, Required, TypeAlias, TypedDict

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject: TypeAlias = "dict[str, JsonValue]"

RealToolsUse: TypeAlias = Literal["never", "confined", "always"]
"""When an in-memory machine may run real programs: never, only in a confined cell, or also where this machine cannot confine them."""


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
    """A tool's name, its description and the JSON schema of its arguments."""

    name: str
    description: NotRequired[str]
    parameters: NotRequired[JsonObject]


class ToolSchema(TypedDict):
    """One tool as a request offers it."""

    type: Literal["function"]
    function: FunctionSchema


class Sandbox(Protocol):
    """The files and processes of one rollout, which its tool calls read and change."""

    def call(self, name: str, arguments: dict[str, Any]) -> str | None:
        """Return the result of one tool call as text, or None if hermes' own tool may answer.

        Raises: a call that the sandbox cannot answer → UnexpectedToolCall.
        """


class Sandboxes(Protocol):
    """Creates one sandbox per rollout.

    ``backend`` is the value of TERMINAL_ENV while these sandboxes answer: ``local``, or ``fake``, a backend that hermes does not
    have. A call that bypasses the seam to a real terminal then fails instead of running on this machine.
    """

    @property
    def backend(self) -> str:
        """The backend in TERMINAL_ENV."""

    @property
    def is_confined(self) -> bool:
        """Whether the commands of a rollout cannot reach this machine's files and network."""

    @property
    def description(self) -> str:
        """A short description for a report."""

    def sandbox_of(self, task_id: str) -> Sandbox:
        """Return the sandbox of ``task_id``, always the same one. Thread-safe."""
