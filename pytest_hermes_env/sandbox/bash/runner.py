"""Runs a script on the in-memory machine.

Place in the flow: `Shell.run` makes one `Runner` for each line. Commands of a pipeline run one after the other, each to its end.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

from pytest_hermes_env.errors import UnknownCommand, UnsupportedSyntax
from pytest_hermes_env.sandbox.bash.arithmetic import ArithmeticProblem
from pytest_hermes_env.sandbox.bash.builtins import BUILTINS
from pytest_hermes_env.sandbox.bash.conditions import BadExpression, holds
from pytest_hermes_env.sandbox.bash.expansion import Expander
from pytest_hermes_env.sandbox.bash.globs import expression
from pytest_hermes_env.sandbox.bash.grammar import parse
from pytest_hermes_env.sandbox.bash.lexer import ASSIGNMENT
from pytest_hermes_env.sandbox.bash.names import commands_of
from pytest_hermes_env.sandbox.bash.quoting import shown
from pytest_hermes_env.sandbox.bash.redirection import Refused, redirected
from pytest_hermes_env.sandbox.bash.state import Abandoned, Ended, Jump, Place, Returned, State
from pytest_hermes_env.sandbox.bash.streams import FileSink, Sink, Source, Streams
from pytest_hermes_env.sandbox.bash.tree import (
    AndOr,
    ArithmeticCommand,
    Case,
    Condition,
    CountingLoop,
    For,
    Function,
    Group,
    If,
    Loop,
    Node,
    Pipeline,
    Redirect,
    Script,
    Sequence,
    Simple,
)
from pytest_hermes_env.sandbox.commands import COMMANDS, Process, UnsupportedOption
from pytest_hermes_env.sandbox.files import Files

__all__ = ["Outcome", "Runner"]

MOST_STEPS = 10_000
"""Commands that one line may run: a loop without an end is refused."""
MOST_CALLS = 40
"""Functions, scripts and substitutions that may run inside each other."""
SYNTAX_ERROR = 2
NOT_EXECUTABLE = 126
DECLARING = frozenset({"export", "declare", "typeset", "local", "readonly"})
"""Builtins whose arguments may be assignments, which are not split."""
TALKING = frozenset({"echo", "printf"})
"""Programs that never open what they are given."""
DEVICES = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"})
"""What programs know of the directory of devices."""
DIRECTORIES = ("/bin/", "/usr/bin/", "/usr/local/bin/")
SHELLS = re.compile(rb"#!\s*\S*/(?:env\s+)?(?:ba|da)?sh(?:\s+-\w+)?\s*$")
BUILTIN_COMPLAINS = b"/usr/bin/bash: line 3: "


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a terminal shows of a command line: output and complaints in their order, and the exit code.

    ``errors`` is what an answered command says on stderr; a line's outcome has all of it in ``output``.
    """

    output: str
    exit_code: int = 0
    errors: str = ""


Answer: TypeAlias = Callable[[str, tuple[str, ...]], Outcome | None]
Knows: TypeAlias = Callable[[str, tuple[str, ...]], bool]


class _Reader(Process):
    """A process whose standard input is taken from a source that others may read on."""

    source: Source
    stdin_is_file: bool = False
    launch: Callable[[tuple[str, ...]], int] | None = None
    _taken: bytes | None = None

    @property
    def stdin(self) -> bytes:
        """Everything that is left to read, also when it is asked for twice."""
        if self.source.is_directory:
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), "-")
        if self._taken is None:
            self._taken = self.source.rest
            self.source.at = len(self.source.data)
        return self._taken

    @stdin.setter
    def stdin(self, data: bytes) -> None:
        self.source = Source(data)


