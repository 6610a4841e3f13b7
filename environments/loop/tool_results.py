"""Reads the results of hermes' tools: whether a call failed, and the text of a structured result."""

from __future__ import annotations

import json
from typing import Any

_ERROR_ALONE = frozenset({"error", "success"})
"""The keys of what hermes' handlers return when they refuse a call, or catch an exception of theirs. Source: hermes-agent 0.19,
``tools.registry.tool_error``."""


def error_of(text: str) -> str:
    """Return the error of a failed call, '' if it did not fail.

    hermes gives the result of a failed call a negative exit code, or an error and nothing else. A command with another exit code,
    or a file that was not found, which is reported beside other values, is an answer.
    """
    try:
        result = json.loads(text)
    except ValueError:
        return ""
    if not isinstance(result, dict) or not result.get("error") or result.get("success") is True:
        return ""
    exit_code = result.get("exit_code")
    has_failed = isinstance(exit_code, int) and exit_code < 0
    return str(result["error"]) if has_failed or result.keys() <= _ERROR_ALONE else ""


def multimodal_text(answer: Any) -> str:
    """Return a structured tool result as text; a tool message of chat completions cannot contain images."""
    if isinstance(answer, dict) and isinstance(answer.get("content"), list):
        texts = [part["text"] for part in answer["content"] if isinstance(part, dict) and part.get("type") == "text"]
        omitted = len(answer["content"]) - len(texts)
        return "\n".join([*texts, *(["[image omitted]"] * omitted)])
    return json.dumps(answer, ensure_ascii=False, default=str)
