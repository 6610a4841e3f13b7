"""The Hermes and Qwen format: ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``; an unclosed last tag is allowed."""

from __future__ import annotations

from environments.tool_call_parsers.tagged_json import TaggedJsonParser

__all__ = ["HermesToolCallParser"]


class HermesToolCallParser(TaggedJsonParser):
    """Reads ``<tool_call>`` blocks."""

    opening = "<tool_call>"
    closing = "</tool_call>"