class Runner:
    """Runs one line. ``state`` is that of the shell or subshell that runs at the moment."""

    def __init__(self, files: Files, state: State, *, answer: Answer | None = None, knows: Knows | None = None) -> None:
        self.files = files
        self.state = state
        self.answer = answer
        self.knows = knows
        self.substituted = 0
        self._steps = 0
        self._calls = 0
        self._traces = 2 if state.place.syntax_name else 1

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
        return name in self.state.functions or name in BUILTINS or self.program_name(name) in COMMANDS

    @staticmethod
    def program_name(name: str) -> str:
        """Return a program's name without the directories where programs are."""
        for directory in DIRECTORIES:
            if name.startswith(directory) and "/" not in name[len(directory) :]:
                return name[len(directory) :]
        return name

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
        with self._deeper(text):
            try:
                return self.script(script, streams, recovers=recovers)
            finally:
                state.place, state.line = outer, line

    @contextmanager
    def _deeper(self, text: str) -> Iterator[None]:
        self._calls += 1
        try:
            if self._calls > MOST_CALLS:
                raise UnsupportedSyntax(text, f"more than {MOST_CALLS} calls inside each other")
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

    def substitute(self, script: Script, streams: Streams) -> str:
        """Return what a script writes, without line breaks at the end."""
        out = Sink()
        guards, self.state.guards = self.state.guards, 0
        without_e = "e" in self.state.options
        state = self.state

        inner: Streams = {**streams, 1: out}

        def body() -> int:
            if without_e:
                self.state.options.discard("e")
            return self._file_content(script, inner) if _only_reads(script) else self.script(script, inner)

        self._traces += 1
        try:
            with self._deeper("$(...)"):
                code = self.subshell(body)
        finally:
            state.guards = guards
            self._traces -= 1
        state.status = self.substituted = code
        data = bytes(out.buffer)
        if b"\0" in data:
            self.complain(streams, f"{state.prefix}warning: command substitution: ignored null byte in input\n")
            data = data.replace(b"\0", b"")
        return data.rstrip(b"\n").decode(errors="surrogateescape")

    def _file_content(self, script: Script, streams: Streams) -> int:
        """Write what ``$(< file)`` names."""
        node = script.commands[0][0]
        try:
            source = self._redirected(node.redirects, streams)[0] if isinstance(node, Simple) else None
        except Refused as refused:
            self.complain(streams, f"{self.state.prefix}{refused}\n")
            return 1
        out = streams[1]
        if isinstance(source, Source) and isinstance(out, Sink):
            out.buffer += source.rest
        return 0

    # Complaints

    @staticmethod
    def complain(streams: Streams, text: str) -> None:
        """Write to standard error."""
        error = streams[2]
        if isinstance(error, Sink):
            error.buffer += text.encode(errors="surrogateescape")
            error.flush()

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
            substitute=lambda script: self.substitute(script, streams),
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
            code = self._compound(node, streams)
        self.state.status = code
        return code

    def _failed(self, code: int) -> int:
        """Return the exit code of a command; a failure ends the shell under ``set -e``, unless it is a condition."""
        if code and "e" in self.state.options and not self.state.guards:
            raise Ended(code)
        return code

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        state = self.state
        state.guards += 1
        try:
            yield
        finally:
            state.guards -= 1

    def _step(self, text: str) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise UnsupportedSyntax(text, f"more than {MOST_STEPS} steps")

    def _and_or(self, node: AndOr, streams: Streams) -> int:
        with self._guarded():
            code = self.run(node.first, streams)
        last = len(node.rest) - 1
        for number, (operator, command) in enumerate(node.rest):
            if (operator == "&&") != (code == 0):
                continue
            if number == last:
                return self.run(command, streams)
            with self._guarded():
                code = self.run(command, streams)
        return code

    def _pipeline(self, node: Pipeline, streams: Streams) -> int:
        if len(node.commands) == 1:
            with self._guarded():
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
        return self._failed(code)

    def _compound(
        self, node: Group | If | Loop | For | CountingLoop | Case | Condition | ArithmeticCommand, streams: Streams
    ) -> int:
        if isinstance(node, For | Case | Condition | ArithmeticCommand):
            self.state.line = node.line
        if node.redirects:
            try:
                streams = self._redirected(node.redirects, streams)
            except Refused as refused:
                self.complain(streams, f"{self.state.prefix}{refused}\n")
                return self._failed(1)
        if isinstance(node, Group):
            if node.subshell:
                return self._failed(self.subshell(lambda: self.run(node.body, streams)))
            return self.run(node.body, streams)
        if isinstance(node, If):
            return self._if(node, streams)
        if isinstance(node, Loop):
            return self._loop(node, streams)
        if isinstance(node, For):
            return self._for(node, streams)
        if isinstance(node, CountingLoop):
            return self._count(node, streams)
        if isinstance(node, Case):
            return self._case(node, streams)
        return self._failed(self._condition(node, streams))

    def _redirected(self, redirects: tuple[Redirect, ...], streams: Streams) -> Streams:
        if not redirects:
            return streams
        expander = self.expander(streams)
        return redirected(redirects, streams, expander=expander, files=self.files, cwd=self.state.cwd)

    def _if(self, node: If, streams: Streams) -> int:
        for condition, body in node.branches:
            with self._guarded():
                code = self.run(condition, streams)
            if not code:
                return self.run(body, streams)
        return self.run(node.otherwise, streams) if node.otherwise is not None else 0

    def _loop(self, node: Loop, streams: Streams) -> int:
        code = 0

        def goes_on() -> bool:
            self._step("until" if node.until else "while")
            with self._guarded():
                return (self.run(node.condition, streams) == 0) != node.until

        with self._looping() as state:
            while True:
                try:
                    if not goes_on():
                        break
                    code = self.run(node.body, streams)
                except Jump as jump:
                    code = 0
                    if self._leaves(jump, state):
                        break
        return code

    def _for(self, node: For, streams: Streams) -> int:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", node.name):
            self.complain(streams, f"{self.state.prefix}`{node.name}': not a valid identifier\n")
            return 1
        words = list(self.state.arguments) if node.words is None else self.expander(streams).words(node.words)
        code = 0
        with self._looping() as state:
            for word in words:
                self._step(f"for {node.name}")
                self.assign(node.name, word, streams)
                try:
                    code = self.run(node.body, streams)
                except Jump as jump:
                    code = 0
                    if self._leaves(jump, state):
                        break
        return code

    def _count(self, node: CountingLoop, streams: Streams) -> int:
        head = node.head
        self.state.line = head.line
        expander = self.expander(streams)
        code = 0
        try:
            expander.number(head.first)
            with self._looping() as state:
                while not head.condition.parts or expander.number(head.condition):
                    self._step("for ((...))")
                    try:
                        code = self.run(node.body, streams)
                    except Jump as jump:
                        code = 0
                        if self._leaves(jump, state):
                            break
                    expander.number(head.step)
        except ArithmeticProblem as problem:
            self.complain(streams, f"{self.state.prefix}((: {problem}\n")
            return 1
        return code

    @contextmanager
    def _looping(self) -> Iterator[State]:
        state = self.state
        state.loops += 1
        try:
            yield state
        finally:
            state.loops -= 1

    @staticmethod
    def _leaves(jump: Jump, state: State) -> bool:
        """Return whether a loop ends by a jump; goes on with one that means loops around it."""
        if jump.levels > 1 and state.loops > 1:
            raise Jump(jump.kind, jump.levels - 1)
        return jump.kind == "break"

    def _case(self, node: Case, streams: Streams) -> int:
        expander = self.expander(streams)
        word = expander.text(node.word)
        code, falls = 0, False
        for clause in node.clauses:
            if not falls and not any(
                re.fullmatch(expression(expander.pattern(pattern)), word, re.DOTALL) for pattern in clause.patterns
            ):
                continue
            code = self.script(clause.body, streams)
            falls = clause.end == ";&"
            if clause.end in {";;", "esac"}:
                break
        return code

    def _condition(self, node: Condition | ArithmeticCommand, streams: Streams) -> int:
        expander = self.expander(streams)
        try:
            if isinstance(node, ArithmeticCommand):
                return int(not expander.number(node.expression))
            return int(not holds(node.test, expander, self.files, self.state))
        except ArithmeticProblem as problem:
            name = "((" if isinstance(node, ArithmeticCommand) else "[["
            self.complain(streams, f"{self.state.prefix}{name}: {problem}\n")
            return 1
        except BadExpression:
            return 2

    # Simple commands

    def _simple(self, node: Simple, streams: Streams) -> int:
        self._step(node.text)
        state = self.state
        state.line = node.line
        self.substituted = 0
        words = self._words(node, streams)
        if node.redirects:
            try:
                inner = self._redirected(node.redirects, streams)
            except Refused as refused:
                self.complain(streams, f"{state.prefix}{refused}\n")
                return self._failed(1)
        else:
            inner = streams
        if not words:
            for assignment in node.assignments:
                value = self.expander(streams).assigned(assignment.value)
                self._trace(streams, (f"{assignment.name}={shown(value) if value else ''}",), quotes=False)
                value = state.variables.get(assignment.name, "") + value if assignment.appends else value
                self.assign(assignment.name, value, streams)
            return self._failed(self.substituted)
        if not node.assignments:
            self._trace(streams, words)
            return self._failed(self.execute(words, node.text, inner))
        return self._failed(self._with_assignments(node, words, streams, inner))

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
                value = self.expander(streams).assigned(assignment.value)
                self._trace(streams, (f"{assignment.name}={shown(value) if value else ''}",), quotes=False)
                value = state.variables.get(assignment.name, "") + value if assignment.appends else value
                self.assign(assignment.name, value, streams)
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

    def assign(self, name: str, value: str, streams: Streams) -> None:
        """Set a variable. Raises: one that cannot be changed → Abandoned."""
        if name in self.state.readonly:
            self.complain(streams, f"{self.state.prefix}{name}: readonly variable\n")
            raise Abandoned
        self.state.variables[name] = value

    def _trace(self, streams: Streams, words: tuple[str, ...], *, quotes: bool = True) -> None:
        if "x" in self.state.options:
            text = " ".join(shown(word) if quotes else word for word in words)
            self.complain(streams, f"{'+' * self._traces} {text}\n")

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
        builtin = BUILTINS.get(self.program_name(name))
        if builtin is not None:
            return builtin(self, words, streams)
        if self.program_name(name) in COMMANDS:
            return self.program(words, streams)
        if "/" in name:
            return self._file(words, text, streams)
        raise UnknownCommand(words, text)

    def _call(self, name: str, words: tuple[str, ...], streams: Streams) -> int:
        state = self.state
        function, place = state.functions[name]
        if place.syntax_name:  # it was not defined in a file
            place = replace(place, name="environment")
        outer = (state.arguments, state.place, state.line, state.loops)
        state.arguments, state.place, state.loops = words[1:], place, 0
        state.scopes.append({})
        with self._deeper(name):
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

    def program(self, words: tuple[str, ...], streams: Streams) -> int:
        """Run one of the machine's programs."""
        state = self.state
        source, out, err = streams[0], streams[1], streams[2]
        if not isinstance(source, Source) or not isinstance(out, Sink) or not isinstance(err, Sink):
            raise UnsupportedSyntax(" ".join(words), "a stream that leads the other way")
        process = _Reader(
            words=self._without_devices(words, out),
            files=self.files,
            cwd=state.cwd,
            variables=state.environment(),
            out=out.buffer,
            err=err.buffer,
        )
        process.source = source
        process.stdin_is_file = source.is_file
        process.launch = lambda more: self.subshell(lambda: self.execute(more, shlex.join(more), streams))
        began = len(out.buffer)
        start, at = len(err.buffer), source.at
        name = self.program_name(words[0])
        try:
            code = COMMANDS[name](process)
        except UnsupportedOption as error:
            raise UnsupportedSyntax(" ".join(words), str(error)) from error
        except OSError as error:
            process.complain(f"{error.filename or ''}: {os.strerror(error.errno) if error.errno else error}")
            code = 1
        if name == "head" and source.is_file and source.at > at:
            source.at = at + len(out.buffer) - began  # it goes back to where its output ends
        if err.buffer.startswith(BUILTIN_COMPLAINS, start):  # bash's own programs tell the line they are in
            err.buffer[start : start + len(BUILTIN_COMPLAINS)] = state.prefix.encode()
        out.flush()
        if err is not out:
            err.flush()
        return code

    def _without_devices(self, words: tuple[str, ...], out: Sink) -> tuple[str, ...]:
        """Return the words of a program that names none of the paths which this machine has no files for."""
        if words[0] == "cat":
            paths = {self.files.resolve(word, self.state.cwd) for word in words[1:]}
            if isinstance(out, FileSink) and out.path in paths and self.files.is_file(out.path) and self.files.read(out.path):
                raise UnsupportedSyntax(" ".join(words), "a cat of the file that it writes")
        for word in words[1:]:
            if word.startswith(("/dev/", "/proc/")) and word not in DEVICES and words[0] not in TALKING:
                raise UnsupportedSyntax(" ".join(words), word)
        return words

    def _file(self, words: tuple[str, ...], text: str, streams: Streams) -> int:
        """Run a file of the machine, when it is executable and one for a shell. Raises: else → UnknownCommand."""
        path = self.files.resolve(words[0], self.state.cwd)
        if not self.files.is_file(path) or not self.files.is_executable(path):
            raise UnknownCommand(words, text)
        data = self.files.read(path)
        if data.startswith(b"#!") and not SHELLS.match(data.split(b"\n", 1)[0]):
            raise UnknownCommand(words, text)
        return self.shell_script(data, words, streams, options=())

    def shell_script(self, data: bytes, words: tuple[str, ...], streams: Streams, *, options: tuple[str, ...]) -> int:
        """Run a script as a shell of its own does; ``words`` are its name and arguments."""
        first = data.split(b"\n", 1)[0]
        given = re.findall(r"\s-(\w+)\s*$", first.decode(errors="replace")) if first.startswith(b"#!") else []
        return self.fresh_shell(
            data.decode(errors="surrogateescape"),
            streams,
            place=Place(name=words[0]),
            arguments=words[1:],
            options={*options, *(letter for letters in given for letter in letters if letter in "eux")},
            recovers=True,
        )

    def fresh_shell(
        self,
        text: str,
        streams: Streams,
        *,
        place: Place,
        arguments: tuple[str, ...],
        options: set[str],
        recovers: bool = False,
    ) -> int:
        """Run a text in a new shell, which knows the exported variables and nothing else of this one."""
        outer = self.state
        variables = outer.environment()
        self.state = State(
            cwd=outer.cwd,
            variables=variables,
            exported=set(variables),
            place=place,
            options=set(options),
            arguments=arguments,
            name=place.name,
            is_file=recovers,
        )
        traces, self._traces = self._traces, 1
        try:
            return self.text(text, streams, place=place, recovers=recovers)
        except (Ended, Abandoned) as end:
            return end.code
        finally:
            self.state, self._traces = outer, traces


def _only_reads(script: Script) -> bool:
    """Return whether a script is nothing but ``< file``."""
    if len(script.commands) != 1 or script.problem is not None:
        return False
    node = script.commands[0][0]
    if not isinstance(node, Simple) or node.words or node.assignments:
        return False
    return len(node.redirects) == 1 and node.redirects[0].operator == "<" and node.redirects[0].fd == 0
