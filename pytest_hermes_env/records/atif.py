"""Rollouts as trajectories of ATIF v1.7, and trajectories of versions 1.0 to 1.8 as rollouts.

What ATIF has no field for is in ``extra``, and read back: a rollout comes back equal. What others wrote (Harbor, hermes itself) is a rollout
without item and sandbox; what a rollout has no field for is in its ``extra``.

Source: the format is that of the RFC 0001-trajectory-format of harbor, v1.7.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from hermes_env_shared.rollout_record import FORMAT, IGNORED, Record, Sequence
from pytest_hermes_env.errors import shorten

VERSION = "ATIF-v1.7"
_KNOWN = re.compile(r"ATIF-v1\.[0-8]")
OURS = "hermes_rollout"
"""The key of ``extra`` with what ATIF has no field for."""
_SOURCES = {"assistant": "agent", "user": "user", "system": "system"}
_HELD = frozenset({"format", "id", "run", "messages", "model"})
"""Fields of a record that a trajectory has fields for."""


class NotATIF(Exception):
    """A document is not a trajectory that can be read; the text says why."""


# ---------------------------------------------------------------------- to ATIF


def document_of(record: Record) -> dict[str, Any]:
    """Return the trajectory of a rollout."""
    steps = _steps(record.messages) or [{"source": "system", "message": "", "extra": {OURS: {"no_message": True}}}]
    _add_tokens(steps, record)
    held = record.model_dump(mode="json", exclude_defaults=True, exclude=set(_HELD))
    document: dict[str, Any] = {
        "schema_version": VERSION,
        "session_id": record.run or None,
        "trajectory_id": record.id or None,
        "agent": _without_none(
            {
                "name": "hermes-agent",
                "version": record.versions.get("hermes-agent", "unknown"),
                "model_name": record.model or None,
            }
        ),
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, start=1)],
        "final_metrics": {"total_steps": len(steps)},
        "extra": {OURS: held, **({} if record.reward is None else {"reward": record.reward})},
    }
    return _without_none(document)


def _without_none(value: Any) -> dict[str, Any]:
    return {name: part for name, part in value.items() if part is not None}


def _steps(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    for message in messages:
        if message.get("role") == "tool":
            if not steps or not ("observation" in steps[-1] or steps[-1]["source"] == "agent"):
                steps.append({"source": "system", "message": "", "extra": {OURS: {"no_message": True}}})
            ids = {call["tool_call_id"] for call in steps[-1].get("tool_calls", ())}
            steps[-1].setdefault("observation", {"results": []})["results"].append(_result(message, ids))
        else:
            steps.append(_step(message))
    return steps


def _step(message: Mapping[str, Any]) -> dict[str, Any]:
    role, content = message.get("role"), message.get("content")
    source = _SOURCES.get(str(role), "user")
    step: dict[str, Any] = {"source": source, "message": _plain_content(content)}
    left = {name: value for name, value in message.items() if name not in {"role", "content"}}
    kept = {} if role in _SOURCES else {"role": role}
    if "content" not in message or step["message"] != content:
        kept |= {"content": content} if "content" in message else {"no_content": True}
    if source == "agent":
        if isinstance(left.get("reasoning_content"), str):
            step["reasoning_content"] = left.pop("reasoning_content")
        calls = [_call(call) for call in left["tool_calls"]] if isinstance(left.get("tool_calls"), list) else []
        if calls and None not in calls:
            step["tool_calls"] = calls
            del left["tool_calls"]
    if left:
        kept["fields"] = left
    return {**step, "extra": {OURS: kept}} if kept else step


def _plain_content(content: Any) -> Any:
    """Return content that ATIF can hold: text, or parts of text."""
    if isinstance(content, list) and content and all(_is_text_part(part) for part in content):
        return content
    return content if isinstance(content, str) else ""


def _is_text_part(part: Any) -> bool:
    return (
        isinstance(part, dict) and part.keys() == {"type", "text"} and part["type"] == "text" and isinstance(part["text"], str)
    )


def _call(call: Any) -> dict[str, Any] | None:
    """Return a tool call, None for one of another shape. Arguments that JSON would write otherwise are kept as they were written."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(call.get("id"), str) or not isinstance(function.get("name"), str):
        return None
    text = function.get("arguments")
    try:
        arguments = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        arguments = None
    made: dict[str, Any] = {
        "tool_call_id": call["id"],
        "function_name": function["name"],
        "arguments": arguments if isinstance(arguments, dict) else {},
    }
    is_usual = (
        call.keys() == {"id", "type", "function"} and call["type"] == "function" and function.keys() == {"name", "arguments"}
    )
    if not is_usual or text != json.dumps(made["arguments"]):
        made["extra"] = {OURS: call}
    return made


def _result(message: Mapping[str, Any], ids: set[str]) -> dict[str, Any]:
    content = message.get("content")
    result: dict[str, Any] = {"content": _plain_content(content)}
    left = {name: value for name, value in message.items() if name not in {"role", "content"}}
    if left.get("tool_call_id") in ids:
        result["source_call_id"] = left.pop("tool_call_id")
    if "content" not in message or result["content"] != content:
        left |= {"content": content} if "content" in message else {"no_content": True}
    return {**result, "extra": {OURS: left}} if left else result


