"""Renders a conversation as text for wandb's rollout table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from environments.loop.messages import message_text

REASONING_LIMIT, ARGUMENTS_LIMIT, RESULT_LIMIT = 300, 200, 500
"""Maximum characters of a turn's reasoning, a call's arguments, a tool's result."""


def render(messages: Sequence[dict[str, Any]]) -> str:
    """Return a conversation with its roles, reasoning, tool calls and tool results; long parts are cut."""
    return "\n".join(line for message in messages for line in _lines(message))


def _lines(message: dict[str, Any]) -> list[str]:
    role = message.get("role", "unknown")
    content = message_text(message.get("content"))
    if role == "tool":
        return [f"[TOOL RESULT] {_cut(content, RESULT_LIMIT)}"]
    lines = []
    if message.get("reasoning_content"):
        lines.append(f"[REASONING] {_cut(message['reasoning_content'], REASONING_LIMIT)}")
    if content or not message.get("tool_calls"):
        lines.append(f"[{role.upper()}] {content}")
    for call in message.get("tool_calls") or ():
        function = call["function"]
        lines.append(f"[TOOL CALL] {function['name']}({_cut(function['arguments'], ARGUMENTS_LIMIT)})")
    return lines


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."
