"""Runs a script on the in-memory machine.

Place in the flow: `Shell.run` makes one `Runner` for each line. Commands of a pipeline run one after the other, each to its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pytest_hermes_env.errors import UnknownCommand, UnsupportedSyntax
from pytest_hermes_env.sandbox.bash.command_names import commands_of
from pytest_hermes_env.sandbox.bash.expansion import Expander
from pytest_hermes_env.sandbox.bash.grammar import parse
from pytest_hermes_env.sandbox.bash.lexer import ASSIGNMENT
from pytest_hermes_env.sandbox.bash.redirection import Refused, redirected
from pytest_hermes_env.sandbox.bash.state import Abandoned, Ended, Place, Returned, State
from pytest_hermes_env.sandbox.bash.streams import Sink, Source, Streams
from pytest_hermes_env.sandbox.bash.tree import (
    AndOr,
    Assignment,
    Function,
    Node,
    Pipeline,
    Redirect,
    Script,
    Sequence,
    Simple,
)
from pytest_hermes_env.sandbox.commands import UnsupportedOption
from pytest_hermes_env.sandbox.commands.process import path_of
from pytest_hermes_env.sandbox.files import Files
from pytest_hermes_env.sandbox.outcome import Outcome

__all__ = ["Answer", "Builtin", "Handlers", "Knows", "Runner"]

MOST_STEPS = 10_000
"""Commands that one line may run: a loop without an end is refused."""
MOST_CALLS = 40
"""Functions, scripts and substitutions that may run inside each other."""
SYNTAX_ERROR = 2
DECLARING = frozenset({"export", "declare", "typeset", "local", "readonly"})
"""Builtins whose arguments may be assignments, which are not split."""
DIRECTORIES = ("/bin/", "/usr/bin/", "/usr/local/bin/")


Builtin: TypeAlias = "Callable[[Runner, tuple[str, ...], Streams], int]"
"""Does its work with its words, name first, and returns the exit code. Raises: what it does not know → UnsupportedOption."""
Answer: TypeAlias = Callable[[str, tuple[str, ...]], Outcome | None]
Knows: TypeAlias = Callable[[str, tuple[str, ...]], bool]


@dataclass(frozen=True, kw_only=True)
class Handlers:
    """What a runner calls for the parts of a script that it does not run itself; each is given the runner.

    ``builtins`` are bash's own commands, ``programs`` those of the machine, which have a path, too.
    """

    builtins: Mapping[str, Builtin]
    programs: Mapping[str, Builtin]
    compound: Callable[[Runner, Any, Streams], int]
    script_file: Callable[[Runner, tuple[str, ...], str, Streams], int]
    substitution: Callable[[Runner, Script, Streams], str]


class Runner:
    """Runs one line. ``state`` is that of the shell or subshell that runs at the moment.

    ``last_substitution`` is the exit code of the last ``$(...)`` of a command, ``traces`` how many signs a line of ``set -x`` has.
    """

    def __init__(
        self, files: Files, state: State, handlers: Handlers, *, answer: Answer | None = None, knows: Knows | None = None
    ) -> None:
        self.files = files
        self.state = state
        self._handlers = handlers
        self.answer = answer
        self.knows = knows
        self.last_substitution = 0
        self._steps = 0
        self._calls = 0
        self.traces = 2 if state.place.syntax_name else 1

    # Before

    def check(self, script: Script) -> None:
        """Raise UnknownCommand for a command whose name stands in the source and is nobody's."""
        simple = [node for node in commands_of(script) if isinstance(node, Simple)]
        if any(node.words and node.words[0].plain in {"eval", "source", "."} for node in simple):
            return  # they may define functions
        defined = {node.name for node in commands_of(script) if isinstance(node, Function)} | self.state.functions.keys()
        for node in simple:
            name = node.words[0].plain if node.words else None
            if name is None or name in defined or self.is_known(name) or "/" in name:
                continue
            words = tuple(word.raw if word.plain is None else word.plain for word in node.words)
            is_certain = all(word.plain is not None for word in node.words)
            if not (self.knows is not None and self.knows(node.text, words)) and is_certain:
                raise UnknownCommand(words, node.text)

    def is_known(self, name: str) -> bool:
        """Return whether a name is a function's, a builtin's or a program's."""
        return name in self.state.functions or self.is_builtin(name) or self.is_program(self.program_name(name))

    def is_builtin(self, name: str) -> bool:
        """Return whether a name is one of bash's own commands."""
        return name in self._handlers.builtins

    def is_program(self, name: str) -> bool:
        """Return whether a name is a program's."""
        return name in self._handlers.programs

    @staticmethod
    def program_name(name: str) -> str:
        """Return a program's name without the directories where programs are."""
        for directory in DIRECTORIES:
            if name.startswith(directory) and "/" not in name[len(directory) :]:
                return name[len(directory) :]
        return name

    def path(self, name: str) -> str:
        """Return a word as an absolute path, seen from the working directory."""
        return path_of(name, self.files, self.state.cwd)

    # Scripts

    def script(self, script: Script, streams: Streams, *, recovers: bool = False) -> int:
        """Run a script and return its exit code. ``recovers``: what an expansion abandons is only the command it is in."""
        state = self.state
        code = 0
        for node, warnings in script.commands:
            self._warn(script, warnings, streams)
            try:
                code = self.run(node, streams)
            except Abandoned as abandoned:
                if not recovers:
                    raise
                code = state.status = abandoned.code
        if script.problem is not None:
            self._warn(script, script.warnings, streams)
            problem = script.problem
            prefix = state.place.syntax_prefix(problem.line)
            self.complain(streams, f"{prefix}{problem.text}\n")
            if problem.shown is not None:
                self.complain(streams, f"{prefix}`{problem.shown}'\n")
            code = state.status = SYNTAX_ERROR
        return code

    def _warn(self, script: Script, warnings: tuple[tuple[int, str], ...], streams: Streams) -> None:
        """Tell of here-documents that the end of the source cut off."""
        place = self.state.place
        for line, delimiter in warnings:
            told = f"here-document at line {place.before + line} delimited by end-of-file (wanted `{delimiter}')"
            self.complain(streams, f"{place.prefix(script.lines)}warning: {told}\n")

    def text(self, text: str, streams: Streams, *, place: Place, recovers: bool = False) -> int:
        """Run a text in the present shell, as coming from ``place``."""
        script = parse(text)
        outer, self.state.place = self.state.place, place
        state, line = self.state, self.state.line
        with self.deeper(text):
            try:
                return self.script(script, streams, recovers=recovers)
            finally:
                state.place, state.line = outer, line

    @contextmanager
    def deeper(self, text: str) -> Iterator[None]:
        """Run inside of something else that runs. Raises: too deep → UnsupportedSyntax."""
        self._calls += 1
        try:
            if self._calls > MOST_CALLS:
                raise UnsupportedSyntax(text, f"more than {MOST_CALLS} nested calls")
            yield
        finally:
            self._calls -= 1

    def subshell(self, body: Callable[[], int], *, is_simple: bool = False) -> int:
        """Run something on a copy of the state; return its exit code, also when it ends the shell."""
        outer = self.state
        self.state = outer.copy()
        self.state.subshells += not is_simple
        self.state.loops = 0
        try:
            return body()
        except (Ended, Abandoned, Returned) as end:
            return end.code
        finally:
            self.state = outer

    # Complaints

    @staticmethod
    def complain(streams: Streams, text: str) -> None:
        """Write to standard error."""
        error = streams[2]
        if isinstance(error, Sink):
            error.buffer += text.encode(errors="surrogateescape")
            error.flush()

    def say(self, streams: Streams, text: str, code: int = 1) -> int:
        """Complain as bash does of the present line, and return the exit code."""
        self.complain(streams, f"{self.state.prefix}{text}\n")
        return code

    @staticmethod
    def write(streams: Streams, text: str) -> None:
        """Write to standard output."""
        out = streams[1]
        if isinstance(out, Sink):
            out.buffer += text.encode(errors="surrogateescape")
            out.flush()

    def expander(self, streams: Streams) -> Expander:
        """Return what expands words in the present shell."""
        return Expander(
            self.files,
            self.state,
            substitute=lambda script: self._handlers.substitution(self, script, streams),
            complain=lambda text: self.complain(streams, text),
        )

    # Commands of commands

    def run(self, node: Node, streams: Streams) -> int:
        """Run a command; its exit code is the status, too. Raises: Ended, Abandoned, Jump, Returned."""
        if isinstance(node, Simple):
            code = self._simple(node, streams)
        elif isinstance(node, AndOr):
            code = self._and_or(node, streams)
        elif isinstance(node, Sequence):
            code = 0
            for one in node.nodes:
                code = self.run(one, streams)
        elif isinstance(node, Pipeline):
            code = self._pipeline(node, streams)
        elif isinstance(node, Function):
            self.state.functions[node.name] = (node, self.state.place)
            code = 0
        else:
            code = self._handlers.compound(self, node, streams)
        self.state.status = code
        return code

    def failed(self, code: int) -> int:
        """Return the exit code of a command; a failure ends the shell under ``set -e``, unless it is a condition."""
        if code and "e" in self.state.options and not self.state.guards:
            raise Ended(code)
        return code

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Let failures be what a condition asks for."""
        state = self.state
        state.guards += 1
        try:
            yield
        finally:
            state.guards -= 1

    def step(self, text: str) -> None:
        """Count a step of what ``text`` names. Raises: too many → UnsupportedSyntax."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise UnsupportedSyntax(text, f"more than {MOST_STEPS} steps")

    def _and_or(self, node: AndOr, streams: Streams) -> int:
        with self.guarded():
            code = self.run(node.first, streams)
        last = len(node.rest) - 1
        for number, (operator, command) in enumerate(node.rest):
            if (operator == "&&") != (code == 0):
                continue
            if number == last:
                return self.run(command, streams)
            with self.guarded():
                code = self.run(command, streams)
        return code

    def _pipeline(self, node: Pipeline, streams: Streams) -> int:
        if len(node.commands) == 1:
            with self.guarded():
                code = self.run(node.commands[0], streams)
            return int(not code) if node.negated else code
        codes: list[int] = []
        stdin = streams[0]
        for number, command in enumerate(node.commands):
            inner: Streams = {**streams, 0: stdin}
            if number < len(node.merges):
                pipe = Sink()
                inner[1] = pipe
                if node.merges[number]:
                    inner[2] = pipe
            is_simple = isinstance(command, Simple)
            codes.append(self.subshell(lambda one=command, where=inner: self.run(one, where), is_simple=is_simple))  # type: ignore[misc]
            if number < len(node.merges):
                stdin = Source(bytes(pipe.buffer))
        code = next((one for one in reversed(codes) if one), 0) if "pipefail" in self.state.options else codes[-1]
        if node.negated:
            return int(not code)
        return self.failed(code)

    def redirected(self, redirects: tuple[Redirect, ...], streams: Streams) -> Streams:
        """Return the streams as redirections leave them. Raises: Refused."""
        if not redirects:
            return streams
        return redirected(redirects, streams, self.expander(streams))

    # Simple commands

    def _simple(self, node: Simple, streams: Streams) -> int:
        self.step(node.text)
        state = self.state
        state.line = node.line
        self.last_substitution = 0
        words = self._words(node, streams)
        if node.redirects:
            try:
                inner = self.redirected(node.redirects, streams)
            except Refused as refused:
                return self.failed(self.say(streams, str(refused)))
        else:
            inner = streams
        if not words:
            for assignment in node.assignments:
                self._assign(assignment, streams)
            return self.failed(self.last_substitution)
        if not node.assignments:
            self._trace(streams, words)
            return self.failed(self.execute(words, node.text, inner))
        return self.failed(self._with_assignments(node, words, streams, inner))

    def _words(self, node: Simple, streams: Streams) -> tuple[str, ...]:
        if all(word.plain is not None for word in node.words):
            return tuple(word.plain for word in node.words if word.plain is not None)
        expander = self.expander(streams)
        if node.words[0].plain in DECLARING:
            words: list[str] = []
            for word in node.words:
                words += [expander.assigned(word)] if ASSIGNMENT.match(word.raw) else expander.words((word,))
            return tuple(words)
        return tuple(expander.words(node.words))

    def _with_assignments(self, node: Simple, words: tuple[str, ...], streams: Streams, inner: Streams) -> int:
        """Run a command with variables that are set for it alone."""
        state = self.state
        kept = {one.name: (state.variables.get(one.name), one.name in state.exported) for one in node.assignments}
        try:
            for assignment in node.assignments:
                self._assign(assignment, streams)
                state.exported.add(assignment.name)
            self._trace(streams, words)
            return self.execute(words, node.text, inner)
        finally:
            for name, (value_before, was_exported) in kept.items():
                if value_before is None:
                    state.variables.pop(name, None)
                else:
                    state.variables[name] = value_before
                if not was_exported:
                    state.exported.discard(name)

    def _assign(self, assignment: Assignment, streams: Streams) -> None:
        value = self.expander(streams).assigned(assignment.value)
        self._trace(streams, (value,) if value else (), head=f"{assignment.name}=")
        before = self.state.variables.get(assignment.name, "") if assignment.appends else ""
        self.assign(assignment.name, before + value, streams)

    def assign(self, name: str, value: str, streams: Streams) -> None:
        """Set a variable. Raises: one that cannot be changed → Abandoned."""
        if name in self.state.readonly:
            raise Abandoned(self.say(streams, f"{name}: readonly variable"))
        self.state.variables[name] = value

    def _trace(self, streams: Streams, words: tuple[str, ...], *, head: str = "") -> None:
        if "x" in self.state.options:
            self.complain(streams, f"{'+' * self.traces} {head}{' '.join(map(_traced, words))}\n")

    def execute(self, words: tuple[str, ...], text: str, streams: Streams) -> int:
        """Run a command by its words: answered, a function, a builtin, a program, a script. Raises: UnknownCommand."""
        answer = self.answer(text, words) if self.answer is not None else None
        if answer is not None:
            self.write(streams, answer.output)
            self.complain(streams, answer.errors)
            return answer.exit_code
        name = words[0]
        if name in self.state.functions:
            return self._call(name, words, streams)
        run = self._handlers.builtins.get(name) or self._handlers.programs.get(self.program_name(name))
        if run is not None:
            try:
                return run(self, words, streams)
            except UnsupportedOption as error:
                raise UnsupportedSyntax(" ".join(words), str(error)) from error
        if "/" in name:
            return self._handlers.script_file(self, words, text, streams)
        raise UnknownCommand(words, text)

    def _call(self, name: str, words: tuple[str, ...], streams: Streams) -> int:
        state = self.state
        function, place = state.functions[name]
        if place.syntax_name:  # it was not defined in a file
            place = replace(place, name="environment")
        outer = (state.arguments, state.place, state.line, state.loops)
        state.arguments, state.place, state.loops = words[1:], place, 0
        state.scopes.append({})
        with self.deeper(name):
            try:
                return self.run(function.body, streams)
            except Returned as returned:
                return returned.code
            finally:
                state.arguments, state.place, state.line, state.loops = outer
                for variable, value in state.scopes.pop().items():
                    if value is None:
                        state.variables.pop(variable, None)
                    else:
                        state.variables[variable] = value


def _traced(word: str) -> str:
    """Return a word as ``set -x`` writes it."""
    if not word.isprintable():
        raise UnsupportedSyntax(word, "the trace of letters that cannot be printed")
    is_plain = re.fullmatch(r"[A-Za-z0-9_@%+=:,./{}-][A-Za-z0-9_@%+=:,./~#{}-]*", word)
    return word if is_plain else "'" + word.replace("'", "'\\''") + "'"
