"""The mock model's answers without a script: it calls every offered tool, then answers.

Turn 1 calls the first tool alone, turn 2 calls the others together, turn 3 says that the task is done. Arguments are harmless and
valid by each tool's JSON schema. A request without tools counts as a judge's and is answered with a score.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from pytest_hermes_env.inference.steps import as_turn, call, fail, sampled, say, think, turn

JUDGE_ANSWER = '{"score": 0.5, "reasoning": "half of it is right"}'
FINAL_ANSWER = "The task is done."
SILENT_ANSWER = "I do not know."

_HARMLESS: dict[str, dict[str, Any]] = {
    "terminal": {"command": "echo hello"},
    "process": {"action": "list"},
    "write_file": {"path": "hermes_env_notes.txt", "content": "hello\n"},
    "read_file": {"path": "hermes_env_notes.txt"},
    "search_files": {"pattern": "hello"},
    "patch": {"mode": "replace", "path": "hermes_env_notes.txt", "old_string": "hello", "new_string": "hello there"},
}
_ORDER = ("terminal", "write_file", "read_file", "search_files", "patch", "process")


def tool_using_policy(max_turns: int) -> Callable[[Any], Any]:
    """Return a policy that uses every tool and then answers, within ``max_turns`` model calls."""

    def policy(conversation: Any) -> Any:
        schemas = conversation.tools
        if not schemas:
            return say(JUDGE_ANSWER)
        calls = [call(name, **arguments_for(name, schemas[name])) for name in in_order(schemas)]
        turns: list[Any] = [calls[:1], calls[1:]] if len(calls) > 1 and max_turns > 2 else [calls]  # noqa: PLR2004
        return turns[conversation.turn] if conversation.turn < len(turns) else say(FINAL_ANSWER)

    return policy


def brief_policy(conversation: Any) -> Any:
    """Use one tool, so that there is a sandbox, then answer: enough for scenarios about what happens after the loop."""
    schemas = conversation.tools
    if not schemas:
        return say(JUDGE_ANSWER)
    name = in_order(schemas)[0]
    return call(name, **arguments_for(name, schemas[name])) if conversation.turn == 0 else say(FINAL_ANSWER)


def numbered_policy() -> Callable[[Any], Any]:
    """Return `brief_policy` whose every answer differs, so that each sequence of a group is one rollout's alone."""
    numbers = itertools.count(1)

    def each_its_own_policy(conversation: Any) -> Any:
        answers = conversation.tools and conversation.turn
        return say(f"{FINAL_ANSWER} ({next(numbers)})") if answers else brief_policy(conversation)

    return each_its_own_policy


def silent_policy(conversation: Any) -> Any:
    """Answer at once, without using a tool."""
    return say(SILENT_ANSWER if conversation.tools else JUDGE_ANSWER)


def failing_policy(conversation: Any) -> Any:
    """Fail every request, as a server that ran out of memory does."""
    del conversation
    return fail(500)


def failing_later_policy(conversation: Any) -> Any:
    """Answer the first request of a conversation and all of a judge's, and fail every later one."""
    return fail(500) if conversation.turn else brief_policy(conversation)


def cut_policy(conversation: Any) -> Any:
    """Use one tool, then give an answer that the limit of tokens cuts; only token mode has one."""
    answer = brief_policy(conversation)
    return turn(answer, sampled(max_tokens=2)) if conversation.turn else answer


def failing_in_one(policy: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return ``policy`` with every request of the first conversation with tools failing."""
    chosen: list[str] = []

    def failing_in_one_policy(conversation: Any) -> Any:
        if not chosen and conversation.tools:
            chosen.append(conversation.id)
        return fail(500) if conversation.id in chosen else policy(conversation)

    return failing_in_one_policy


def with_judge(policy: Callable[[Any], Any], answer: Any) -> Callable[[Any], Any]:
    """Return ``policy`` with ``answer`` as the answer to every request without tools."""

    def judged_policy(conversation: Any) -> Any:
        return policy(conversation) if conversation.tools else answer

    return judged_policy


def thinking(policy: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return ``policy`` with a thought before each answer, which templates strip from the history."""

    def thinking_policy(conversation: Any) -> Any:
        return turn(think("What comes next?"), *as_turn(policy(conversation)).steps)

    return thinking_policy


def drifting(policy: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return ``policy`` sampled as token ids that encoding its text would not produce."""

    def drifting_policy(conversation: Any) -> Any:
        return turn(*as_turn(policy(conversation)).steps, sampled(drift=2))

    return drifting_policy


def in_order(names: Any) -> list[str]:
    """Return names of tools, those that depend on no other tool first."""
    return sorted(names, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))


def arguments_for(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return arguments that ``schema`` accepts: its required properties with simple values."""
    properties = schema.get("properties") or {}
    known = {key: value for key, value in _HARMLESS.get(name, {}).items() if key in properties}
    required = schema.get("required") or ()
    return known or {key: _simple_value(properties.get(key) or {}) for key in required}


def _simple_value(schema: dict[str, Any]) -> Any:
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    if "default" in schema:
        return schema["default"]
    for word in ("anyOf", "oneOf", "allOf"):
        if schema.get(word):
            return _simple_value(schema[word][0])
    kind = schema.get("type", "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        properties = schema.get("properties") or {}
        return {key: _simple_value(properties.get(key) or {}) for key in schema.get("required") or ()}
    if kind == "array":
        return [_simple_value(schema.get("items") or {})] * max(1, schema.get("minItems", 1))
    if kind in {"integer", "number"}:
        return max(schema.get("minimum", 1), 1)
    return {"boolean": False, "null": None}.get(kind, "hello".ljust(schema.get("minLength", 0), "o"))
