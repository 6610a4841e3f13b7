"""The Kimi K2 format: a section of calls, each with the model's own id ``functions.name:index``, which stays.

The history is rendered with these ids, and the model counts them on: any other id would be one that it never wrote.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from openai.types.chat.chat_completion_message_tool_call import ChatCompletionMessageToolCall

from environments.tool_call_parsers.argument_types import corrected_arguments, parameters_of
from environments.tool_call_parsers.interface import ParseResult, ToolCallParser, ToolSchemas, tool_call
from environments.tool_call_parsers.json_extent import end_of_json, skip_space
from environments.tool_call_parsers.marked_text import THINK_TAGS, Reading, end_of_call, find_calls, in_section, no_call, one_of

_SECTION_BEGIN = ("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>")
_SECTION_END = ("<|tool_calls_section_end|>", "<|tool_call_section_end|>")
_CALL_BEGIN, _ARGUMENTS_BEGIN, _CALL_END = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
_MARKERS = one_of([*_SECTION_BEGIN, *_SECTION_END, _CALL_BEGIN, *(tag for pair in THINK_TAGS for tag in pair)])
_INDEX = re.compile(r"[0-9]{1,9}")
_ID = re.compile(r"\s*([^\s<>{}\[\]\"'`]+)\s*")


class KimiK2ToolCallParser(ToolCallParser):
    """Reads the calls of a section. The end token of the last one may be missing if its arguments are complete."""

    def parse(self, text: str, tools: ToolSchemas = None) -> ParseResult:
        """Return content and calls. Arguments are corrected by the tool's schema, as vLLM does."""
        content, calls = find_calls(
            text, _MARKERS, in_section(_SECTION_BEGIN, _CALL_BEGIN, functools.partial(_read, text, tools))
        )
        _count_on(calls or [])
        return content, calls


def _read(text: str, tools: ToolSchemas, start: int, inside: int) -> Reading | None:
    header = _ID.match(text, inside)
    if not header or not text.startswith(_ARGUMENTS_BEGIN, header.end()):
        return None
    body = skip_space(text, header.end() + len(_ARGUMENTS_BEGIN))
    after = body if _end_of_call(text, body) is not None else end_of_json(text, body)
    end = None if after < 0 else _end_of_call(text, skip_space(text, after))
    if end is None or body == len(text):
        return no_call(text, inside, after)
    name = _name_in(header.group(1))
    arguments = corrected_arguments(text[body:after] or "{}", parameters_of(tools, name))
    call = tool_call(name, arguments, header.group(1))
    return Reading(calls=[call], end=end, spans=[(start, end)]) if call else None


def _end_of_call(text: str, position: int) -> int | None:
    return end_of_call(text, position, _CALL_END, (*_SECTION_END, _CALL_BEGIN))


def _name_in(call_id: str) -> str:
    """Return the tool's name in ``functions.name:index``; an empty text for any other id."""
    name, _, index = call_id.rpartition(":")
    return name.partition(":")[0].removeprefix("functions.") if _INDEX.fullmatch(index) else ""


def _count_on(calls: Iterable[ChatCompletionMessageToolCall]) -> None:
    """Assign the next free index to a call whose id the model has already used."""
    used: set[str] = set()
    free: dict[str, int] = {}
    for call in calls:
        stem, _, index = call.id.rpartition(":")
        while call.id in used:
            free[stem] = free.get(stem, int(index)) + 1
            call.id = f"{stem}:{free[stem]}"
        used.add(call.id)
