"""Calls as JSON between an opening and a closing tag, for the families that differ only in the tag.

The JSON determines where a call ends: a closing tag inside one of its strings is data. If the JSON is complete, the closing tag
may be missing at the end of the text and before the next opening tag.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from environments.tool_call_parsers.envelope import read_envelope
from environments.tool_call_parsers.interface import ParseResult, ToolCallParser, ToolSchemas
from environments.tool_call_parsers.json_extent import end_of_json, skip_space
from environments.tool_call_parsers.marked_text import THINK_TAGS, Reading, ends_in_tag, find_calls, no_call, one_of

__all__ = ["TaggedJsonParser"]


class TaggedJsonParser(ToolCallParser):
    """Reads JSON between tags. A malformed block stays in the content; its well-formed neighbours are still read."""

    opening: ClassVar[str]
    closing: ClassVar[str]
    think_tags: ClassVar[Sequence[tuple[str, str]]] = THINK_TAGS

    def parse(self, text: str, tools: ToolSchemas = None) -> ParseResult:
        """Return content and calls. JSON types the values, so ``tools`` are not needed."""
        tags = [tag for pair in self.think_tags for tag in pair]
        return find_calls(text, one_of([self.opening, *tags]), lambda *at: self._read(text, *at), self.think_tags)

    def _read(self, text: str, marker: str, start: int, inside: int) -> Reading:
        del marker
        body = skip_space(text, inside)
        after = end_of_json(text, body)
        end = None if after < 0 else self._end_of_block(text, skip_space(text, after))
        call = None if end is None else read_envelope(text[body:after])
        if end is None or call is None:
            return no_call(text, inside, after)
        return Reading(calls=[call], end=end, spans=[(start, end)])

    def _end_of_block(self, text: str, position: int) -> int | None:
        """Return the end of a block after its JSON; None when something else follows."""
        if text.startswith(self.closing, position):
            return position + len(self.closing)
        if position == len(text) or ends_in_tag(text, position, self.closing):
            return len(text)
        return position if text.startswith(self.opening, position) else None
