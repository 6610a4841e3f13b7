"""Runs a parsed command line on the in-memory machine. The commands of a pipeline run one after the other, each to its end."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from pytest_hermes_env.errors import UnknownCommand
from pytest_hermes_env.sandbox.bash import syntax
from pytest_hermes_env.sandbox.bash.builtins import BUILTINS, DECLARING, OTHER_BUILTINS
from pytest_hermes_env.sandbox.bash.conditions import holds
from pytest_hermes_env.sandbox.bash.expansion import Expander
from pytest_hermes_env.sandbox.bash.globs import pattern_of
from pytest_hermes_env.sandbox.bash.parser import Parsed
from pytest_hermes_env.sandbox.bash.state import Ended, Jump, State
from pytest_hermes_env.sandbox.bash.streams import Sink, Source, Streams
from pytest_hermes_env.sandbox.commands.disk import Disk
from pytest_hermes_env.sandbox.commands.process import Process, Program
from pytest_hermes_env.sandbox.commands.programs import PROGRAMS
from pytest_hermes_env.sandbox.not_exact import NotExact
from pytest_hermes_env.sandbox.outcome import Outcome

__all__ = ["Answer", "Knows", "Runner"]

MOST_STEPS = 10_000
"""Commands that one line may run."""
DIRECTORIES = ("/bin/", "/usr/bin/")
WAITING = frozenset({"wc", "sort", "tail", "uniq", "cut", "tr", "sed", "grep"})
"""Programs that write nothing before their input ends."""

Answer: TypeAlias = Callable[[str, tuple[str, ...]], Outcome | None]
Knows: TypeAlias = Callable[[str, tuple[str, ...]], bool]


class _Refused(Exception):
    """A redirection failed; the message is written."""


class Runner:
    """Runs one line. ``state`` is that of the shell or subshell that runs at the moment."""

    def __init__(self, disk: Disk, state: State, *, answer: Answer, knows: Knows | None) -> None:
        self.disk = disk
        self.state = state
        self._answer = answer
        self._knows = knows
        self._substituted = 0
        self._has_programs = any(disk.files.is_dir(place) for place in ("/bin", "/sbin", "/usr"))

    def check(self, parsed: Parsed) -> None:
        """Raise what can be said before anything runs: UnknownCommand, or NotExact for a builtin that is not known."""
        for node in parsed.simples:
            name = node.words[0].plain if node.words else None
            if name is None or self._program(name) is not None or "/" in name:
                continue
            words = tuple(word.raw if word.plain is None else word.plain for word in node.words)
            if self._knows is not None and self._knows(node.text, words):
                continue
            if OTHER_BUILTINS.fullmatch(name):
                self._check_lookup(words)
            elif all(word.plain is not None for word in node.words):
                raise UnknownCommand(words, node.text)

    def _check_lookup(self, words: Sequence[str]) -> None:
        """Raise NotExact for a builtin that is not known: for all but ``command -v`` with a name that is known."""
        if tuple(words[:2]) != ("command", "-v") or len(words) != 3:  # noqa: PLR2004 - and a name
            raise NotExact(f"{words[0]} command")
        name = words[2]
        is_known = "/" not in name and (
            self._program(name) is not None or (self._knows is not None and self._knows(name, (name,)))
        )
        if not is_known:
            raise NotExact(f"command -v {name}")
        if name not in BUILTINS:
            self._check_path(name)

    def _program(self, name: str) -> Program | None:
        found = BUILTINS.get(name) or PROGRAMS.get(name)
        if found is None and name.startswith(DIRECTORIES):
            return PROGRAMS.get(name.rpartition("/")[2])
        return found

    # Commands of commands

    def run(self, node: syntax.Node, streams: Streams) -> int:
        """Run a command; its exit code is the status, too. Raises: Ended, Jump, NotExact, UnknownCommand."""
        self.state.steps[0] += 1
        if self.state.steps[0] > MOST_STEPS:
            raise NotExact(f"more than {MOST_STEPS} steps")
        code = self._run(node, streams)
        self.state.status = code
        return code

    def _run(self, node: syntax.Node, streams: Streams) -> int:
        if isinstance(node, syntax.Simple):
            return self._simple(node, streams)
        if isinstance(node, syntax.Script):
            code = 0
            for one in node.nodes:
                code = self.run(one, streams)
            return code
        if isinstance(node, syntax.AndOr):
            code = self.run(node.first, streams)
            for operator, one in node.rest:
                if (operator == "&&") == (code == 0):
                    code = self.run(one, streams)
            return code
        if isinstance(node, syntax.Pipeline):
            return self._pipeline(node, streams)
        try:
            with self._redirected(node.redirects, streams) as inner:
                return self._compound(node, inner)
        except _Refused:
            raise NotExact("a failed redirection of several commands") from None

    def _compound(self, node: syntax.Node, streams: Streams) -> int:
        if isinstance(node, syntax.If):
            for condition, body in node.branches:
                if condition is None or self.run(condition, streams) == 0:
                    return self.run(body, streams)
            return 0
        if isinstance(node, syntax.For):
            return self._for(node, streams)
        if isinstance(node, syntax.Loop):
            return self._while(node, streams)
        if isinstance(node, syntax.Group):
            if node.is_subshell:
                return self._subshell(node.body, streams)
            return self.run(node.body, streams)
        assert isinstance(node, syntax.Condition)
        return int(not self._holds(node, streams))

    def _for(self, node: syntax.For, streams: Streams) -> int:
        code = 0
        for value in self._expander(streams).words(node.words):
            self.state.assign(node.name, value)
            code, goes_on = self._turn(node.body, streams)
            if not goes_on:
                break
        return code

    def _while(self, node: syntax.Loop, streams: Streams) -> int:
        code, goes_on = 0, True
        while goes_on:
            self.state.loops += 1
            try:
                condition = self.run(node.condition, streams)
            except Jump:
                raise NotExact("break in a condition") from None
            finally:
                self.state.loops -= 1
            if (condition == 0) == node.is_until:
                return code
            code, goes_on = self._turn(node.body, streams)
        return code

    def _turn(self, body: syntax.Script, streams: Streams) -> tuple[int, bool]:
        """Run the body of a loop once; return its exit code, and whether the loop goes on."""
        self.state.loops += 1
        try:
            return self.run(body, streams), True
        except Jump as jump:
            if jump.levels > 1:
                raise Jump(is_break=jump.is_break, levels=jump.levels - 1) from None
            return 0, not jump.is_break
        finally:
            self.state.loops -= 1

    def _holds(self, node: syntax.Condition, streams: Streams) -> bool:
        expander, words = self._expander(streams), node.words
        is_negated = words[0].raw == "!"
        words = words[is_negated:]
        texts = [expander.text(word) for word in words]
        if words[1:2] and words[1].raw in {"=", "==", "!="}:
            is_equal = re.fullmatch(pattern_of(expander.segments(words[2])), texts[0]) is not None
            return (is_equal == (words[1].raw != "!=")) != is_negated
        return holds(texts, self.disk, is_strict=True) != is_negated

    # Subshells and pipelines

    def _subshell(self, node: syntax.Node, streams: Streams) -> int:
        outer, cwd = self.state, self.disk.cwd
        self.state = outer.copy()
        try:
            return self.run(node, streams)
        except Ended as end:
            return end.code
        finally:
            self.state, self.disk.cwd = outer, cwd

    def _pipeline(self, node: syntax.Pipeline, streams: Streams) -> int:
        if len(node.commands) == 1:
            return int(not self.run(node.commands[0], streams))
        source, last = streams.source, len(node.commands) - 1
        before = self.disk.reads, self.disk.writes
        reads, writes = set(before[0]), set(before[1])
        earlier: tuple[set[str], set[str]] = (set(), set())
        has_raced = False
        code = 0
        for number, command in enumerate(node.commands):
            out = streams.out if number == last else Sink()
            inner = Streams(source, out, streams.error)
            self.disk.reads, self.disk.writes = set(), set()
            errors, outputs = len(streams.error.data), len(streams.out.data)
            code = self._subshell(command, inner)
            is_first_done = not number or (source.is_used and _waits(command))
            has_written = len(streams.error.data) > errors or (number == last and len(streams.out.data) > outputs)
            if has_raced and has_written and not is_first_done:
                raise NotExact("what several commands of a pipeline write at once")
            has_raced = has_raced or len(streams.error.data) > errors
            if self.disk.writes & (earlier[0] | earlier[1]) or self.disk.reads & earlier[1]:
                raise NotExact("a file that two commands of a pipeline use at once")
            has_effects = number > 0 and (bool(earlier[1]) or not isinstance(node.commands[number - 1], syntax.Simple))
            if has_effects and source.has_data and not source.is_used:
                raise NotExact("a pipe that nobody reads")
            earlier[0].update(self.disk.reads)
            earlier[1].update(self.disk.writes)
            source = Source(bytes(out.data)) if number < last else source
        self.disk.reads, self.disk.writes = reads | earlier[0], writes | earlier[1]
        return int(not code) if node.negated else code

    def _substitute(self, script: syntax.Script, streams: Streams) -> str:
        """Return the output of ``$( )``."""
        only = script.nodes[0] if len(script.nodes) == 1 else None
        if isinstance(only, syntax.Simple) and not only.words and not only.assignments:
            if [redirect.operator for redirect in only.redirects] != ["<"]:
                raise NotExact("a substitution without a command")
            try:
                with self._redirected(only.redirects, streams) as inner:
                    data, self._substituted = inner.source.take(), 0
            except _Refused:
                data, self._substituted = b"", 1
        else:
            out, prefix = Sink(), self.state.prefix
            if not isinstance(only, syntax.Simple):
                self.state.prefix = None  # bash counts the lines of such a substitution in its own way
            self._substituted = self._subshell(script, Streams(streams.source, out, streams.error))
            self.state.prefix = prefix
            data = bytes(out.data)
        if b"\0" in data:
            raise NotExact("a null byte in $( )")
        return data.decode(errors="surrogateescape").rstrip("\n")

    def _expander(self, streams: Streams) -> Expander:
        return Expander(self.state, self.disk, lambda script: self._substitute(script, streams))

    # Redirections

    @contextmanager
    def _redirected(self, redirects: Sequence[syntax.Redirect], streams: Streams) -> Iterator[Streams]:
        """Give the streams as redirections leave them, and write files at the end. Raises: _Refused."""
        if not redirects:
            yield streams
            return
        opened: list[tuple[Sink, bool]] = []
        disk = self.disk
        read, written = len(disk.being_read), len(disk.being_written)
        try:
            for redirect in redirects:
                streams = self._redirect(redirect, streams, opened)
            yield streams
        finally:
            del disk.being_read[read:], disk.being_written[written:]
            for sink, append in opened:
                if sink.data:
                    disk.write(sink.path, bytes(sink.data), append=append)

    def _redirect(self, redirect: syntax.Redirect, streams: Streams, opened: list[tuple[Sink, bool]]) -> Streams:
        operator, target = redirect.operator, redirect.target
        assert target is not None
        if operator.startswith("<<"):
            text = self._expander(streams).text(target) + ("\n" if operator == "<<<" else "")
            return self._set_stream(streams, redirect.fd, Source(text.encode(errors="surrogateescape")))
        if operator == ">&":
            return self._set_stream(streams, redirect.fd, streams.out if target.plain == "1" else streams.error)
        names = self._expander(streams).words((target,))
        if len(names) != 1 or "{" in target.raw:
            raise NotExact("an ambiguous redirect")
        try:
            if operator == "<":
                return self._set_stream(streams, redirect.fd, self._opened_for_reading(names[0]))
            sink = self._opened_for_writing(names[0], streams, opened, append=operator.endswith(">>"))
        except OSError as error:
            text = self.state.message(f"{names[0]}: {os.strerror(error.errno or 0)}")
            streams.error.write(text.encode(errors="surrogateescape"))
            raise _Refused from None
        if operator.startswith("&"):
            return Streams(streams.source, sink, sink)
        return self._set_stream(streams, redirect.fd, sink)

    @staticmethod
    def _set_stream(streams: Streams, fd: int, stream: Sink | Source) -> Streams:
        if isinstance(stream, Source) != (fd == 0):
            raise NotExact("a stream in the wrong direction")
        if isinstance(stream, Source):
            return Streams(stream, streams.out, streams.error)
        return Streams(streams.source, stream if fd == 1 else streams.out, stream if fd != 1 else streams.error)

    def _opened_for_reading(self, name: str) -> Source:
        try:
            data = self.disk.read(name)
        except IsADirectoryError:
            raise NotExact("reading a directory") from None
        self.disk.being_read.append(self.disk.path(name))
        return Source(data, is_file=name != "/dev/null")

    def _opened_for_writing(self, name: str, streams: Streams, opened: list[tuple[Sink, bool]], *, append: bool) -> Sink:
        if name in {"/dev/stdout", "/dev/stderr"}:
            sink = streams.out if name == "/dev/stdout" else streams.error
            if sink.path:
                raise NotExact(name)
            return sink
        if name == "/dev/null":
            return Sink(name)
        path = self.disk.path(name)
        if path in self.disk.files and not append:
            self.disk.write(path, b"")
        else:
            self.disk.write(path, b"", append=True)
        self.disk.being_written.append(path)
        sink = Sink(path)
        opened.append((sink, append))
        return sink

    # syntax.Simple commands

    def _simple(self, node: syntax.Simple, streams: Streams) -> int:
        self._substituted = 0
        words = self._words(node, streams)
        try:
            with self._redirected(node.redirects, streams) as inner:
                if not words:
                    self._assign(node, streams)
                    return self._substituted
                if not node.assignments:
                    return self._execute(words, node.text, inner)
                return self._with_assignments(node, words, inner)
        except _Refused:
            if not words:
                raise NotExact("a failed redirection without a command") from None
            return 1

    def _words(self, node: syntax.Simple, streams: Streams) -> Sequence[str]:
        plain = [word.plain for word in node.words if word.plain is not None]
        if len(plain) == len(node.words):
            return plain
        expander = self._expander(streams)
        if node.words[0].plain not in DECLARING:
            return expander.words(node.words)
        found: list[str] = []
        for word in node.words:
            found += [expander.text(word)] if syntax.ASSIGNMENT.match(word.raw) else expander.words((word,))
        return found

    def _assign(self, node: syntax.Simple, streams: Streams) -> None:
        for name, plus, word in node.assignments:
            value = self._expander(streams).text(word)
            self.state.assign(name, self.state.variables.get(name, "") + value if plus else value)

    def _with_assignments(self, node: syntax.Simple, words: Sequence[str], streams: Streams) -> int:
        """Run a command with variables that are set for it alone."""
        if words[0] in DECLARING or (words[0] == "read" and any(name != "IFS" for name, _, _ in node.assignments)):
            raise NotExact(f"{words[0]} with variables for it alone")
        state = self.state
        before, names = (dict(state.variables), set(state.exported)), {name for name, _, _ in node.assignments}
        self._assign(node, streams)
        state.exported |= names
        code = self._execute(words, node.text, streams)
        for name in names:
            state.variables.pop(name, None)
            if name in before[0]:
                state.variables[name] = before[0][name]
        state.exported -= names - before[1]
        return code

    def _execute(self, words: Sequence[str], text: str, streams: Streams) -> int:
        """Run a command by its words: answered, a builtin or a program. Raises: UnknownCommand."""
        answer = self._answer(text, tuple(words))
        if answer is not None:
            streams.out.write(answer.output.encode(errors="surrogateescape"))
            streams.error.write(answer.errors.encode(errors="surrogateescape"))
            return answer.exit_code
        name = words[0]
        program = self._program(name)
        if program is None:
            if OTHER_BUILTINS.fullmatch(name):
                self._check_lookup(words)
                streams.out.write(f"{'' if words[2] in BUILTINS else '/usr/bin/'}{words[2]}\n".encode())
                return 0
            raise UnknownCommand(tuple(words), text)
        if name not in BUILTINS:
            self._check_path(name)
        return program(
            Process(name=name, arguments=words[1:], disk=self.disk, state=self.state, streams=streams, run=self._run_words)
        )

    def _run_words(self, words: Sequence[str], streams: Streams) -> int:
        """Run a command that another command names."""
        self.state.steps[0] += 1
        return self._execute(words, " ".join(words), streams)

    def _check_path(self, name: str) -> None:
        """Raise NotExact if PATH leads to something else than the system's program."""
        places = self.state.variables.get("PATH", "").split(":")
        own = places if self._has_programs else [place for place in places if not place.startswith(("/bin", "/sbin", "/usr"))]
        if "/" not in name and ("/usr/bin" not in places or any(f"{place}/{name}" in self.disk.files for place in own)):
            raise NotExact("a PATH of its own")


def _waits(command: syntax.Node) -> bool:
    return isinstance(command, syntax.Simple) and bool(command.words) and command.words[0].plain in WAITING
