"""The tools of one machine: scripted answers first, then the machine's own tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from hermes_env_shared.hermes_names import former_name
from pytest_hermes_env.failures import Problem
from pytest_hermes_env.faults.plan import half
from pytest_hermes_env.sandbox.answers import Answer, Scripts, ask, called, takes
from pytest_hermes_env.sandbox.fake_tools.file_tools import FileTools
from pytest_hermes_env.sandbox.fake_tools.machine_state import MachineState
from pytest_hermes_env.sandbox.fake_tools.terminal import Terminal
from pytest_hermes_env.sandbox.fake_tools.web import WEB_TOOLS, Web, without_web
from pytest_hermes_env.sandbox.hermes_modules import answer_of_the_project, hermes_module
from pytest_hermes_env.sandbox.machine import InMemoryMachine
from pytest_hermes_env.sandbox.sandbox_errors import as_json, exhausted, not_a_result, unscripted_tool

Unscripted = Literal["refuse", "not found"]
"""How an unscripted command or tool is answered: with an exception, or as not existing."""


_READS = frozenset({"read_file", "search_files"})
_FILE_TOOLS = _READS | {"write_file", "patch"}
_WEB_FIX = {
    "web_search": "sandbox.web(searches={'the query': [{'title': '...', 'url': 'https://...', 'description': '...'}]})",
    "web_extract": "sandbox.web({'https://...': 'the text of the page'})",
    "browser_navigate": "sandbox.web({'https://...': 'the text of the page'})",
}


class Toolbox:
    """The tools of one machine. ``commands`` and ``tools`` are scripted, ``web`` has the pages.

    ``missed`` lists the commands and tools that were answered as not existing.
    """

    def __init__(
        self, machine: MachineState, *, commands: Scripts, tools: Scripts, web: Web, unscripted: Unscripted, task_id: str = ""
    ) -> None:
        self.machine = machine
        self.commands = commands
        self.tools = tools
        self.web = web
        self._task_id = task_id
        self.missed: list[str] = []
        self._unscripted: Unscripted = unscripted
        self._file_tools: FileTools | None = None
        self.terminal = Terminal(machine, commands, missed=self.missed if unscripted == "not found" else None)

    def fork(self, task_id: str) -> Toolbox:
        """Return the tools of a rollout: on a copy of the machine, with the same script."""
        return Toolbox(
            self.machine.copy(),
            commands=Scripts(self.commands),
            tools=Scripts(self.tools),
            web=self.web,
            unscripted=self._unscripted,
            task_id=task_id,
        )

    def answer(self, name: str, arguments: dict[str, Any], sandbox: InMemoryMachine) -> str:
        """Return the result of one call as text. ``sandbox`` is passed to handlers.

        Raises: no answer → UnexpectedToolCall; a faulty handler → NotAToolResult; a scripted exception.
        """
        if name not in _READS and self._file_tools is not None:
            self._file_tools.other_tool()
        self.machine.synchronize()
        try:
            return self._answer(name, arguments, sandbox)
        finally:
            self.machine.synchronize()

    def _answer(self, name: str, arguments: dict[str, Any], sandbox: InMemoryMachine) -> str:
        matching = self.tools.matching(name)
        if matching:
            entry = self.tools.ready(matching)
            if entry is None:
                raise exhausted(f"the tool `{name}`", matching[0].shown, matching[0].shown_answers).exception()
            return _from_script(name, self.tools.take(entry), arguments, sandbox)
        result: dict[str, Any] | str
        if name == "terminal":
            result = self.terminal.call(arguments, sandbox)
        elif former_name(name) == "process":
            result = self.machine.processes.call(arguments)
        elif former_name(name) == "todo":
            hermes = hermes_module("tools.todo_tool")  # its own store; in a rollout the agent loop itself answers
            store = hermes.TodoStore()
            store.write(self.machine.todos)
            try:
                result = str(hermes.todo_tool(arguments.get("todos"), bool(arguments.get("merge", False)), store))
                self.machine.todos = store.read()
            except AttributeError as error:  # an item to merge that is not an object
                result = {"error": f"[TOOL_ERROR] Tool execution failed: AttributeError: {error}"}
        elif name in _FILE_TOOLS:
            self._file_tools = self._file_tools or FileTools(self.machine, self._task_id)
            result = self._file_tools.call(name, arguments)
        else:
            result = self._outside(name, arguments)
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)

    def _outside(self, name: str, arguments: dict[str, Any]) -> dict[str, Any] | str:
        """Answer a tool that is not the machine's own: by the project's code, from the defined web, or as hermes does on a machine without it."""
        strict = self._unscripted == "refuse"
        if (own := answer_of_the_project(name, arguments, self._task_id)) is not None:
            return own  # type: ignore[no-any-return]
        if name in WEB_TOOLS and self.web.is_there:
            result = self.web.call(name, self.machine, arguments, strict=strict)
            if not isinstance(result, Problem):
                return result
            if strict:
                raise result.exception()
        elif strict:
            fix = _WEB_FIX.get(name, f"sandbox.on_tool({name!r}, {{...}}), with a result in hermes' format")
            raise unscripted_tool(name, arguments, [entry.name for entry in self.tools.entries()], fix).exception()
        self.missed.append(name)
        if name.startswith(("web_", "browser_")):
            return without_web(name, arguments)
        if name == "read_terminal":
            return {"error": "read_terminal is only available in the Hermes desktop app."}
        if name == "close_terminal":
            if not arguments.get("process_id"):
                return {"error": "process_id is required (the background process whose tab to close)."}
            return {"status": "error", "error": "close_terminal is only available in the Hermes desktop app."}
        return {"error": f"Unknown tool: {name}"}


def _from_script(name: str, answer: Answer, arguments: dict[str, Any], sandbox: InMemoryMachine) -> str:
    answer.delay()
    answer.fail()
    who = f"the answer to the tool `{name}`"
    given = answer.result if answer.result is not None else answer.output
    if callable(given):
        who = f"the function {called(given)}, which answers the tool `{name}`,"
        given = ask(given, who, as_json(arguments), *((arguments, sandbox) if takes(given, 2) else (arguments,)))
    if not isinstance(given, str):
        expected = "a JSON-serializable dict, or text"
        if not isinstance(given, Mapping):
            raise not_a_result(who, given, "", expected).exception()
        if given.get("_multimodal") is True:
            raise not_a_result(who, given, " with images", "text; a sandbox returns no images").exception()
        try:
            given = json.dumps(given, ensure_ascii=False)
        except (TypeError, ValueError) as error:
            raise not_a_result(who, given, f" that JSON cannot represent ({error})", expected).exception() from error
    return half(given) if answer.broken_json else given
