"""The GLM 4.5 to 4.7 format: ``<tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value></tool_call>``.

Values are plain text, so their types come from the tool's schema, or from the text itself when the tools are not known. A value ends at its closing tag: any
other tag inside it is data, except tags of another argument, which show that the closing tag is missing.
"""

from __future__ import annotations

import re

from environments.tool_call_parsers.argument_types import typed_texts
from environments.tool_call_parsers.interface import ParseResult, ToolCallParser, ToolSchemas, json_text, tool_call
from environments.tool_call_parsers.json_extent import CUT_OFF, skip_space
from environments.tool_call_parsers.marked_text import THINK_TAGS, Reading, end_of_call, find_calls, no_call, one_of

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_KEY, _KEY_END = "<arg_key>", "</arg_key>"
_VALUE, _VALUE_END = "<arg_value>", "</arg_value>"
_MARKERS = one_of([_OPEN, *(tag for pair in THINK_TAGS for tag in pair)])
_ARGUMENT_TAGS = one_of([_KEY, _KEY_END, _VALUE, _VALUE_END])
_NAME = re.compile(r"\s*([^\s<>{}\[\]\"'`]+)\s*")


class Glm45ToolCallParser(ToolCallParser):
    """Reads ``<tool_call>`` blocks. A truncated call does not count: an argument could be missing."""

    def parse(self, text: str, tools: ToolSchemas = None) -> ParseResult:
        """Return content and calls; values are typed by the schemas in ``tools``."""
        return find_calls(text, _MARKERS, lambda *at: _read(text, tools, *at))


Glm47ToolCallParser = Glm45ToolCallParser


def _read(text: str, tools: ToolSchemas, _marker: str, start: int, inside: int) -> Reading | None:
    name = _NAME.match(text, inside)
    if not name:
        return None
    arguments: dict[str, str] = {}
    position = end_of_values = name.end()
    while text.startswith(_KEY, position):
        key, position = _element(text, position + len(_KEY), _KEY_END)
        if key is None or not text.startswith(_VALUE, position):
            return no_call(text, inside, end_of_values)
        value, position = _element(text, position + len(_VALUE), _VALUE_END)
        if value is None:
            return no_call(text, inside, CUT_OFF if position == len(text) else end_of_values)
        arguments[key.strip()] = value
        end_of_values = position
    end = end_of_call(text, position, _CLOSE, (_OPEN,) if arguments else (), fewest=len("</"))
    if end is None:
        return no_call(text, inside, end_of_values)
    call = tool_call(name.group(1), json_text(typed_texts(arguments, tools, name.group(1))))
    return Reading(calls=[call], end=end, spans=[(start, end)]) if call else None


def _element(text: str, start: int, closing: str) -> tuple[str | None, int]:
    """Return the text up to a closing tag, and the position after it and its whitespace.

    If another tag or the end of the text comes first, return None and its position.
    """
    tag = _ARGUMENT_TAGS.search(text, start)
    if not tag or tag.group() != closing:
        return None, tag.start() if tag else len(text)
    return text[start : tag.start()], skip_space(text, tag.end())
