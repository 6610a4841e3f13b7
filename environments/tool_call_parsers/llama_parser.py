"""The Llama 3 and 4 format: bare JSON objects with ``name`` and ``arguments`` or ``parameters``.

``<|python_tag|>`` may precede them, and semicolons may separate them. Nothing else marks a call, so an ordinary JSON answer looks
like one: if the offered tools are known, an object is a call when it names one of them or follows the tag.
"""

from __future__ import annotations

import re

from environments.tool_call_parsers.argument_types import offered_names
from environments.tool_call_parsers.interface import ParseResult, ToolCallParser, ToolSchemas, read_envelope
from environments.tool_call_parsers.json_extent import BROKEN, end_of_json, read_json, skip_space
from environments.tool_call_parsers.marked_text import THINK_TAGS, Reading, find_calls, no_call, one_of

__all__ = ["LlamaToolCallParser"]

_TAG = "<|python_tag|>"
_OTHER_MARKERS = one_of([_TAG, *(tag for pair in THINK_TAGS for tag in pair)]).pattern
_MARKERS = re.compile(rf'\{{(?=[ \t\n\r]*")|{_OTHER_MARKERS}')
"""Matches only braces at which a non-empty object can begin."""
_ARGUMENT_KEYS = ("arguments", "parameters")
_BETWEEN_CALLS = "[],; \t\r\n"
"""Text around and between calls that is not content: their list and separators."""


class LlamaToolCallParser(ToolCallParser):
    """Reads bare JSON calls. Other objects stay in the content, and are not searched for calls inside."""

    def parse(self, text: str, tools: ToolSchemas = None) -> ParseResult:
        """Return content and calls. An object that names no offered tool is an ordinary answer."""
        content, calls = find_calls(text, _MARKERS, _Reader(text, tools).read)
        if calls and content and not content.strip(_BETWEEN_CALLS):
            content = None
        return content, calls


class _Reader:
    def __init__(self, text: str, tools: ToolSchemas) -> None:
        self._text = text
        self._offered = offered_names(tools)
        self._is_tagged = False
        self._braces: set[int] = set()  # of objects inside broken ones, which are not calls

    def read(self, marker: str, start: int, inside: int) -> Reading:
        if marker == _TAG:
            self._is_tagged = True
            return Reading(end=inside, spans=[(start, inside)])
        after = BROKEN if start in self._braces else end_of_json(self._text, start, self._braces)
        if after < 0:
            return no_call(self._text, inside, after)
        value, _ = read_json(self._text[start:after])
        if not self._is_call(value):
            return Reading(end=after)
        call = read_envelope(self._text[start:after], argument_keys=_ARGUMENT_KEYS)
        if call is None:
            return Reading(end=after)
        semicolon = skip_space(self._text, after)
        end = semicolon + 1 if self._text.startswith(";", semicolon) else after
        return Reading(calls=[call], end=end, spans=[(start, end)])

    def _is_call(self, value: object) -> bool:
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            return False
        if not any(key in value for key in _ARGUMENT_KEYS):
            return False
        return self._is_tagged or self._offered is None or value["name"] in self._offered
