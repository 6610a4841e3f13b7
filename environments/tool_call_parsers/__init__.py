"""Turns the raw text of a model family into tool calls: a registry and one file per family.

`get_parser(name).parse(text)` gives the remaining content (or None) and the calls (or None).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeAlias, TypeVar

from openai.types.chat.chat_completion_message_tool_call import ChatCompletionMessageToolCall

__all__ = [
    "PARSER_REGISTRY",
    "ParseResult",
    "ToolCallParser",
    "get_parser",
    "list_parsers",
    "register_parser",
]

ParseResult: TypeAlias = tuple[str | None, list[ChatCompletionMessageToolCall] | None]
"""(content or None, tool calls or None)."""

PARSER_REGISTRY: dict[str, type[ToolCallParser]] = {}
"""Parser name -> class."""


class ToolCallParser(ABC):
    """Reads the tool calls in one model family's raw output."""

    @abstractmethod
    def parse(self, text: str) -> ParseResult:
        """Return content and calls. Never raises; text without a call comes back unchanged, with None."""


P = TypeVar("P", bound=type[ToolCallParser])


def register_parser(name: str):  # noqa: ANN201 - a decorator that returns its argument
    """Return a class decorator that puts a parser under ``name``."""

    def register(parser: P) -> P:
        PARSER_REGISTRY[name] = parser
        return parser

    return register


def get_parser(name: str) -> ToolCallParser:
    """Return a new parser. Raises: KeyError listing the available names when there is none under ``name``."""
    try:
        return PARSER_REGISTRY[name]()
    except KeyError:
        raise KeyError(f"Tool call parser {name!r} not found. Available parsers: {list_parsers()}") from None


def list_parsers() -> list[str]:
    """Return the names of all parsers, sorted."""
    return sorted(PARSER_REGISTRY)


from environments.tool_call_parsers import hermes  # noqa: E402, F401 - registers itself in the table above
