"""Runs a parsed command line on the in-memory machine. The commands of a pipeline run one after the other, each to its end.

Source: bash 5.2, execute_cmd.c and subst.c.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from pytest_hermes_env.sandbox.bash import syntax
from pytest_hermes_env.sandbox.bash.builtins import BUILTINS
from pytest_hermes_env.sandbox.bash.commands.disk import Disk
from pytest_hermes_env.sandbox.bash.commands.grep import grep
from pytest_hermes_env.sandbox.bash.commands.process import Process, Program
from pytest_hermes_env.sandbox.bash.commands.text import TEXT
from pytest_hermes_env.sandbox.bash.commands.tree import TREE
from pytest_hermes_env.sandbox.bash.parser import ASSIGNMENT
from pytest_hermes_env.sandbox.bash.state import Ended, NotExact, Sink, Source, State, Streams
from pytest_hermes_env.sandbox.bash.words import PATTERN
from pytest_hermes_env.sandbox.outcome import Outcome

__all__ = ["Answer", "Knows", "Runner"]

BLANKS = re.compile(r"[ \t\n]+")
DIRECTORIES = ("/bin/", "/usr/bin/")
PROGRAMS: dict[str, Program] = {**TEXT, **TREE, "grep": grep}

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

    def check(self, simples: Sequence[syntax.Simple]) -> None:
        """Raises: a command is not known, which can be said before anything runs → NotExact."""
        for node in simples:
            name = node.words[0].plain if node.words else None
            if name in {None, "timeout"} or self._program(name) is not None or "/" in name:
                continue
            words = tuple(word.raw if word.plain is None else word.plain for word in node.words)
            if self._knows is None or not self._knows(node.text, words):
                raise NotExact(f"the command {name}")

    def _program(self, name: str) -> Program | None:
        found = BUILTINS.get(name) or PROGRAMS.get(name)
        if found is None and name.startswith(DIRECTORIES):
            return PROGRAMS.get(name.rpartition("/")[2])
        return found

    # Commands of commands

    def run(self, script: syntax.Script, streams: Streams) -> int:
        """Run commands one after the other. Raises: Ended, NotExact."""
        code = 0
        for node in script:
            code = self._step(node, streams)
        return code

    def _step(self, node: syntax.Node, streams: Streams) -> int:
        code = self._run(node, streams)
        self.state.status = code
        return code

    def _run(self, node: syntax.Node, streams: Streams) -> int:
        if isinstance(node, syntax.Simple):
            return self._simple(node, streams)
        if isinstance(node, syntax.AndOr):
            code = self._step(node.first, streams)
            for operator, one in node.rest:
                if (operator == "&&") == (code == 0):
                    code = self._step(one, streams)
            return code
        if isinstance(node, syntax.Pipeline):
            code = self._pipeline(node.commands, streams)
            return int(not code) if node.negated else code
        try:
            with self._redirected(node.redirects, streams) as inner:
                return self._compound(node, inner)
        except _Refused:
            raise NotExact("a failed redirection of several commands") from None

    def _compound(self, node: syntax.Group | syntax.If, streams: Streams) -> int:
        if isinstance(node, syntax.Group):
            return self._subshell(node.body, streams) if node.is_subshell else self.run(node.body, streams)
        for condition, body in node.branches:
            if condition is None or self.run(condition, streams) == 0:
                return self.run(body, streams)
        return 0

    # Subshells and pipelines

    def _subshell(self, script: syntax.Script, streams: Streams) -> int:
        outer, cwd = self.state, self.disk.cwd
        self.state = outer.copy()
        try:
            return self.run(script, streams)
        except Ended as end:
            return end.code
        finally:
            self.state, self.disk.cwd = outer, cwd

    def _pipeline(self, commands: Sequence[syntax.Node], streams: Streams) -> int:
        """Run a pipeline. Raises: the order in which its commands do something decides what comes out → NotExact."""
        if len(commands) == 1:
            return self._step(commands[0], streams)
        disk, source, code = self.disk, streams.source, 0
        first, written, complained = disk.uses, disk.writes, len(streams.error.data)
        for number, command in enumerate(commands):
            is_last = number == len(commands) - 1
            used = disk.uses
            out = streams.out if is_last else Sink()
            code = self._subshell((command,), Streams(source, out, streams.error))
            if disk.writes > written and not (is_last and used == first):
                raise NotExact("a file that is written in a pipeline")
            if len(streams.error.data) > complained and not is_last:
                raise NotExact("what several commands of a pipeline do at once")
            if number and source.data and not source.is_used:
                raise NotExact("a pipe that nobody reads")
            source = Source(bytes(out.data))
        return code

    def _substitute(self, script: syntax.Script, streams: Streams) -> str:
        """Return the output of ``$( )``."""
        out, prefix = Sink(), self.state.prefix
        self.state.prefix = None  # bash counts the lines of a substitution in its own way
        self._substituted = self._subshell(script, Streams(streams.source, out, streams.error))
        self.state.prefix = prefix
        if b"\0" in out.data:
            raise NotExact("a null byte in $( )")
        return out.data.decode(errors="surrogateescape").rstrip("\n")

    # Expansions

    def _fields(self, words: Sequence[syntax.Word], streams: Streams) -> list[str]:
        """Return what several words expand to; the value of an unquoted variable or substitution is split at blanks."""
        fields: list[str] = []
        for word in words:
            fields += [word.plain] if word.plain is not None else self._split(word, streams)
        return fields

    def _split(self, word: syntax.Word, streams: Streams) -> Iterator[str]:
        field, is_open = "", False
        for part in word.parts:
            value = self._value(part, streams)
            if part.quoted or isinstance(part, syntax.Text):
                field += value
                is_open = is_open or part.quoted or bool(value)
                continue
            if PATTERN.search(value):
                raise NotExact(f"the pattern {value}")
            for number, piece in enumerate(BLANKS.split(value)):
                if number and is_open:
                    yield field
                    field, is_open = "", False
                field += piece
                is_open = is_open or bool(piece)
        if is_open:
            yield field

    def _text(self, word: syntax.Word, streams: Streams) -> str:
        """Return a word as one text, which is not split."""
        return word.plain if word.plain is not None else "".join(self._value(part, streams) for part in word.parts)

    def _value(self, part: syntax.Part, streams: Streams) -> str:
        if isinstance(part, syntax.Text):
            return part.text
        if part.script is not None:
            return self._substitute(part.script, streams)
        return str(self.state.status) if part.name == "?" else self.state.variables.get(part.name, "")

    # Redirections

    @contextmanager
    def _redirected(self, redirects: Sequence[syntax.Redirect], streams: Streams) -> Iterator[Streams]:
        """Give the streams as redirections leave them, and write files at the end. Raises: _Refused."""
        if not redirects:
            yield streams
            return
        sinks: list[tuple[Sink, bool]] = []
        count = len(self.disk.opened)
        try:
            for redirect in redirects:
                streams = self._redirect(redirect, streams, sinks)
            yield streams
        finally:
            del self.disk.opened[count:]
            for sink, append in sinks:
                if sink.data:
                    self.disk.write(sink.path, bytes(sink.data), append=append)

    def _redirect(self, redirect: syntax.Redirect, streams: Streams, sinks: list[tuple[Sink, bool]]) -> Streams:
        operator, target = redirect.operator, redirect.target
        assert target is not None
        if operator.startswith("<<"):
            text = self._text(target, streams) + ("\n" if operator == "<<<" else "")
            return replace(streams, source=Source(text.encode(errors="surrogateescape")))
        if operator == ">&":
            return self._to(redirect, streams, streams.out if target.plain == "1" else streams.error)
        names = self._fields((target,), streams)
        if len(names) != 1:
            raise NotExact("an ambiguous redirect")
        try:
            if operator == "<":
                source = Source(self.disk.read(names[0]))
                self.disk.opened.append(self.disk.path(names[0]))
                return replace(streams, source=source)
            sink = self._opened(names[0], streams, sinks, append=operator.endswith(">>"))
        except IsADirectoryError:
            raise NotExact("a directory as a file") from None
        except OSError as error:
            streams.error.write(self.state.message(names[0], error))
            raise _Refused from None
        return self._to(redirect, streams, sink)

    @staticmethod
    def _to(redirect: syntax.Redirect, streams: Streams, sink: Sink) -> Streams:
        if redirect.operator.startswith("&"):
            return replace(streams, out=sink, error=sink)
        return replace(streams, out=sink) if redirect.fd == 1 else replace(streams, error=sink)

    def _opened(self, name: str, streams: Streams, sinks: list[tuple[Sink, bool]], *, append: bool) -> Sink:
        """Return what collects the data for a file, which is made or emptied first."""
        if name in {"/dev/stdout", "/dev/stderr"}:
            sink = streams.out if name == "/dev/stdout" else streams.error
            if sink.path:
                raise NotExact(name)
            return sink
        if name == "/dev/null":
            return Sink(name)
        path = self.disk.path(name)
        self.disk.write(path, b"", append=append)
        self.disk.opened.append(path)
        sink = Sink(path)
        sinks.append((sink, append))
        return sink

    # Simple commands

    def _simple(self, node: syntax.Simple, streams: Streams) -> int:
        self._substituted = 0
        words = self._words(node, streams)
        if not words and any(redirect.operator == "<" for redirect in node.redirects):
            raise NotExact("a redirection without a command")
        try:
            with self._redirected(node.redirects, streams) as inner:
                if not node.assignments:
                    return self._execute(words, node.text, inner) if words else self._substituted
                if not words:
                    self._assign(node, streams)
                    return self._substituted
                return self._with_assignments(node, words, inner)
        except _Refused:
            if not words:
                raise NotExact("a failed redirection without a command") from None
            return 1

    def _words(self, node: syntax.Simple, streams: Streams) -> Sequence[str]:
        plain = [word.plain for word in node.words if word.plain is not None]
        if len(plain) == len(node.words):
            return plain
        if node.words[0].plain != "export":
            return self._fields(node.words, streams)
        found: list[str] = []
        for word in node.words:  # what is assigned is not split
            found += [self._text(word, streams)] if ASSIGNMENT.match(word.raw) else self._fields((word,), streams)
        return found

    def _assign(self, node: syntax.Simple, streams: Streams) -> None:
        for name, word in node.assignments:
            self.state.assign(name, self._text(word, streams))

    def _with_assignments(self, node: syntax.Simple, words: Sequence[str], streams: Streams) -> int:
        """Run a command with variables that are set for it alone."""
        if words[0] in {"export", "exit"}:
            raise NotExact(f"{words[0]} with variables for it alone")
        variables, exported = self.state.variables, self.state.exported
        before = {name: (variables.get(name), name in exported) for name, _ in node.assignments}
        self._assign(node, streams)
        exported |= before.keys()
        code = self._execute(words, node.text, streams)
        for name, (value, was_exported) in before.items():
            variables.pop(name, None)
            variables.update({} if value is None else {name: value})
            exported -= set() if was_exported else {name}
        return code

    def _execute(self, words: Sequence[str], text: str, streams: Streams) -> int:
        """Run a command by its words: answered, a builtin or a program. Raises: it is not known → NotExact."""
        answer = self._answer(text, tuple(words))
        if answer is not None:
            streams.source.is_used = True
            streams.out.write(answer.output.encode(errors="surrogateescape"))
            streams.error.write(answer.errors.encode(errors="surrogateescape"))
            return answer.exit_code
        name, program = words[0], self._program(words[0])
        if name == "timeout" and len(words) > 2 and re.fullmatch(r"[1-9][0-9]*[smh]?", words[1]):  # noqa: PLR2004 - and a command
            if words[2] in BUILTINS:
                raise NotExact(f"timeout of {words[2]}")
            self._check_path(name)
            return self._execute(words[2:], " ".join(words[2:]), streams)
        if program is None:
            raise NotExact(f"the command {name}")
        if name not in BUILTINS:
            self._check_path(name)
        return program(Process(name=name, arguments=words[1:], disk=self.disk, state=self.state, streams=streams))

    def _check_path(self, name: str) -> None:
        """Raise NotExact if PATH leads to something else than the system's program."""
        places = self.state.variables.get("PATH", "").split(":")
        if "/" not in name and (
            "/usr/bin" not in places or any(f"{place}/{name}" in self.disk.files.nodes for place in places)
        ):
            raise NotExact("a PATH of its own")
