"""The Mistral formats, each after ``[TOOL_CALLS]``: a JSON array of calls (before v11), or ``name{arguments}`` (v11 and later).

From v11 on, ``[ARGS]`` may separate name and arguments, and ``[CALL_ID]`` with an id may precede it. Ids are nine letters and
digits: the family's chat templates reject any other.
"""

from __future__ import annotations

import re

from openai.types.chat.chat_completion_message_tool_call import ChatCompletionMessageToolCall

from environments.tool_call_parsers.argument_types import corrected_arguments, parameters_of
from environments.tool_call_parsers.interface import ParseResult, ToolCallParser, ToolSchemas, read_envelope, tool_call
from environments.tool_call_parsers.json_extent import BROKEN, CUT_OFF, end_of_json, skip_space
from environments.tool_call_parsers.marked_text import THINK_TAGS, Reading, find_calls, no_call, one_of

_MARKER = "[TOOL_CALLS]"
_THINK_TAGS = (*THINK_TAGS, ("[THINK]", "[/THINK]"))
_MARKERS = one_of([_MARKER, *(tag for pair in _THINK_TAGS for tag in pair)])
_NAME = re.compile(r"\s*([^\s\[\]{}<>\"'`]+)\s*")
_CALL_ID = re.compile(r"\[CALL_ID\]\s*[A-Za-z0-9]*\s*")
_ARGS = "[ARGS]"
_ELEMENT = re.compile(r"[\[,]\s*(?=\{)")


class MistralToolCallParser(ToolCallParser):
    """Reads the calls after each ``[TOOL_CALLS]``. A malformed call stays in the content, with its marker."""

    def parse(self, text: str, tools: ToolSchemas = None) -> ParseResult:
        """Return content and calls. Arguments after a name are corrected by the tool's schema, as vLLM does."""
        return find_calls(text, _MARKERS, lambda *at: _read(text, tools, *at), _THINK_TAGS)


def _read(text: str, tools: ToolSchemas, _marker: str, start: int, inside: int) -> Reading | None:
    body = skip_space(text, inside)
    if text.startswith(_MARKER, body):
        return Reading(end=body, spans=[(start, body)])
    if text.startswith("[", body):
        return _read_array(text, start, body)
    if text.startswith("{", body):
        end = end_of_json(text, body)
        call = None if end < 0 else read_envelope(text[body:end])
        return Reading(calls=[call], end=end, spans=[(start, end)]) if call else no_call(text, inside, end)
    return _read_named(text, tools, start, inside)


def _read_named(text: str, tools: ToolSchemas, start: int, inside: int) -> Reading | None:
    """Read ``name{...}``, ``name[ARGS]{...}`` or ``name[CALL_ID]id[ARGS]{...}``."""
    name = _NAME.match(text, inside)
    if not name:
        return None
    position = name.end()
    if call_id := _CALL_ID.match(text, position):
        position = call_id.end()
    if text.startswith(_ARGS, position):
        position = skip_space(text, position + len(_ARGS))
    end = end_of_json(text, position) if text.startswith("{", position) else BROKEN
    if end < 0:
        return no_call(text, inside, end)
    arguments = corrected_arguments(text[position:end], parameters_of(tools, name.group(1)))
    call = tool_call(name.group(1), arguments)
    return Reading(calls=[call], end=end, spans=[(start, end)]) if call else None


def _read_array(text: str, start: int, bracket: int) -> Reading | None:
    """Read an array of calls. If an element is broken, the complete ones around it, up to the next marker, are still read."""
    braces: set[int] = set()  # of objects inside elements, which are not calls
    found: list[tuple[int, int, ChatCompletionMessageToolCall]] = []
    data_until = 0

    def read_element(begin: int, *, needs_arguments: bool) -> int | None:
        """Return the end of the object at ``begin`` if it is a call."""
        nonlocal data_until
        end = end_of_json(text, begin, braces)
        data_until = max(data_until, len(text) if end == CUT_OFF else end)
        call = None if end < 0 else read_envelope(text[begin:end], needs_arguments=needs_arguments)
        if call is None:
            return None
        found.append((begin, end, call))
        return end

    position = skip_space(text, bracket + 1)
    while text.startswith("{", position) and (end := read_element(position, needs_arguments=False)) is not None:
        position = skip_space(text, end)
        if position == len(text) or text.startswith("]", position):
            end = min(position + 1, len(text))
            return Reading(calls=[call for *_, call in found], end=end, spans=[(start, end)])
        if not text.startswith(",", position):
            break
        position = skip_space(text, position + 1)
    limit = text.find(_MARKER, position)
    while element := _ELEMENT.search(text, position, len(text) if limit < 0 else limit):
        position = element.end()
        if position not in braces:
            position = read_element(position, needs_arguments=True) or position
    spans = [(begin, end) for begin, end, _ in found]
    end = spans[-1][1] if spans else bracket
    return Reading(calls=[call for *_, call in found], end=end, spans=spans, data_until=data_until)
