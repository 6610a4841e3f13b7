"""Converts the arguments of a tool call to the types that the tool declares, as hermes does before every call.

Models write ``"10"`` for 10, ``"true"`` for true, and one URL for a list of URLs. What cannot be converted stays as it is.

Place in the flow: `FakeToolContext.call_tool` calls a machine without hermes in between.

Source: hermes-agent 0.19, model_tools.py (coerce_tool_args) and the schemas of the tools.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["TYPES", "coerced"]

TYPES: dict[str, dict[str, str]] = {
    "terminal": {
        "background": "boolean",
        "timeout": "integer",
        "pty": "boolean",
        "notify_on_complete": "boolean",
        "watch_patterns": "array",
    },
    "process": {"timeout": "integer", "offset": "integer", "limit": "integer"},
    "read_file": {"offset": "integer", "limit": "integer"},
    "write_file": {"cross_profile": "boolean"},
    "patch": {"replace_all": "boolean", "cross_profile": "boolean"},
    "search_files": {"limit": "integer", "offset": "integer", "context": "integer"},
    "web_search": {"limit": "integer"},
    "web_extract": {"urls": "array", "char_limit": "integer"},
    "browser_snapshot": {"full": "boolean"},
}
"""The arguments that are not text, of the tools that a fake sandbox answers."""


def coerced(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the arguments with the types that ``tool`` declares."""
    types = TYPES.get(tool, {})
    return {name: _coerced(value, types.get(name, "string")) for name, value in arguments.items()}


def _coerced(value: Any, kind: str) -> Any:
    if kind == "array" and value is not None and not isinstance(value, (list, tuple)):
        parsed = _json_list(value)
        return [value] if parsed is None else parsed
    if not isinstance(value, str):
        return value
    if kind == "boolean":
        return {"true": True, "false": False}.get(value.strip().lower(), value)
    return _integer(value) if kind == "integer" else value


def _json_list(value: Any) -> list[Any] | None:
    try:
        parsed = json.loads(value)
    except (TypeError, ValueError):
        return None
    return parsed if isinstance(parsed, list) else None


def _integer(value: str) -> int | str:
    try:
        number = float(value)
    except ValueError:
        return value
    return int(number) if math.isfinite(number) and number == int(number) else value
