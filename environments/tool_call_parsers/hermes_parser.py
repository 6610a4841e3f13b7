"""The Hermes, Qwen and LongCat formats: ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``, or with other tags.

The JSON determines where a call ends: a closing tag inside one of its strings is data. If the JSON is complete, the closing tag
may be missing at the end of the text and before the next opening tag.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from environments.tool_call_parsers.interface import ParseResult, ToolCallParser, ToolSchemas, read_envelope
from environments.tool_call_parsers.json_extent import end_of_json, skip_space
from environments.tool_call_parsers.marked_text import THINK_TAGS, Reading, end_of_call, find_calls, no_call, one_of


class TaggedJsonParser(ToolCallParser):
    """Reads JSON between tags. A malformed block stays in the content; its well-formed neighbours are still read."""

    opening: ClassVar[str]
    closing: ClassVar[str]
    think_tags: ClassVar[Sequence[tuple[str, str]]] = THINK_TAGS

    def parse(self, text: str, tools: ToolSchemas = None) -> ParseResult:
        """Return content and calls. JSON types the values, so ``tools`` are not needed."""
        tags = [tag for pair in self.think_tags for tag in pair]
        return find_calls(text, one_of([self.opening, *tags]), lambda *at: self._read(text, *at), self.think_tags)

    def _read(self, text: str, _marker: str, start: int, inside: int) -> Reading:
        body = skip_space(text, inside)
        after = end_of_json(text, body)
        end = None if after < 0 else end_of_call(text, skip_space(text, after), self.closing, (self.opening,))
        call = None if end is None else read_envelope(text[body:after])
        if end is None or call is None:
            return no_call(text, inside, after)
        return Reading(calls=[call], end=end, spans=[(start, end)])


class HermesToolCallParser(TaggedJsonParser):
    """Reads ``<tool_call>`` blocks."""

    opening = "<tool_call>"
    closing = "</tool_call>"


QwenToolCallParser = HermesToolCallParser


class LongcatToolCallParser(TaggedJsonParser):
    """Reads ``<longcat_tool_call>`` blocks."""

    opening = "<longcat_tool_call>"
    closing = "</longcat_tool_call>"
    think_tags = (*THINK_TAGS, ("<longcat_think>", "</longcat_think>"))
