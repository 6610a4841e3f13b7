"""An in-memory machine that answers hermes' tools: no process, no disk.

Place in the flow: `ToolSeam` gets a machine from it for each rollout and passes the tool calls on; in a test of a reward,
`FakeToolContext` calls one machine directly.

Source: hermes-agent 0.19; each tool's file is named in `fake_tools`.
"""

from __future__ import annotations

import contextlib
import posixpath
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, Self

from pytest_hermes_env.errors import HermesEnvError, SandboxLost, UsageError, shorten
from pytest_hermes_env.failures import Problem, combined_error
from pytest_hermes_env.sandbox.answers import Answer, Matcher, Scripts, as_answer, for_command, for_tool
from pytest_hermes_env.sandbox.fake_tools.machine_state import MachineState, Session
from pytest_hermes_env.sandbox.fake_tools.toolbox import Toolbox, Unscripted
from pytest_hermes_env.sandbox.fake_tools.web import Web
from pytest_hermes_env.sandbox.files import Files
from pytest_hermes_env.sandbox.machine import FILE_TIMEOUT_S, MAX_BYTES, too_large
from pytest_hermes_env.sandbox.real_lines import CellLost, Cells, RealLines, Refusal
from pytest_hermes_env.sandbox.sandbox_errors import left_over, lost_sandbox, nearest
from pytest_hermes_env.types import RealToolsUse

FIXES = {"unscripted": "not found", "real_tools": "never"}

Party = Literal["environment", "agent", "verifier"]
"""Who reads and writes: the code that prepares the machine, the model's tools, or the verifier."""


@dataclass(frozen=True, kw_only=True)
class AnsweredCall:
    """One call of a machine. ``result`` is what the call returned, or the exception that it raised."""

    name: str
    arguments: dict[str, Any]
    result: str | BaseException


