"""Reads messages and tools back from the text of a rendered prompt.

Place in the flow: requests to `/generate` contain only token ids. They are decoded, and the template's own marks show where each
message begins. So a script sees the same conversation in token mode as in chat mode.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from pytest_hermes_env.inference.offered_tools import offered_tools

if TYPE_CHECKING:
    from pytest_hermes_env.inference.templates import Template

THINK_TAG = re.compile(r"</?(?:longcat_)?think>|\[/?THINK\]")

Message = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """Messages with role and text, and the tools by name. An assistant's text is the sampled text, including its tool calls."""

    messages: tuple[Message, ...]
    tools: Mapping[str, Mapping[str, object]]


def read_transcript(text: str, template: Template) -> Transcript:
    """Return the messages and tools of the prompt. Text without any mark of the template is one user message."""
    openings = list(_openings(template).finditer(text))
    if not openings:
        return Transcript(messages=({"role": "user", "content": text},), tools={})
    ends = [*(opening.start() for opening in openings[1:]), len(text)]
    messages: list[Message] = []
    declared: list[str] = []
    for opening, end in zip(openings, ends, strict=True):
        role = template.openings[opening.group()]
        body, is_closed = _without_closing(text[opening.end() : end], template)
        is_last = end == len(text)
        if role == "tools":
            declared.append(body)
        elif role == "system":
            body, declaration = _split_system(re.sub(template.preamble, "", body, count=1), template.tools_heading)
            declared.append(declaration)
            if body:
                messages.append({"role": "system", "content": body})
        elif role == "tool" or (template.results == "tagged" and body.startswith("<tool_response>")):
            messages.extend({"role": "tool", "content": result} for result in _results(body, template))
        elif role == "user" and template.tools == "in the first user message" and body.startswith(str(template.tools_heading)):
            question = _end_of_tools(body)
            declared.append(body[:question])
            messages.append({"role": role, "content": body[question:].removeprefix("\n\n")})
        elif role == "user" or is_closed or without_thoughts(body) or (body and not is_last):
            # Skips an answer that has not begun: the mark alone, or with a think block that the template opens.
            messages.append({"role": role, "content": body})
    return Transcript(messages=tuple(messages), tools=_tools("\n".join(declared)))


def without_thoughts(text: str) -> str:
    """Return the text of an answer after its think block, without surrounding whitespace.

    Templates differ in whether they keep these, so only without them are two renderings of one answer equal.
    """
    return THINK_TAG.split(text)[-1].strip()


@cache
def _openings(template: Template) -> re.Pattern[str]:
    longest_first = sorted(template.openings, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)))


def _without_closing(body: str, template: Template) -> tuple[str, bool]:
    """Return the body without its closing marks, and whether it had one."""
    is_closed = False
    while closing := next((mark for mark in template.closings if body.endswith(mark)), None):
        body = body.removesuffix(closing)
        is_closed = True
    return body, is_closed


def _split_system(system: str, heading: str | None) -> tuple[str, str]:
    if heading is None or heading not in system:
        return system, ""
    text, _, declaration = system.partition(heading)
    return text.rstrip("\n"), declaration


def _results(body: str, template: Template) -> list[str]:
    """Return the tool results in a part of the prompt; several if the template joins them."""
    if template.results == "tagged":
        gap = template.variables.get("gap", "\n")
        return re.findall(f"<tool_response>{gap}(.*?){gap}</tool_response>", body, re.DOTALL) or [body]
    if template.results == "named":
        result = body.partition("<|im_middle|>")[2]
        return [result.partition("\n")[2] if result.startswith("## Return of ") else result]
    if template.results == "after its id":
        before, mark, result = body.partition("[TOOL_CONTENT]")
        return [result if mark else before]
    if template.results == "JSON":
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return [body]
        return [value if isinstance(value, str) else body]
    return [body]


@lru_cache(maxsize=64)
def _tools(declaration: str) -> Mapping[str, Mapping[str, object]]:
    return offered_tools({"tools": [tool for tool, _, _ in _declared(declaration)]})


def _end_of_tools(text: str) -> int:
    """Return the end of the tool schemas at the beginning of a message: only whitespace is between them."""
    end = 0
    for _, start, after in _declared(text):
        if end and text[end:start].strip():
            break
        end = after
    return end


def _declared(text: str) -> Iterator[tuple[Mapping[str, object], int, int]]:
    """Yield each tool schema in the text, bare or wrapped in ``{"type": "function", ...}``, with its start and its end."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        try:
            value, after = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            value, after = None, at + 1
        if isinstance(value, dict) and "function" in value:
            yield value, at, after
        elif isinstance(value, dict) and "name" in value and "parameters" in value:
            yield {"type": "function", "function": value}, at, after
        at = text.find("{", after)
