"""An in-memory machine that answers hermes' tools: no process, no disk, no hermes.

Place in the flow: `ToolSeam` asks it for each rollout's own machine and passes the tool calls on; `FakeToolContext` calls one machine
directly, in a test of a reward.

Source: hermes-agent 0.19; each tool's file is named in `fake_tools`.
"""

from __future__ import annotations

import json
import posixpath
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Self

from pytest_hermes_env.errors import HermesEnvError, UsageError, shorten
from pytest_hermes_env.sandbox.answers import Answer, Matcher, Scripts, as_answer, called, for_command, for_tool, wants_sandbox
from pytest_hermes_env.sandbox.fake_tools.machine import Machine
from pytest_hermes_env.sandbox.fake_tools.patching import patch
from pytest_hermes_env.sandbox.fake_tools.processes import Processes
from pytest_hermes_env.sandbox.fake_tools.reading import read_file
from pytest_hermes_env.sandbox.fake_tools.searching import search_files
from pytest_hermes_env.sandbox.fake_tools.terminal import Terminal, cut_off
from pytest_hermes_env.sandbox.fake_tools.todo import todo
from pytest_hermes_env.sandbox.fake_tools.web import WEB_TOOLS, Browser, Web, without_web
from pytest_hermes_env.sandbox.fake_tools.writing import write_file
from pytest_hermes_env.sandbox.files import Files
from pytest_hermes_env.sandbox.problems import (
    Problem,
    as_error,
    exhausted,
    left_over,
    not_a_result,
    raised,
    unscripted_tool,
)
from pytest_hermes_env.sandbox.shell import Shell

__all__ = ["AnsweredCall", "FakeSandbox"]

_ON_MACHINE: dict[str, Callable[[Machine, dict[str, Any]], dict[str, Any] | str]] = {
    "read_file": read_file,
    "write_file": write_file,
    "patch": patch,
    "search_files": search_files,
    "todo": todo,
}
_READS = frozenset({"read_file", "search_files"})
_WEB_FIX = {
    "web_search": "sandbox.web(searches={'the query': [{'title': '...', 'url': 'https://...', 'description': '...'}]})",
    "web_extract": "sandbox.web({'https://...': 'the text of the page'})",
    "browser_navigate": "sandbox.web({'https://...': 'the text of the page'})",
}


@dataclass(frozen=True, kw_only=True)
class AnsweredCall:
    """One call that came to a machine. ``result`` is what the caller was given, or the exception that was raised."""

    name: str
    arguments: dict[str, Any]
    result: str | BaseException


