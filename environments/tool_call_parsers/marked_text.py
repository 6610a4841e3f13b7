"""Walks a model's output from marker to marker: skips thoughts, reads calls in the family's format, and returns the rest as content.

A thought extends from its opening tag to the next closing tag, or to the end of the text. If the chat template opened it in the
prompt, the text only has the closing tag: then everything before the first one is thought.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from openai.types.chat.chat_completion_message_tool_call import ChatCompletionMessageToolCall

from environments.tool_call_parsers.interface import ParseResult
from environments.tool_call_parsers.json_extent import CUT_OFF

THINK_TAGS = (("<think>", "</think>"),)
"""The tags around a thought, as (opening, closing)."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The result of reading at a marker: the calls, the position to continue from, and the spans that are not content.

    Think tags before ``data_until`` are data: they are in the arguments of a call without an end.
    """

    calls: Sequence[ChatCompletionMessageToolCall] = ()
    end: int
    spans: Sequence[tuple[int, int]] = ()
    data_until: int = 0


ReadAtMarker: TypeAlias = Callable[[str, int, int], Reading | None]
"""(marker, its start, its end) -> the result; None when there is no call, and the marker stays text."""


def one_of(markers: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern that finds the next of some literal texts; if two match, the longer one."""
    return re.compile("|".join(re.escape(marker) for marker in sorted(markers, key=len, reverse=True)))


def no_call(text: str, inside: int, end_of_arguments: int) -> Reading:
    """Return the reading of a marker that ends at ``inside`` and starts no call, though arguments may follow.

    ``end_of_arguments`` is the result of `end_of_json` for them: broken arguments contain no data, truncated ones all the rest.
    """
    return Reading(end=inside, data_until=len(text) if end_of_arguments == CUT_OFF else end_of_arguments)


def find_calls(
    text: str, markers: re.Pattern[str], read: ReadAtMarker, think_tags: Sequence[tuple[str, str]] = THINK_TAGS
) -> ParseResult:
    """Return content and calls. ``markers`` finds the family's markers and all ``think_tags``.

    A call that ``read`` returns is opaque: a tag inside its arguments is data. If ``read`` returns none, reading continues right
    after the marker, so that a malformed call does not hide the next one.
    """
    opening = dict(think_tags)
    closing = frozenset(opening.values())
    calls: list[ChatCompletionMessageToolCall] = []
    spans: list[tuple[int, int]] = []
    has_thought = False
    position = data_until = 0
    while found := markers.search(text, position):
        marker, position = found.group(), found.end()
        if found.start() < data_until and (marker in opening or marker in closing):
            continue
        if marker in opening:
            has_thought = True
            end = text.find(opening[marker], position)
            if end < 0:
                break
            position = end + len(opening[marker])
        elif marker in closing:
            if not has_thought:
                calls.clear()
                spans.clear()
            has_thought = True
        elif reading := read(marker, found.start(), position):
            calls += reading.calls
            spans += reading.spans
            position = reading.end
            data_until = max(data_until, reading.data_until)
    if not calls:
        return text, None
    return _without(text, spans).strip() or None, calls


def in_section(openings: Sequence[str], call: str, read: Callable[[int, int], Reading | None]) -> ReadAtMarker:
    """Return how to read a format whose calls count only inside a section; markers other than ``call`` are not content."""
    is_inside = False

    def read_at(marker: str, start: int, end: int) -> Reading | None:
        nonlocal is_inside
        if marker == call:
            return read(start, end) if is_inside else None
        is_inside = is_inside or marker in openings
        return Reading(end=end, spans=[(start, end)])

    return read_at


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    kept = []
    position = 0
    for start, end in spans:
        kept.append(text[position:start])
        position = end
    return "".join([*kept, text[position:]])


def end_of_call(text: str, position: int, closing: str, before: tuple[str, ...] = (), *, fewest: int = 0) -> int | None:
    """Return the end of a call whose arguments end at ``position``; None when that is uncertain.

    The closing tag may be left out ``before`` some tags, and cut off by the end of the text after ``fewest`` of its characters.
    """
    if text.startswith(closing, position):
        return position + len(closing)
    rest = text[position : position + len(closing)]
    if fewest <= len(rest) < len(closing) and closing.startswith(rest):
        return len(text)
    return position if text.startswith(before, position) else None
