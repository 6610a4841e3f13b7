"""Reads the results of hermes' tools: whether a call failed, and the text of a structured result."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["error_of", "multimodal_text"]

_EXCEPTION_MARK = "[TOOL_ERROR]"
"""The start of an error that hermes made of an exception. Source: hermes-agent 0.19, ``model_tools._sanitize_tool_error``."""


def error_of(text: str) -> str:
    """Return the error of a failed call, '' if it did not fail.

    hermes gives the result of a failed call a negative exit code, and marks the text of an exception that it turned into a result.
    """
    try:
        result = json.loads(text)
    except ValueError:
        return ""
    error = result.get("error") if isinstance(result, dict) else None
    if not error:
        return ""
    exit_code = result.get("exit_code")
    has_failed = isinstance(exit_code, int) and exit_code < 0
    return str(error) if has_failed or str(error).startswith(_EXCEPTION_MARK) else ""


def multimodal_text(answer: Any) -> str:
    """Return a structured tool result as text; a tool message of chat completions cannot contain images."""
    if isinstance(answer, dict) and isinstance(answer.get("content"), list):
        texts = [part["text"] for part in answer["content"] if isinstance(part, dict) and part.get("type") == "text"]
        omitted = len(answer["content"]) - len(texts)
        return "\n".join([*texts, *(["[image omitted]"] * omitted)])
    return json.dumps(answer, ensure_ascii=False, default=str)
