"""``todo``: the task list of a session, kept by hermes' own store. In a rollout the agent loop itself answers this tool."""

from __future__ import annotations

from typing import Any

from pytest_hermes_env.sandbox.fake_tools.machine_state import MachineState
from pytest_hermes_env.sandbox.hermes_modules import hermes_module

__all__ = ["todo"]


def todo(machine: MachineState, arguments: dict[str, Any]) -> dict[str, Any] | str:
    """Answer ``todo``: ``todos`` replaces the list, or changes it with ``merge``; without ``todos`` the list is read."""
    hermes = hermes_module("tools.todo_tool")
    store = hermes.TodoStore()
    store.write(machine.todos)
    try:
        answer = str(hermes.todo_tool(arguments.get("todos"), bool(arguments.get("merge", False)), store))
    except AttributeError as error:  # an item to merge that is no object
        return {"error": f"[TOOL_ERROR] Tool execution failed: AttributeError: {error}"}
    machine.todos = store.read()
    return answer
