"""The DeepSeek formats: special tokens around every call, and around all of them.

V3 and R1 write ``function``, a separator, the name and a fenced JSON block; V3.1 writes the name, a separator and JSON. A call
counts inside the section of all calls, and with its end token: the family always writes both.
"""

from __future__ import annotations

import re
from abc import abstractmethod

from environments.tool_call_parsers.interface import ParseResult, ToolCallParser, ToolSchemas, tool_call
from environments.tool_call_parsers.json_extent import end_of_json, read_json, skip_space
from environments.tool_call_parsers.marked_text import THINK_TAGS, Reading, find_calls, no_call, one_of

__all__ = ["DeepSeekV3ToolCallParser", "DeepSeekV31ToolCallParser"]

# the tokens contain U+FF5C and U+2581, which look like a bar and an underscore
_SECTION_BEGIN, _SECTION_END = "<\uff5ctool\u2581calls\u2581begin\uff5c>", "<\uff5ctool\u2581calls\u2581end\uff5c>"
_CALL_BEGIN, _CALL_END = "<\uff5ctool\u2581call\u2581begin\uff5c>", "<\uff5ctool\u2581call\u2581end\uff5c>"
_SEPARATOR = "<\uff5ctool\u2581sep\uff5c>"
_MARKERS = one_of([_SECTION_BEGIN, _SECTION_END, _CALL_BEGIN, *(tag for pair in THINK_TAGS for tag in pair)])
_NAME = re.compile(r"[ \t]*([^\s<>{}\[\]\"'`]+)[ \t]*")


class _DeepSeekParser(ToolCallParser):
    """The common part of both formats: the section, and calls that end with a token."""

    def parse(self, text: str, tools: ToolSchemas = None) -> ParseResult:
        """Return content and calls. JSON types the values, so ``tools`` are not needed."""
        is_in_section = False

        def read(marker: str, start: int, end: int) -> Reading | None:
            nonlocal is_in_section
            if marker != _CALL_BEGIN:
                is_in_section = is_in_section or marker == _SECTION_BEGIN
                return Reading(end=end, spans=[(start, end)])
            return self._read(text, start, end) if is_in_section else None

        return find_calls(text, _MARKERS, read)

    def _read(self, text: str, start: int, inside: int) -> Reading | None:
        header = self._read_header(text, inside)
        if header is None:
            return None
        name, body = header
        body = skip_space(text, body)
        after = body if self._end_of_call(text, body) is not None else end_of_json(text, body)
        end = None if after < 0 else self._end_of_call(text, after)
        if end is None:
            return no_call(text, inside, after)
        arguments = text[body:after] or "{}"
        _, is_json = read_json(arguments)
        call = tool_call(name, arguments) if is_json else None
        return Reading(calls=[call], end=end, spans=[(start, end)]) if call else None

    @abstractmethod
    def _read_header(self, text: str, position: int) -> tuple[str, int] | None:
        """Return the name and the start of the arguments; None when there is no header."""

    @abstractmethod
    def _end_of_call(self, text: str, position: int) -> int | None:
        """Return the position after a call whose arguments have ended; None when the call does not end there."""


class DeepSeekV3ToolCallParser(_DeepSeekParser):
    """Reads the calls of V3 and R1: the arguments are in a fenced block, on one or several lines."""

    _KIND = f"function{_SEPARATOR}"
    _FENCE_BEGIN, _FENCE_END = "\n```json\n", "```"

    def _read_header(self, text: str, position: int) -> tuple[str, int] | None:
        name = _NAME.match(text, position + len(self._KIND)) if text.startswith(self._KIND, position) else None
        if not name or not text.startswith(self._FENCE_BEGIN, name.end()):
            return None
        return name.group(1), name.end() + len(self._FENCE_BEGIN)

    def _end_of_call(self, text: str, position: int) -> int | None:
        fence = skip_space(text, position)
        if not text.startswith(self._FENCE_END, fence) or text[fence - 1] != "\n":
            return None
        end = skip_space(text, fence + len(self._FENCE_END))
        return end + len(_CALL_END) if text.startswith(_CALL_END, end) else None


class DeepSeekV31ToolCallParser(_DeepSeekParser):
    """Reads the calls of V3.1: name, separator, arguments."""

    def _read_header(self, text: str, position: int) -> tuple[str, int] | None:
        name = _NAME.match(text, position)
        if not name or not text.startswith(_SEPARATOR, name.end()):
            return None
        return name.group(1), name.end() + len(_SEPARATOR)

    def _end_of_call(self, text: str, position: int) -> int | None:
        end = skip_space(text, position)
        return end + len(_CALL_END) if text.startswith(_CALL_END, end) else None
