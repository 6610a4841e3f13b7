"""The LongCat format: that of Hermes with different tags."""

from __future__ import annotations

from environments.tool_call_parsers.marked_text import THINK_TAGS
from environments.tool_call_parsers.tagged_json import TaggedJsonParser

__all__ = ["LongcatToolCallParser"]


class LongcatToolCallParser(TaggedJsonParser):
    """Reads ``<longcat_tool_call>`` blocks."""

    opening = "<longcat_tool_call>"
    closing = "</longcat_tool_call>"
    think_tags = (*THINK_TAGS, ("<longcat_think>", "</longcat_think>"))
