"""Computes the fields of an AgentResult from a history: messages, tool errors, reasoning, turn count.

Source: ``HermesAgentLoop`` of this distribution's ``environments.agent_loop``; a property test runs it on the same histories.
Result budgets are not imitated: they depend on an environment's settings, and move long results into its sandbox.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pytest_hermes_env.results.inputs import why_invalid
from pytest_hermes_env.results.values import DEFAULT_USER, INCOMPLETE, Answer, Call, History, Turn

if TYPE_CHECKING:
    from pytest_hermes_env.results.result_classes import ResultLayer

ERROR_ALONE = frozenset({"error", "success"})
"""The keys of what hermes' handlers return when they refuse a call, or catch an exception of theirs. Source: hermes-agent 0.19,
``tools.registry.tool_error``."""


def outcome(history: History, layer: ResultLayer) -> dict[str, Any]:
    """Return new values for the fields of the layer's AgentResult; ``end`` only where it has that field."""
    messages = _first_messages(history)
    tools = history.tools()
    errors: list[Any] = []
    for number, turn in enumerate(history.turns, start=1):
        ids = _ids(history, number)
        messages.append(_assistant_message(turn, ids))
        for call, call_id in zip(turn.calls, ids, strict=True):
            is_run = turn is not history.last or history.end not in INCOMPLETE
            text, error = _tool_message(call, tools) if is_run else _not_run(history)
            messages.append({"role": "tool", "tool_call_id": call_id, "name": call.tool, "content": text})
            if error:
                seen = {"turn": number, "tool_name": call.tool, "arguments": call.arguments}
                errors.append(layer.tool_error(**seen, error=error, tool_result=text))
    ends = {} if layer.ends is None else {"end": _end(history, layer.ends)}
    return {
        "messages": messages,
        "managed_state": None,
        "turns_used": len(history.turns) + (history.end == "server_error"),
        "finished_naturally": history.is_answered,
        "reasoning_per_turn": [turn.thought or None for turn in history.turns],
        "tool_errors": errors,
        **ends,
    }


_NAMED = {
    "server_error": "model_failed",
    "turn_limit": "turns_used_up",
    "cut_by_length": "cut_by_length",
    "aborted": "aborted_by_server",
}


def _end(history: History, ends: Callable[[str], Any]) -> Any:
    """Return the end of the rollout; None while it goes on."""
    if history.end is not None:
        return ends(_NAMED[history.end])
    return ends("finished") if history.is_answered else None


def _first_messages(history: History) -> list[dict[str, Any]]:
    system = [] if history.system is None else [{"role": "system", "content": history.system}]
    return [*system, *({"role": "user", "content": text} for text in history.users or (DEFAULT_USER,))]


def _ids(history: History, turn: int) -> list[str]:
    """Return the ids of a turn's calls; calls are numbered from 1 within the rollout."""
    before = sum(len(earlier.calls) for earlier in history.turns[: turn - 1])
    return [f"call_{before + place}" for place in range(1, len(history.turns[turn - 1].calls) + 1)]


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


def _tool_message(call: Call, tools: list[str]) -> tuple[str, str]:
    """Return the content of the tool message for a call, and the text of its ToolError ("" for none)."""
    if call.kind == "unknown":
        error = f"Unknown tool '{call.tool}'"
        return json.dumps({"error": f"{error}. Available tools: {tools}"}), error
    if call.kind == "bad":
        error = f"Invalid arguments for {call.tool}: {why_invalid(call.arguments)}"
        return json.dumps({"error": f"{error}. Send one JSON object with the tool's parameters."}, ensure_ascii=False), error
    answer = call.answer or Answer()
    if answer.failure is not None:
        error = f"Tool execution failed: {answer.failure.type_name}: {answer.failure.message}"
        return json.dumps({"error": error}, ensure_ascii=False), error
    return answer.text, _error_of(answer.text)


def _not_run(history: History) -> tuple[str, str]:
    """Return content and error of a call in an incomplete reply."""
    error = f"Not run: the reply with this call is incomplete ({_NAMED[history.end or '']})"
    return json.dumps({"error": error}), error


def _error_of(text: str) -> str:
    """Return the error of a failed call: hermes gives it a negative exit code, or an error and nothing else; "" for others."""
    try:
        result = json.loads(text)
    except ValueError:
        return ""
    if not isinstance(result, dict) or not result.get("error") or result.get("success") is True:
        return ""
    exit_code = result.get("exit_code")
    has_failed = isinstance(exit_code, int) and exit_code < 0
    return str(result["error"]) if has_failed or result.keys() <= ERROR_ALONE else ""
