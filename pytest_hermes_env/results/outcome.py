"""From a story to what the agent loop leaves behind: messages, tool errors, reasoning, turn count.

Source: ``HermesAgentLoop`` of this distribution's ``environments.agent_loop``; a property test runs it on the same stories.
Result budgets are the one thing left out: they depend on an environment's settings and move long results into its sandbox.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pytest_hermes_env.results.inputs import why_bad
from pytest_hermes_env.results.values import DEFAULT_USER, Answer, Call, Story, Turn

__all__ = ["outcome"]


def outcome(story: Story, tool_error: Callable[..., Any]) -> dict[str, Any]:
    """Return the fields of the AgentResult, newly made; ``tool_error`` is the layer's ToolError."""
    messages = _first_messages(story)
    tools = story.tools()
    errors: list[Any] = []
    for number, turn in enumerate(story.turns, start=1):
        ids = _ids(story, number)
        messages.append(_assistant_message(turn, ids))
        for call, call_id in zip(turn.calls, ids, strict=True):
            text, error = _told(call, tools)
            messages.append({"role": "tool", "tool_call_id": call_id, "content": text})
            if error:
                seen = {"turn": number, "tool_name": call.tool, "arguments": call.arguments}
                errors.append(tool_error(**seen, error=error, tool_result=text))
    return {
        "messages": messages,
        "managed_state": _managed_state(story, messages),
        "turns_used": len(story.turns) + (story.end == "server_error"),
        "finished_naturally": story.is_answered,
        "reasoning_per_turn": [turn.thought or None for turn in story.turns],
        "tool_errors": errors,
    }


def _first_messages(story: Story) -> list[dict[str, Any]]:
    system = [] if story.system is None else [{"role": "system", "content": story.system}]
    return [*system, *({"role": "user", "content": text} for text in story.users or (DEFAULT_USER,))]


def _ids(story: Story, turn: int) -> list[str]:
    """Return the ids of a turn's calls: the calls of a rollout are counted from 1."""
    before = sum(len(earlier.calls) for earlier in story.turns[: turn - 1])
    return [f"call_{before + place}" for place in range(1, len(story.turns[turn - 1].calls) + 1)]


def _assistant_message(turn: Turn, ids: list[str]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or ""}
    if turn.calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": call.tool, "arguments": call.arguments}}
            for call, call_id in zip(turn.calls, ids, strict=True)
        ]
    if turn.thought:
        message["reasoning_content"] = turn.thought
    return message


def _told(call: Call, tools: list[str]) -> tuple[str, str]:
    """Return what the model is told about a call, and what is recorded as its error (empty when it is none)."""
    if call.kind == "unknown":
        error = f"Unknown tool '{call.tool}'"
        return json.dumps({"error": f"{error}. Available tools: {tools}"}), error
    if call.kind == "bad":
        error = f"Invalid arguments for {call.tool}: {why_bad(call.arguments)}"
        return json.dumps({"error": f"{error}. Send one JSON object with the tool's parameters."}, ensure_ascii=False), error
    answer = call.answer or Answer()
    if answer.failure is not None:
        error = f"Tool execution failed: {answer.failure.type_name}: {answer.failure.message}"
        return json.dumps({"error": error}, ensure_ascii=False), error
    return answer.text, _error_of(answer.text)


def _error_of(text: str) -> str:
    """Return the error of a result that also has a negative exit code: hermes' sign that the call itself failed."""
    try:
        result = json.loads(text)
    except ValueError:
        return ""
    if not isinstance(result, dict) or not result.get("error"):
        return ""
    exit_code = result.get("exit_code")
    return str(result["error"]) if isinstance(exit_code, int) and exit_code < 0 else ""


def _managed_state(story: Story, messages: list[dict[str, Any]]) -> dict[str, Any] | None:
    if story.tokenizer is None:
        return None
    from pytest_hermes_env.results.nodes import managed_state  # noqa: PLC0415 - atroposlib is heavy

    return managed_state(messages, story.tokenizer)
