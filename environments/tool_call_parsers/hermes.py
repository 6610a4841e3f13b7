"""The Hermes and Qwen format: ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``; an unclosed last tag is allowed."""

from __future__ import annotations

import json
import uuid
from typing import Any

from openai.types.chat.chat_completion_message_tool_call import ChatCompletionMessageToolCall, Function

from environments.tool_call_parsers import ParseResult, ToolCallParser, register_parser

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_THINK_OPEN, _THINK_CLOSE = "<think>", "</think>"
_DECODER = json.JSONDecoder()


@register_parser("hermes")
@register_parser("qwen")
class HermesToolCallParser(ToolCallParser):
    """Reads ``<tool_call>`` blocks. A malformed block stays in the content; its well-formed neighbours are still read."""

    def parse(self, text: str) -> ParseResult:
        """Return content and calls; what stands inside a think block is content, never a call."""
        calls: list[ChatCompletionMessageToolCall] = []
        kept: list[str] = []
        for piece, is_open in _pieces(text):
            call = _read_call(piece) if is_open else None
            if call is None:
                kept.append(f"{_OPEN}{piece}" if is_open else piece)
            else:
                calls.append(call)
        if not calls:
            return text, None
        return "".join(kept).strip() or None, calls


def _pieces(text: str) -> list[tuple[str, bool]]:
    """Split into (text, False) and (inside of a tool_call, True); unread tails of a block stay text. Linear in the text."""
    pieces: list[tuple[str, bool]] = []
    position = 0
    think = text.find(_THINK_OPEN)
    while True:
        start = text.find(_OPEN, position)
        if 0 <= think < position:
            think = text.find(_THINK_OPEN, position)
        if start < 0:
            pieces.append((text[position:], False))
            return pieces
        if 0 <= think < start:
            end = text.find(_THINK_CLOSE, think)
            end = len(text) if end < 0 else end + len(_THINK_CLOSE)
            pieces.append((text[position:end], False))
            position = end
            continue
        pieces.append((text[position:start], False))
        inside = start + len(_OPEN)
        end, position = _end_of_block(text, inside)
        pieces.append((text[inside:end], True))


def _end_of_block(text: str, inside: int) -> tuple[int, int]:
    """Return where the block's inside ends and where reading goes on.

    The JSON object itself decides: a closing tag inside one of its strings does not end the block.
    """
    body = inside
    while body < len(text) and text[body].isspace():
        body += 1
    try:
        _, after = _DECODER.raw_decode(text, body)
    except (ValueError, RecursionError):
        closing = text.find(_CLOSE, inside)
        opening = text.find(_OPEN, inside)
        if closing >= 0 and not 0 <= opening < closing:
            return closing + len(_CLOSE), closing + len(_CLOSE)
        stop = opening if opening >= 0 else len(text)
        return stop, stop
    rest = after
    while rest < len(text) and text[rest].isspace():
        rest += 1
    return after, rest + len(_CLOSE) if text.startswith(_CLOSE, rest) else after


def _read_call(inside: str) -> ChatCompletionMessageToolCall | None:
    try:
        value: Any = json.loads(inside)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments", {})
    return ChatCompletionMessageToolCall(
        id=f"call_{uuid.uuid4().hex[:24]}",
        type="function",
        function=Function(
            name=value["name"],
            arguments=arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False),
        ),
    )
