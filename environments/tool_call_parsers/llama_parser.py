"""The Llama 3 and 4 format: bare JSON objects with ``name`` and ``arguments`` or ``parameters``.

``<|python_tag|>`` may precede them, and semicolons may separate them. Nothing else marks a call, so an ordinary JSON answer looks
like one: if the offered tools are known, an object is a call when it names one of them or follows the tag.
"""

from __future__ import annotations

import re

from environments.tool_call_parsers.argument_types import offered_names
from environments.tool_call_parsers.interface import ParseResult, ToolCallParser, ToolSchemas, read_envelope
from environments.tool_call_parsers.json_extent import BROKEN, end_of_json, read_json, skip_space
from environments.tool_call_parsers.marked_text import THINK_TAGS, ReadAtMarker, Reading, find_calls, no_call, one_of

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
        content, calls = find_calls(text, _MARKERS, _reader(text, offered_names(tools)))
        if calls and content and not content.strip(_BETWEEN_CALLS):
            content = None
        return content, calls


def _reader(text: str, offered: frozenset[str] | None) -> ReadAtMarker:
    is_tagged = False
    braces: set[int] = set()  # of objects inside broken ones, which are not calls

    def read(marker: str, start: int, inside: int) -> Reading:
        nonlocal is_tagged
        if marker == _TAG:
            is_tagged = True
            return Reading(end=inside, spans=[(start, inside)])
        after = BROKEN if start in braces else end_of_json(text, start, braces)
        if after < 0:
            return no_call(text, inside, after)
        value, _ = read_json(text[start:after])
        is_call = isinstance(value, dict) and isinstance(value.get("name"), str) and any(key in value for key in _ARGUMENT_KEYS)
        is_known = is_tagged or offered is None or (is_call and value["name"] in offered)
        call = read_envelope(text[start:after], argument_keys=_ARGUMENT_KEYS) if is_call and is_known else None
        if call is None:
            return Reading(end=after)
        semicolon = skip_space(text, after)
        end = semicolon + 1 if text.startswith(";", semicolon) else after
        return Reading(calls=[call], end=end, spans=[(start, end)])

    return read
