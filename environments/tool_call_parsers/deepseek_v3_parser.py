"""The DeepSeek formats: special tokens around every call, and around all of them.

V3 and R1 write ``function``, a separator, the name and a fenced JSON block; V3.1 writes the name, a separator and JSON. A call
counts inside the section of all calls, and with its end token: the family always writes both.
"""

from __future__ import annotations

import functools
import re
from typing import ClassVar

from environments.tool_call_parsers.interface import ParseResult, ToolCallParser, ToolSchemas, tool_call
from environments.tool_call_parsers.json_extent import end_of_json, read_json, skip_space
from environments.tool_call_parsers.marked_text import THINK_TAGS, Reading, find_calls, in_section, no_call, one_of

# the tokens contain U+FF5C and U+2581, which look like a bar and an underscore
_SECTION_BEGIN, _SECTION_END = "<\uff5ctool\u2581calls\u2581begin\uff5c>", "<\uff5ctool\u2581calls\u2581end\uff5c>"
_CALL_BEGIN, _CALL_END = "<\uff5ctool\u2581call\u2581begin\uff5c>", "<\uff5ctool\u2581call\u2581end\uff5c>"
_SEPARATOR = "<\uff5ctool\u2581sep\uff5c>"
_MARKERS = one_of([_SECTION_BEGIN, _SECTION_END, _CALL_BEGIN, *(tag for pair in THINK_TAGS for tag in pair)])
_NAME = r"[ \t]*([^\s<>{}\[\]\"'`]+)[ \t]*"


class _DeepSeekParser(ToolCallParser):
    """The common part of both formats: the section, and calls between ``header``, whose group is the name, and ``end``."""

    header: ClassVar[re.Pattern[str]]
    end: ClassVar[re.Pattern[str]]

    def parse(self, text: str, tools: ToolSchemas = None) -> ParseResult:
        """Return content and calls. JSON types the values, so ``tools`` are not needed."""
        return find_calls(text, _MARKERS, in_section([_SECTION_BEGIN], _CALL_BEGIN, functools.partial(self._read, text)))

    def _read(self, text: str, start: int, inside: int) -> Reading | None:
        header = self.header.match(text, inside)
        if header is None:
            return None
        body = skip_space(text, header.end())
        after = body if self.end.match(text, body) else end_of_json(text, body)
        end = None if after < 0 else self.end.match(text, after)
        if end is None:
            return no_call(text, inside, after)
        arguments = text[body:after] or "{}"
        _, is_json = read_json(arguments)
        call = tool_call(header.group(1), arguments) if is_json else None
        return Reading(calls=[call], end=end.end(), spans=[(start, end.end())]) if call else None


class DeepSeekV3ToolCallParser(_DeepSeekParser):
    """Reads the calls of V3 and R1: the arguments are in a fenced block, on one or several lines."""

    header = re.compile(f"function{_SEPARATOR}{_NAME}\n```json\n")
    end = re.compile(rf"[ \t\r\n]*(?<=\n)```[ \t\r\n]*{_CALL_END}")


class DeepSeekV31ToolCallParser(_DeepSeekParser):
    """Reads the calls of V3.1: name, separator, arguments."""

    header = re.compile(_NAME + _SEPARATOR)
    end = re.compile(rf"[ \t\r\n]*{_CALL_END}")