def _add_tokens(steps: list[dict[str, Any]], record: Record) -> None:
    """Give each agent step the token ids and logprobs that were sampled in it, where one sequence has as many parts as there are such steps."""
    agents = [step for step in steps if step["source"] == "agent"]
    if record.sequences is None or len(record.sequences) != 1:
        return
    columns = record.sequences[0]
    parts = _sampled(columns.masks)
    if len(parts) == len(agents) and len(columns.tokens) == len(columns.masks):
        for step, (start, stop) in zip(agents, parts, strict=True):
            step["metrics"] = {"completion_token_ids": columns.tokens[start:stop]}
            if columns.logprobs is not None and len(columns.logprobs) == len(columns.tokens):
                step["metrics"]["logprobs"] = columns.logprobs[start:stop]


def _sampled(masks: list[int]) -> list[tuple[int, int]]:
    edges = [
        place
        for place in range(len(masks) + 1)
        if (place < len(masks) and masks[place] != IGNORED) != (place > 0 and masks[place - 1] != IGNORED)
    ]
    return list(zip(edges[::2], edges[1::2], strict=True))


# ---------------------------------------------------------------------- from ATIF


def record_of(document: Mapping[str, Any]) -> Record:
    """Return the rollout of a trajectory. Raises: it is none, or of an unknown version → NotATIF."""
    version, steps = document.get("schema_version", "ATIF-v1.8"), document.get("steps")
    if not isinstance(version, str) or not _KNOWN.fullmatch(version):
        raise NotATIF(f"its schema_version is {shorten(repr(version))}; ATIF-v1.0 to v1.8 are read")
    if (
        not isinstance(steps, list)
        or not steps
        or not all(isinstance(step, dict) and step.get("source") in {"system", "user", "agent"} for step in steps)
    ):
        raise NotATIF("a trajectory requires steps, each with the source system, user or agent")
    agent, extra = document.get("agent") or {}, document.get("extra") or {}
    held = dict(extra.get(OURS) or {})
    messages = [message for step in steps for message in _messages(step)]
    common: dict[str, Any] = {
        "format": FORMAT,
        "id": str(document.get("trajectory_id") or ("" if held else document.get("session_id") or "")),
        "run": str(document.get("session_id") or ""),
        "model": str(agent.get("model_name") or ""),
        "messages": messages,
    }
    if OURS in extra:
        return Record(**{**held, **common})
    left = {
        name: value
        for name, value in document.items()
        if name not in {"schema_version", "session_id", "trajectory_id", "steps"}
    }
    answers = [
        step
        for step in steps
        if step["source"] == "agent" and not step.get("is_copied_context") and step.get("llm_call_count") != 0
    ]
    tools = [tool.get("function", tool).get("name") for tool in agent.get("tool_definitions") or () if isinstance(tool, dict)]
    return Record(
        **common,
        source="atif",
        item_problem="a trajectory of ATIF has no item",
        prompt=next((str(one["content"]) for one in messages if one["role"] == "user"), ""),
        tools=[str(name) for name in tools] or None,
        turns=len(answers),
        time=str(steps[-1].get("timestamp") or ""),
        reward=float(extra["reward"]) if isinstance(extra.get("reward"), int | float) else None,
        versions={str(agent.get("name") or "agent"): str(agent.get("version") or "")},
        sequences=_sequences(answers),
        extra=left,
    )


def _messages(step: Mapping[str, Any]) -> list[dict[str, Any]]:
    kept = (step.get("extra") or {}).get(OURS) or {}
    results = ((step.get("observation") or {}).get("results")) or []
    found: list[dict[str, Any]] = []
    if not kept.get("no_message"):
        message: dict[str, Any] = {"role": kept.get("role", "assistant" if step["source"] == "agent" else step["source"])}
        if not kept.get("no_content"):
            message["content"] = kept["content"] if "content" in kept else step.get("message", "")
        if step.get("tool_calls"):
            message["tool_calls"] = [_call_of(call) for call in step["tool_calls"]]
        if "reasoning_content" in step and step["reasoning_content"] is not None:
            message["reasoning_content"] = step["reasoning_content"]
        if step.get("is_copied_context"):
            message["is_copied_context"] = True
        found.append({**message, **(kept.get("fields") or {})})
    return found + [_result_of(result) for result in results]


def _call_of(call: Mapping[str, Any]) -> dict[str, Any]:
    kept = (call.get("extra") or {}).get(OURS)
    if isinstance(kept, dict):
        return kept
    function = {"name": call.get("function_name"), "arguments": json.dumps(call.get("arguments") or {})}
    return {"id": call.get("tool_call_id"), "type": "function", "function": function}


def _result_of(result: Mapping[str, Any]) -> dict[str, Any]:
    left = dict((result.get("extra") or {}).get(OURS) or {})
    message: dict[str, Any] = {"role": "tool"}
    if not left.pop("no_content", False):
        message["content"] = left.pop("content") if "content" in left else result.get("content") or ""
    if result.get("source_call_id") is not None:
        message["tool_call_id"] = result["source_call_id"]
    return {**message, **left}


def _sequences(answers: list[Mapping[str, Any]]) -> list[Sequence] | None:
    """Return the tokens of each answer that has all of them: prompt, then what was sampled."""
    made = []
    for step in answers:
        metrics = step.get("metrics") or {}
        prompt, ids = metrics.get("prompt_token_ids"), metrics.get("completion_token_ids")
        if isinstance(prompt, list) and isinstance(ids, list):
            nats = metrics.get("logprobs")
            logprobs = [1.0] * len(prompt) + nats if isinstance(nats, list) and len(nats) == len(ids) else None
            made.append(Sequence(tokens=[*prompt, *ids], masks=[IGNORED] * len(prompt) + ids, logprobs=logprobs))
    return made or None
