"""Parses the raw text of a model family into tool calls: a registry and one file per format.

`get_parser(name).parse(text, tools)` returns the remaining content (or None) and the calls (or None).

A family's file defines its markers and reads one call at a marker. They share `marked_text`, which walks from marker to marker and
skips thoughts, `json_extent`, which finds the end of a JSON value, `interface`, which reads calls that are one JSON object, and
`argument_types`, which converts values that the format writes as plain text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from environments.tool_call_parsers import deepseek_v3_parser, glm45_parser, hermes_parser
from environments.tool_call_parsers.deepseek_v3_parser import DeepSeekV3ToolCallParser, DeepSeekV31ToolCallParser
from environments.tool_call_parsers.glm45_parser import Glm45ToolCallParser, Glm47ToolCallParser
from environments.tool_call_parsers.hermes_parser import HermesToolCallParser, LongcatToolCallParser, QwenToolCallParser
from environments.tool_call_parsers.interface import ParseResult, ToolCallParser
from environments.tool_call_parsers.kimi_k2_parser import KimiK2ToolCallParser
from environments.tool_call_parsers.llama_parser import LlamaToolCallParser
from environments.tool_call_parsers.mistral_parser import MistralToolCallParser
from environments.tool_call_parsers.qwen3_coder_parser import Qwen3CoderToolCallParser

__all__ = [
    "PARSER_REGISTRY",
    "DeepSeekV3ToolCallParser",
    "DeepSeekV31ToolCallParser",
    "Glm45ToolCallParser",
    "Glm47ToolCallParser",
    "HermesToolCallParser",
    "KimiK2ToolCallParser",
    "LlamaToolCallParser",
    "LongcatToolCallParser",
    "MistralToolCallParser",
    "ParseResult",
    "Qwen3CoderToolCallParser",
    "QwenToolCallParser",
    "ToolCallParser",
    "get_parser",
    "list_parsers",
    "register_parser",
]

PARSER_REGISTRY: dict[str, type[ToolCallParser]] = {
    "deepseek_v3": DeepSeekV3ToolCallParser,
    "deepseek_v31": DeepSeekV31ToolCallParser,
    "deepseek_v3_1": DeepSeekV31ToolCallParser,
    "glm45": Glm45ToolCallParser,
    "glm47": Glm47ToolCallParser,
    "hermes": HermesToolCallParser,
    "kimi_k2": KimiK2ToolCallParser,
    "llama3_json": LlamaToolCallParser,
    "llama4_json": LlamaToolCallParser,
    "longcat": LongcatToolCallParser,
    "mistral": MistralToolCallParser,
    "qwen": QwenToolCallParser,
    "qwen3_coder": Qwen3CoderToolCallParser,
}
"""Parser name -> class."""

deepseek_v3_1_parser, glm47_parser, longcat_parser, qwen_parser = deepseek_v3_parser, glm45_parser, hermes_parser, hermes_parser
for _former in ("deepseek_v3_1_parser", "glm47_parser", "longcat_parser", "qwen_parser"):
    sys.modules[f"{__name__}.{_former}"] = globals()[_former]  # existing environments import these modules; the family has one

P = TypeVar("P", bound=type[ToolCallParser])


def register_parser(name: str) -> Callable[[P], P]:
    """Return a class decorator that registers a parser under ``name``."""

    def register(parser: P) -> P:
        PARSER_REGISTRY[name] = parser
        return parser

    return register


def get_parser(name: str) -> ToolCallParser:
    """Return a new parser. Raises: KeyError, listing the available names, when ``name`` is unknown."""
    try:
        parser = PARSER_REGISTRY[name]
    except KeyError:
        raise KeyError(f"Tool call parser {name!r} not found. Available parsers: {list_parsers()}") from None
    return parser()


def list_parsers() -> list[str]:
    """Return the names of all parsers, sorted."""
    return sorted(PARSER_REGISTRY)