class FakeSandbox:
    """One in-memory machine, and through `sandbox_of` a copy of it for each rollout.

    ``files``: the initial files. ``cwd``: the initial directory of a session. ``unscripted``: how an unscripted command or tool is
    answered: ``refuse`` raises, ``not found`` answers like bash and hermes when it does not exist. ``allow_leftovers``: unused
    answers are not a problem. ``real_tools``: when real programs may run for the lines that are not answered in memory:
    ``never``, only ``confined`` in a cell, or ``always``, also where this machine cannot confine them.
    """

    backend = "fake"
    """The value of TERMINAL_ENV while this sandbox answers."""

    def __repr__(self) -> str:
        return f"<FakeSandbox with {len(self.files)} files>"

    def __init__(
        self,
        files: Mapping[str, str | bytes] | None = None,
        *,
        cwd: str = "/workspace",
        unscripted: Unscripted = "refuse",
        allow_leftovers: bool = False,
        real_tools: RealToolsUse = "confined",
    ) -> None:
        for name, value, what, known in (
            ("unscripted", unscripted, "treatment of unscripted commands", ("refuse", "not found")),
            ("real_tools", real_tools, "use of real tools", ("never", "confined", "always")),
        ):
            if value not in known:
                *more, last = map(repr, known)
                raise UsageError(
                    f"FakeSandbox has no such {what}.\n  expected  {', '.join(more)} or {last}\n"
                    f"  seen      {shorten(repr(value))}\n  fix       FakeSandbox({name}={FIXES[name]!r})"
                )
        tree, cells = Files(files, cwd=cwd), Cells(real_tools)
        weakref.finalize(self, cells.close)
        real = RealLines(files=tree, cells=cells)
        machine = MachineState(files=tree, session=Session(cwd=tree.cwd), home=tree.cwd, real=real)
        self._begin(Toolbox(machine, commands=Scripts(), tools=Scripts(), web=Web(), unscripted=unscripted))
        self._allow_leftovers = allow_leftovers

    def _begin(self, toolbox: Toolbox, task_id: str = "") -> None:
        self._task_id = task_id
        self._toolbox = toolbox
        self._toolboxes = [toolbox]
        self._rollouts: dict[str, FakeSandbox] = {}
        self._calls: list[AnsweredCall] = []
        self._problems: list[Problem] = []
        self._lock = threading.RLock()
        self._allow_leftovers = True

    # Scripting

    @property
    def files(self) -> Files:
        """The files of this machine; ``files["/workspace/a.py"]`` is text."""
        return self._toolbox.machine.files

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
        """Answer a command: a whole command line of the terminal, or a simple command in it.

        ``command`` is its exact text, a pattern to find in it, or a function of it. ``output`` is text, an `Outcome`, or a function
        of the `CommandCall`; ``answers`` is a sequence instead, each given once; an `Answer` in it can have faults. The other
        arguments are those of `Answer`. ``times`` limits how often the answer is given; ``optional``: it may stay unused.

        If several entries match, the newest one with an unused answer is used.
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
        self._toolbox.commands.add(for_command(command, single, answers=answers, times=times, optional=optional))
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
        """Answer a tool with a dict, text, a function of its arguments (and of the sandbox, if it takes two), or a list of them.

        Each item of a list is given once, in order. The other arguments are those of `on`.
        """
        several = result if isinstance(result, (list, tuple)) else None
        base = as_answer("" if several is not None else result)
        single = Answer(
            output=base.output,
            result=base.result,
            broken_json=broken_json or base.broken_json,
            raises=raises or base.raises,
            slow_s=slow_s or base.slow_s,
        )
        self._toolbox.tools.add(for_tool(name, single, answers=several, times=times, optional=optional))
        return self

    def web(self, pages: Mapping[str, Any] | None = None, *, searches: Mapping[str, Any] | None = None) -> Self:
        """Define pages and searches: ``pages`` address -> text, or ``{"title", "text"}``; ``searches`` query -> list of hits."""
        self._toolbox.web.add(pages or {}, searches or {})
        return self

    def alias(self, prefix: str) -> None:
        """Map paths below ``prefix``, a directory of the host, to the initial directory of this machine."""
        if not prefix.startswith("/") or not prefix.strip("/"):
            raise UsageError(
                "an alias must be an absolute directory other than the root.\n"
                f"  seen      {shorten(repr(prefix))}\n"
                "  fix       sandbox.alias('/tmp/rollout-7')"
            )
        with self._lock:
            self._toolbox.machine.alias(posixpath.normpath(prefix))

    # Calls of rollouts

    def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> str:
        """Return the result of one tool call as text, in the format of hermes' own tool. Thread-safe.

        Raises: no answer → UnexpectedToolCall; a faulty handler → NotAToolResult; a scripted exception.
        """
        given = dict(arguments or {})
        with self._lock:
            before, self.files.writer = self.files.writer, name
            result: str | BaseException = ""
            try:
                with self._noting_loss():
                    result = self._toolbox.answer(name, given, self)
            except BaseException as error:
                result = error
                if isinstance(error, HermesEnvError) and not isinstance(error, SandboxLost):
                    self._problems.append(Problem(error=type(error), text=str(error)))
                raise
            finally:
                self.files.writer = before
                self._calls.append(AnsweredCall(name=name, arguments=given, result=result))
            return result

    @contextlib.contextmanager
    def _noting_loss(self) -> Iterator[None]:
        try:
            yield
        except CellLost as error:
            self._problems.append(lost_sandbox(self._task_id, str(error)))
            raise self._problems[-1].exception() from error

    @contextlib.contextmanager
    def acting_as(self, party: Party) -> Iterator[None]:
        """Attribute reads and writes in the context to this party; see `Files.reads` and `Files.made_for`."""
        with self._lock:
            before, self.files.party = self.files.party, party
            try:
                yield
            finally:
                self.files.party = before

    def sandbox_of(self, task_id: str) -> FakeSandbox:
        """Return the machine of a rollout: a copy of this machine made at the first call, the same copy each time.

        Thread-safe.
        """
        with self._lock:
            if task_id not in self._rollouts:
                toolbox = self._toolbox.fork(task_id)
                self._toolboxes.append(toolbox)
                machine = self._rollouts[task_id] = FakeSandbox.__new__(FakeSandbox)
                machine._begin(toolbox, task_id)  # noqa: SLF001 - one of its own
            return self._rollouts[task_id]

    def release(self) -> None:
        """End the background sessions and close the machine's cell. Files and calls remain for the test."""
        with self._lock:
            self._toolbox.machine.processes.kill_all()
            self._toolbox.machine.real.close()

    def close(self) -> None:
        """Release this machine and those of its rollouts."""
        for machine in (self, *self.rollouts.values()):
            machine.release()

    @property
    def real_tools(self) -> RealToolsUse:
        """When real programs may run."""
        return self._toolbox.machine.real.cells.use

    @property
    def has_cell(self) -> bool:
        """Whether real programs ran on this machine, and their cell is open."""
        return self._toolbox.machine.real.shell is not None

    @property
    def description(self) -> str:
        """The machine, as a line for reports."""
        return "an in-memory machine" if self.is_confined else "an in-memory machine whose real tools are not confined"

    @property
    def is_confined(self) -> bool:
        """Whether commands cannot reach the host."""
        return self._toolbox.machine.real.cells.is_confined

    def read_bytes(self, path: str, max_bytes: int = MAX_BYTES, timeout: float = FILE_TIMEOUT_S) -> bytes:
        """Return a file's bytes. Raises: it does not exist → OSError; it is too large → NotReadable."""
        del timeout  # nothing in memory takes long
        with self._lock, self._noting_loss():
            self._toolbox.machine.synchronize()
            data = self.files.read(self._toolbox.machine.resolve(path))
        if len(data) > max_bytes:
            raise too_large(path, max_bytes)
        return data

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file and create missing directories. Raises: it cannot be written → OSError."""
        with self._lock:
            absolute = self._toolbox.machine.resolve(path)
            self.files.make_directory(posixpath.dirname(absolute), parents=True)
            self.files.write(absolute, data)

    def list_files(self, directory: str) -> list[str]:
        """Return the sorted names of all files below a directory, relative to it. Raises: the directory does not exist → OSError."""
        with self._lock, self._noting_loss():
            self._toolbox.machine.synchronize()
            root = self._toolbox.machine.resolve(directory)
            self.files.list_directory(root)
            return [path[len(root) :].lstrip("/") for path in self.files.walk(root)]

    @property
    def cwd(self) -> str:
        """The session's directory: where relative paths lead."""
        return self._toolbox.machine.session.cwd

    def go_on(self, directory: str, variables: Mapping[str, str]) -> None:
        """Let the session's next command begin in a directory, with more exported variables."""
        session = self._toolbox.machine.session
        made = replace(session, cwd=directory or session.cwd, variables={**session.variables, **variables})
        self._toolbox.machine.session = made

    # Results

    @property
    def calls(self) -> tuple[AnsweredCall, ...]:
        """The calls of this machine, in order; each rollout's machine has its own."""
        return tuple(self._calls)

    @property
    def not_found(self) -> tuple[str, ...]:
        """Unscripted commands and tools that were answered with "not found": this machine's, then those of rollouts."""
        with self._lock:
            return tuple(name for toolbox in self._toolboxes for name in toolbox.missed)

    @property
    def refused(self) -> tuple[Refusal, ...]:
        """The lines that needed real programs where none may run: this machine's, then those of rollouts."""
        with self._lock:
            return tuple(dict.fromkeys(line for toolbox in self._toolboxes for line in toolbox.terminal.refused))

    @property
    def rollouts(self) -> Mapping[str, FakeSandbox]:
        """The machines of the rollouts, by task_id."""
        with self._lock:
            return MappingProxyType(dict(self._rollouts))

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems of this machine and of the rollouts' machines so far."""
        return (*self._problems, *(problem for rollout in self.rollouts.values() for problem in rollout.problems))

    def verify(self) -> None:
        """Raise the problems of this machine and of the rollouts again, in one error: a caller may have swallowed them.

        Raises: UnexpectedToolCall, NotAToolResult, ...; unused answers → LeftoverAnswers.
        """
        leftovers = [] if self._allow_leftovers else self._leftovers()
        error = combined_error([*self.problems, *leftovers], who="the sandbox")
        if error is not None:
            raise error

    def _leftovers(self) -> list[Problem]:
        with self._lock:
            boxes = [scripts for toolbox in self._toolboxes for scripts in (toolbox.commands, toolbox.tools)]
        entries = [entry for scripts in boxes for entry in scripts.own if not entry.optional]
        uses = [(entry, max(scripts.used(entry) for scripts in boxes)) for entry in entries]
        machines = [self, *self.rollouts.values()]
        ran = [str(call.arguments["command"]) for machine in machines for call in machine.calls if "command" in call.arguments]
        return [
            left_over(entry.shown, entry.shown_answers, used, "" if used else nearest(entry.name, ran))
            for entry, used in uses
            if used < (entry.times or 1)
        ]
