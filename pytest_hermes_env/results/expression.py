"""Converts a history to the builder expression that makes it: the ``repr`` of a result, ready to paste."""

from __future__ import annotations

import json
import keyword
from typing import Any
from unicodedata import is_normalized

from pytest_hermes_env.results.values import Answer, Call, History, Turn

METHODS = {"valid": "call", "unknown": "unknown_tool", "bad": "bad_arguments"}
"""The builder method that makes a call of each kind."""


def expression(history: History, *, layer: str = "") -> str:
    """Return Python source that makes the history. ``layer``: the name of the environment class of its layer, if any."""
    steps = [f"of({layer})"] if layer else []
    if history.offered is not None:
        steps.append(f"offering({', '.join(map(repr, sorted(history.offered)))})")
    if history.system is not None:
        steps.append(f"system({history.system!r})")
    steps += [f"user({text!r})" for text in history.users]
    for turn in history.turns:
        steps += _turn_source(turn)
    if history.thought is not None:
        steps.append(f"think({history.thought!r})")
    if history.joins:
        steps.append("also()")
    if history.end is not None:
        steps.append("hit_turn_limit()" if history.end == "turn_limit" else f"{history.end}()")
    return ".".join(["agent_result", *steps])


def call_source(call: Call) -> str:
    """Return the builder method that makes a call, as source."""
    return f"{METHODS[call.kind]}({', '.join([repr(call.tool), *_arguments_source(call)])})"


def _turn_source(turn: Turn) -> list[str]:
    steps = [] if turn.thought is None else [f"think({turn.thought!r})"]
    if turn.text is not None:
        steps.append(f"say({turn.text!r})")
    waiting = False
    for number, call in enumerate(turn.calls):
        if number and not waiting:
            steps.append("also()")
        steps.append(call_source(call))
        waiting = waiting or call.kind == "valid"
    return steps + [_answer_source(call.answer) for call in turn.calls if call.answer is not None]


def _arguments_source(call: Call) -> list[str]:
    """Return keyword arguments if they produce exactly the same text, else the text. Python normalizes identifiers."""
    arguments = None if call.kind == "bad" else _object(call.arguments)
    if arguments is None:
        return [repr(call.arguments)]
    if all(name.isidentifier() and not keyword.iskeyword(name) and is_normalized("NFKC", name) for name in arguments):
        return [f"{name}={value!r}" for name, value in arguments.items()]
    return [f"**{arguments!r}"]


def _object(text: str) -> dict[str, Any] | None:
    """Return the object whose default JSON is ``text``, or None for any other text."""
    try:
        value = json.loads(text)
        is_plain = isinstance(value, dict) and json.dumps(value, ensure_ascii=False, allow_nan=False) == text
    except (ValueError, RecursionError):
        return None
    return value if is_plain else None


def _answer_source(answer: Answer) -> str:
    if answer.failure is not None:
        return f"raises({answer.failure.source})"
    return f"returns({json.loads(answer.text) if answer.is_json else answer.text!r})"