class FakeSandbox:
    """One in-memory machine, and through `sandbox_of` a copy of it for each rollout.

    ``files``: what is there at the beginning. ``cwd``: where a session begins. ``unscripted``: what becomes of a command or a tool
    that nobody scripted: it is refused loudly, or it is not there, as bash and hermes would say. ``allow_leftovers``: answers that
    nobody asked for are no problem.
    """

    backend = "fake"
    """What TERMINAL_ENV says while this world answers."""

    def __init__(
        self,
        files: Mapping[str, str | bytes] | None = None,
        *,
        cwd: str = "/workspace",
        unscripted: Literal["refuse", "not found"] = "refuse",
        allow_leftovers: bool = False,
    ) -> None:
        if unscripted not in {"refuse", "not found"}:
            raise UsageError(
                "`unscripted` says what becomes of a command that nobody scripted.\n"
                f"  expected  'refuse' or 'not found'\n  seen      {shorten(repr(unscripted))}\n"
                "  fix       FakeSandbox(unscripted='not found')"
            )
        tree = Files(files, cwd=cwd)
        self._set_up(
            machine=Machine(files=tree, shell=Shell(tree, cwd=tree.cwd), home=tree.cwd),
            commands=Scripts(),
            tools=Scripts(),
            processes=Processes(),
            browser=Browser(),
            web=Web(),
            unscripted=unscripted,
        )
        self._allow_leftovers = allow_leftovers

    def _set_up(
        self,
        *,
        machine: Machine,
        commands: Scripts,
        tools: Scripts,
        processes: Processes,
        browser: Browser,
        web: Web,
        unscripted: Literal["refuse", "not found"],
    ) -> None:
        self._machine, self._commands, self._tools, self._web = machine, commands, tools, web
        self._processes, self._browser = processes, browser
        self._unscripted: Literal["refuse", "not found"] = unscripted
        self._missed: list[str] = []
        missed = None if unscripted == "refuse" else self._missed
        self._terminal = Terminal(self, machine, commands, processes, missed=missed)
        self._calls: list[AnsweredCall] = []
        self._own_problems: list[Problem] = []
        self._forks: dict[str, FakeSandbox] = {}
        self._lock = threading.RLock()
        self._allow_leftovers = True

    # What a test says

    @property
    def files(self) -> Files:
        """The files of this machine; ``files["/workspace/a.py"]`` is text."""
        return self._machine.files

    def on(
        self,
        command: Matcher,
        output: Any = "",
        *,
        exit_code: int = 0,
        result: Mapping[str, Any] | None = None,
        answers: Sequence[Any] | None = None,
        timed_out: bool = False,
        broken_json: bool = False,
        raises: BaseException | type[BaseException] | None = None,
        slow_s: float = 0.0,
        writes: Mapping[str, str | bytes] | None = None,
        times: int | None = None,
        optional: bool = False,
    ) -> Self:
        """Answer a command: the whole line that the terminal is given, or a simple command inside of it.

        ``command`` is its exact text, a pattern that is found in it, or a function of it. ``output`` is text, an `Outcome`, or a
        function of the `CommandCall`; ``answers`` is a sequence instead, each given once, and `Answer` describes a fault in it. The
        other arguments are those of `Answer`. ``times`` limits how often the answer is given; ``optional``: nobody needs to ask.

        Where several answers fit, the last one said is given first, as long as it has one left.
        """
        single = Answer(
            output=output,
            exit_code=exit_code,
            result=result,
            timed_out=timed_out,
            broken_json=broken_json,
            raises=raises,
            slow_s=slow_s,
            writes=writes or {},
        )
        self._commands.add(for_command(command, single, answers=answers, times=times, optional=optional))
        return self

    def on_tool(
        self,
        name: str,
        result: Any = "",
        *,
        broken_json: bool = False,
        raises: BaseException | type[BaseException] | None = None,
        slow_s: float = 0.0,
        times: int | None = None,
        optional: bool = False,
    ) -> Self:
        """Answer a tool: with a dict or text, a function of its arguments (and of the sandbox, if it takes two), or a list of them.

        Of a list each is given once, in order. The other arguments are as for `on`.
        """
        faults = Answer(broken_json=broken_json, raises=raises, slow_s=slow_s)
        if isinstance(result, (list, tuple)):
            entry = for_tool(name, faults, answers=result, times=times, optional=optional)
        else:
            base = as_answer(result)
            single = Answer(
                output=base.output, result=base.result, broken_json=broken_json, raises=raises or base.raises, slow_s=slow_s
            )
            entry = for_tool(name, single, answers=None, times=times, optional=optional)
        self._tools.add(entry)
        return self

    def web(self, pages: Mapping[str, Any] | None = None, *, searches: Mapping[str, Any] | None = None) -> Self:
        """Let pages and searches exist: ``pages`` address -> text, or ``{"title", "text"}``; ``searches`` query -> list of hits."""
        self._web.add(pages or {}, searches or {})
        return self

    def alias(self, prefix: str) -> None:
        """Let paths that begin with ``prefix``, a directory of this computer, mean this machine's first directory."""
        if not prefix.startswith("/") or posixpath.normpath(prefix) == "/":
            raise UsageError(
                "an alias is an absolute directory below the root.\n"
                f"  seen      {shorten(repr(prefix))}\n"
                "  fix       sandbox.alias('/tmp/rollout-7')"
            )
        with self._lock:
            self._machine.aliases = (*self._machine.aliases, posixpath.normpath(prefix))

    # What rollouts do

    def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> str:
        """Answer one tool call with the text that hermes' own tool would give. Safe from several threads.

        Raises: what cannot be answered → UnexpectedToolCall; a handler's fault → NotAToolResult; a scripted exception.
        """
        given = dict(arguments or {})
        with self._lock:
            before, self.files.writer = self.files.writer, name
            result: str | BaseException = ""
            try:
                result = self._answer(name, given)
            except BaseException as error:
                result = error
                if isinstance(error, HermesEnvError):
                    self._own_problems.append(Problem(error=type(error), text=str(error)))
                raise
            finally:
                self.files.writer = before
                self._calls.append(AnsweredCall(name=name, arguments=given, result=result))
            return result

    def sandbox_of(self, task_id: str) -> FakeSandbox:
        """Return the machine of a rollout: a copy of this one as it is at the first call, and the same copy ever after.

        Safe from several threads.
        """
        with self._lock:
            if task_id not in self._forks:
                self._forks[task_id] = self._fork(task_id)
            return self._forks[task_id]

    def release(self) -> None:
        """End the background sessions. Files and journal stay, for the test to look at."""
        with self._lock:
            self._processes.kill_all()

    def read_bytes(self, path: str) -> bytes:
        """Return a file's bytes. Raises: OSError where there is none."""
        with self._lock:
            return self.files.read(self._machine.resolve(path))

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file; missing directories are made. Raises: OSError where that is not possible."""
        with self._lock:
            absolute = self._machine.resolve(path)
            self.files.make_directory(posixpath.dirname(absolute), parents=True)
            self.files.write(absolute, data)

    def list_files(self, directory: str) -> list[str]:
        """Return the sorted names of all files below a directory, relative to it. Raises: OSError where there is none."""
        with self._lock:
            root = self._machine.resolve(directory)
            self.files.list_directory(root)
            return [path[len(root) :].lstrip("/") for path in self.files.walk(root)]

    @property
    def cwd(self) -> str:
        """The session's directory: where relative paths lead."""
        return self._machine.shell.cwd

    # What happened

    @property
    def calls(self) -> tuple[AnsweredCall, ...]:
        """What was called here, in order; the calls of rollouts are in their own machines."""
        return tuple(self._calls)

    @property
    def not_found(self) -> tuple[str, ...]:
        """The commands and tools that were not there, in order, where they may be missing; those of rollouts follow."""
        return (*self._missed, *(name for fork in self._forks.values() for name in fork.not_found))

    @property
    def rollouts(self) -> Mapping[str, FakeSandbox]:
        """The machines of the rollouts, by task_id."""
        with self._lock:
            return MappingProxyType(dict(self._forks))

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What went wrong in this machine and in the rollouts' machines, so far."""
        return (*self._own_problems, *(problem for fork in self._forks.values() for problem in fork.problems))

    def verify(self) -> None:
        """Raise what went wrong here and in the rollouts, in one message: at the call it may have been swallowed.

        Raises: UnexpectedToolCall, NotAToolResult, ...; answers that nobody asked for → LeftoverAnswers.
        """
        leftovers = [] if self._allow_leftovers else self._leftovers()
        error = as_error([*self.problems, *leftovers], who="the sandbox")
        if error is not None:
            raise error

    def _leftovers(self) -> list[Problem]:
        machines = [self, *self._forks.values()]
        owned = [(machine, entry) for machine in machines for entry in (*machine._commands.own, *machine._tools.own)]
        found = []
        for _, entry in owned:
            used = max(max(machine._commands.used(entry), machine._tools.used(entry)) for machine in machines)
            if used < (entry.times or 1) and not entry.optional:
                found.append(left_over(entry.shown, entry.shown_answers, used))
        return found

    def _fork(self, task_id: str) -> FakeSandbox:
        fork = FakeSandbox.__new__(FakeSandbox)
        fork._set_up(
            machine=self._machine.copy(task_id),
            commands=Scripts(self._commands),
            tools=Scripts(self._tools),
            processes=self._processes.copy(),
            browser=Browser(history=list(self._browser.history)),
            web=self._web,
            unscripted=self._unscripted,
        )
        return fork

    # One call

    def _answer(self, name: str, arguments: dict[str, Any]) -> str:
        if name not in _READS:
            self._machine.reads.other_tool()
        matching = self._tools.matching(name)
        if matching:
            entry = self._tools.ready(matching)
            if entry is None:
                raise exhausted(f"the tool `{name}`", matching[0].shown, matching[0].shown_answers).exception()
            return self._from_script(name, self._tools.take(entry), arguments)
        if name == "terminal":
            result: dict[str, Any] | str = self._terminal.call(arguments)
        elif name == "process":
            result = self._processes.call(arguments)
        elif name in _ON_MACHINE:
            result = _ON_MACHINE[name](self._machine, arguments)
        else:
            result = self._outside(name, arguments)
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)

    def _from_script(self, name: str, answer: Answer, arguments: dict[str, Any]) -> str:
        if answer.slow_s:
            time.sleep(answer.slow_s)
        if answer.raises is not None:
            raise answer.raises
        given = answer.result if answer.result is not None else answer.output
        who = f"the answer to the tool `{name}`"
        if callable(given):
            who = f"the function {called(given)}, which answers the tool `{name}`,"
            given = self._ask(given, who, arguments)
        if isinstance(given, str):
            return given[: len(given) // 2] if answer.broken_json else given
        return self._as_text(given, who, broken_json=answer.broken_json)

    def _ask(self, handler: Callable[..., object], who: str, arguments: dict[str, Any]) -> object:
        try:
            return handler(arguments, self) if wants_sandbox(handler) else handler(arguments)
        except HermesEnvError:
            raise
        except Exception as error:
            raise raised(who, error, json.dumps(arguments, ensure_ascii=False, default=repr)).exception() from error

    def _as_text(self, given: object, who: str, *, broken_json: bool) -> str:
        expected = "a dict that json can write, or text"
        if not isinstance(given, Mapping):
            raise not_a_result(who, given, "", expected).exception()
        if given.get("_multimodal") is True:
            raise not_a_result(who, given, " with pictures in it", "text: a sandbox answers with text").exception()
        try:
            return cut_off(given) if broken_json else json.dumps(given, ensure_ascii=False)
        except (TypeError, ValueError) as error:
            raise not_a_result(who, given, f" that json cannot write ({error})", expected).exception() from error

    def _outside(self, name: str, arguments: dict[str, Any]) -> dict[str, Any] | str:
        """Answer a tool that is not the machine's own: from the web that the test gave, or not at all."""
        strict = self._unscripted == "refuse"
        if name in WEB_TOOLS and self._web.is_there:
            result = self._web.call(name, self._machine, self._browser, arguments, strict=strict)
            if not isinstance(result, Problem):
                return result
            if strict:
                raise result.exception()
        elif strict:
            fix = _WEB_FIX.get(name, f"sandbox.on_tool({name!r}, {{...}}), with the result as hermes gives it")
            raise unscripted_tool(name, arguments, [entry.key for entry in self._tools.entries()], fix).exception()
        self._missed.append(name)
        if name.startswith(("web_", "browser_")):
            return without_web(name)
        return {"error": f"Unknown tool: {name}"}
