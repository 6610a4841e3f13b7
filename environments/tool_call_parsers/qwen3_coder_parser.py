"""The Qwen3-Coder format: ``<tool_call><function=name><parameter=key>value</parameter></function></tool_call>``.

Values are plain text between one line break on each side, so their types come from the tool's schema, or from the text itself when the tools are not known.
``<tool_call>`` and its closing tag may be missing; so may the closing tag of a parameter before the next one.
"""

from __future__ import annotations

import re

from environments.tool_call_parsers.argument_types import typed_texts
from environments.tool_call_parsers.interface import ParseResult, ToolCallParser, ToolSchemas, json_text, tool_call
from environments.tool_call_parsers.json_extent import BROKEN, CUT_OFF, skip_space
from environments.tool_call_parsers.marked_text import THINK_TAGS, Reading, end_of_call, find_calls, no_call, one_of

_BLOCK, _BLOCK_END = "<tool_call>", "</tool_call>"
_FUNCTION, _FUNCTION_END = "<function=", "</function>"
_PARAMETER, _PARAMETER_END = "<parameter=", "</parameter>"
_MARKERS = one_of([_BLOCK, _FUNCTION, *(tag for pair in THINK_TAGS for tag in pair)])
_VALUE_TAGS = one_of([_PARAMETER, _PARAMETER_END])
_FUNCTION_TAGS = one_of([_FUNCTION, _FUNCTION_END])
_NAME = re.compile(r"\s*([^\s<>{}\[\]\"'`]+)\s*>")
_KEY = re.compile(r"([^<>\n]+)>")


class Qwen3CoderToolCallParser(ToolCallParser):
    """Reads ``<function=...>`` blocks. A truncated call does not count: a parameter could be missing."""

    def parse(self, text: str, tools: ToolSchemas = None) -> ParseResult:
        """Return content and calls; values are typed by the schemas in ``tools``."""
        return find_calls(text, _MARKERS, lambda *at: _read(text, tools, *at))


def _read(text: str, tools: ToolSchemas, marker: str, start: int, inside: int) -> Reading | None:
    """Read one function, and the tag of the block around it."""
    function = inside
    if marker == _BLOCK:
        function = skip_space(text, inside)
        if not text.startswith(_FUNCTION, function):
            return None
        function += len(_FUNCTION)
    name = _NAME.match(text, function)
    if not name:
        return None
    arguments, position, is_cut_off = _read_parameters(text, skip_space(text, name.end()))
    end = end_of_call(text, position, _FUNCTION_END, (_BLOCK_END, _BLOCK, _FUNCTION), fewest=len("</"))
    call = tool_call(name.group(1), json_text(typed_texts(arguments, tools, name.group(1))))
    if end is None or call is None:
        return no_call(text, inside, CUT_OFF if is_cut_off else position)
    end = end_of_call(text, skip_space(text, end), _BLOCK_END, fewest=1) or end
    return Reading(calls=[call], end=end, spans=[(start, end)])


def _read_parameters(text: str, position: int) -> tuple[dict[str, str], int, bool]:
    """Return the complete parameters, their end, and whether the text ends within the value of another."""
    arguments: dict[str, str] = {}
    while text.startswith(_PARAMETER, position):
        key = _KEY.match(text, position + len(_PARAMETER))
        end = _end_of_value(text, key.end()) if key else BROKEN
        if key is None or end < 0:
            return arguments, position, end == CUT_OFF
        arguments[key.group(1)] = text[key.end() : end].removeprefix("\n").removesuffix("\n")
        position = skip_space(text, end + (len(_PARAMETER_END) if text.startswith(_PARAMETER_END, end) else 0))
    return arguments, position, False


def _end_of_value(text: str, start: int) -> int:
    """Return the end of a value: its closing tag, or the next parameter of the same function."""
    tag = _VALUE_TAGS.search(text, start)
    if not tag:
        return CUT_OFF
    is_left_open = tag.group() == _PARAMETER and _FUNCTION_TAGS.search(text, start, tag.start())
    return BROKEN if is_left_open else tag.start()
