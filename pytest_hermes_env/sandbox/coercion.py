"""Converts the arguments of a tool call to the types that the tool declares, as hermes does before every call.

Models write ``"10"`` for 10, ``"true"`` for true, and one URL for a list of URLs.

Place in the flow: `FakeToolContext.call_tool` calls a machine without hermes in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_hermes_env.sandbox.hermes_modules import hermes_module

__all__ = ["NOT_TEXT", "coerced"]

NOT_TEXT: dict[str, frozenset[str]] = {
    "terminal": frozenset({"background", "timeout", "pty", "notify_on_complete", "watch_patterns"}),
    "process": frozenset({"timeout", "offset", "limit"}),
    "read_file": frozenset({"offset", "limit"}),
    "write_file": frozenset({"cross_profile"}),
    "patch": frozenset({"replace_all", "cross_profile"}),
    "search_files": frozenset({"limit", "offset", "context"}),
    "web_search": frozenset({"limit"}),
    "web_extract": frozenset({"urls", "char_limit"}),
    "browser_snapshot": frozenset({"full"}),
}
"""The arguments that are not text, of the tools that a fake sandbox answers: hermes is loaded only if one of them may be wrong."""
LISTS = frozenset({"urls", "watch_patterns"})


def coerced(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the arguments with the types that ``tool`` declares; what cannot be converted stays as it is."""
    copy = dict(arguments)
    given = {name: copy[name] for name in NOT_TEXT.get(tool, ()) if name in copy}
    if not any(isinstance(value, str) or (name in LISTS and not isinstance(value, list)) for name, value in given.items()):
        return copy
    converted: dict[str, Any] = hermes_module("model_tools").coerce_tool_args(tool, copy)
    return converted
