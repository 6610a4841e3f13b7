"""Walks a model's output from marker to marker: skips what is thought, lets a family read its calls, keeps the rest as content.

A thought reaches from its opening tag to the next closing tag, or to the end of the text. Where the chat template has opened it in
the prompt, only the closing tag is seen: then all that stands before the first one was thought.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from openai.types.chat.chat_completion_message_tool_call import ChatCompletionMessageToolCall

from environments.tool_call_parsers.interface import ParseResult
from environments.tool_call_parsers.json_extent import CUT_OFF

__all__ = ["THINK_TAGS", "Reading", "ends_in_tag", "find_calls", "no_call", "one_of"]

THINK_TAGS = (("<think>", "</think>"),)
"""The tags around a thought, as (opening, closing)."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a family read at a marker: the calls, where reading goes on, and the spans that are no content.

    Think tags before ``data_until`` are none: they stand in the arguments of what was, but for its end, a call.
    """

    calls: Sequence[ChatCompletionMessageToolCall] = ()
    end: int
    spans: Sequence[tuple[int, int]] = ()
    data_until: int = 0


ReadAtMarker: TypeAlias = Callable[[str, int, int], Reading | None]
"""(marker, its start, its end) -> what was read there; None when it is no call, and stays text."""


def one_of(markers: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern that finds the next of some literal texts; of two that begin alike, the longer one."""
    return re.compile("|".join(re.escape(marker) for marker in sorted(markers, key=len, reverse=True)))


def no_call(text: str, inside: int, end_of_arguments: int) -> Reading:
    """Return that there is no call at the marker that ends at ``inside``, though there may be arguments.

    ``end_of_arguments`` is their end as `end_of_json` tells it: arguments that are broken hold no data, those in which the text
    ends hold all the rest.
    """
    return Reading(end=inside, data_until=len(text) if end_of_arguments == CUT_OFF else end_of_arguments)


def find_calls(
    text: str, markers: re.Pattern[str], read: ReadAtMarker, think_tags: Sequence[tuple[str, str]] = THINK_TAGS
) -> ParseResult:
    """Return content and calls. ``markers`` finds the family's markers and all ``think_tags``.

    What ``read`` took as a call is opaque: a tag inside its arguments is data. Where ``read`` gave up, reading goes on right
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


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    kept = []
    position = 0
    for start, end in spans:
        kept.append(text[position:start])
        position = end
    return "".join([*kept, text[position:]])


def ends_in_tag(text: str, position: int, tag: str, *, fewest: int = 1) -> bool:
    """Say whether the text ends within this tag, with at least the ``fewest`` of its characters."""
    rest = text[position : position + len(tag)]
    return position + len(rest) == len(text) and len(rest) >= fewest and tag.startswith(rest)
