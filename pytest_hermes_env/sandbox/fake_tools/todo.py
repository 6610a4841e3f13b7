"""``todo``: the task list of a session.

Source: hermes-agent 0.19, tools/todo_tool.py. In a rollout the agent loop itself answers this tool.
"""

from __future__ import annotations

import json
from typing import Any

from pytest_hermes_env.sandbox.fake_tools.machine_state import MachineState

__all__ = ["todo"]

STATES = ("pending", "in_progress", "completed", "cancelled")
LONGEST = 4000
"""Characters of an item."""
MOST = 256
"""Items of a list."""
_CUT = "… [truncated]"


def todo(machine: MachineState, arguments: dict[str, Any]) -> dict[str, Any]:
    """Answer ``todo``: ``todos`` replaces the list, or changes it with ``merge``; without ``todos`` the list is read."""
    given = arguments.get("todos")
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            return {"error": "todos must be a list of objects, got unparseable string"}
    if given is not None:
        if not isinstance(given, list):
            return {"error": f"todos must be a list, got {type(given).__name__}"}
        unique = _last_of_each(given)
        machine.todos = (_merged(machine.todos, unique) if arguments.get("merge") else [_item(item) for item in unique])[:MOST]
    counts = {state: sum(item["status"] == state for item in machine.todos) for state in STATES}
    return {"todos": [dict(item) for item in machine.todos], "summary": {"total": len(machine.todos), **counts}}


def _merged(present: list[dict[str, str]], given: list[Any]) -> list[dict[str, str]]:
    items = {item["id"]: dict(item) for item in present}
    for change in given:
        identity = str(change.get("id", "")).strip() if isinstance(change, dict) else ""
        if not identity:
            continue
        if identity not in items:
            items[identity] = _item(change)
            continue
        if change.get("content"):
            items[identity]["content"] = _cut(str(change["content"]).strip())
        status = str(change.get("status") or "").strip().lower()
        if status in STATES:
            items[identity]["status"] = status
    return list(items.values())


def _last_of_each(given: list[Any]) -> list[Any]:
    """Return the items without those whose id comes again later."""
    places: dict[object, int] = {}
    for place, item in enumerate(given):
        identity: object = (str(item.get("id", "")).strip() or "?") if isinstance(item, dict) else ("no item", place)
        places[identity] = place
    return [given[place] for place in sorted(places.values())]


def _item(given: Any) -> dict[str, str]:
    if not isinstance(given, dict):
        return {"id": "?", "content": "(invalid item)", "status": "pending"}
    status = str(given.get("status", "pending")).strip().lower()
    return {
        "id": str(given.get("id", "")).strip() or "?",
        "content": _cut(str(given.get("content", "")).strip()) or "(no description)",
        "status": status if status in STATES else "pending",
    }


def _cut(content: str) -> str:
    return content if len(content) <= LONGEST else content[: LONGEST - len(_CUT)] + _CUT
