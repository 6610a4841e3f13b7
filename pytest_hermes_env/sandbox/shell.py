"""A small shell on an in-memory machine: it runs command lines on `Files`, and starts no process.

Place in the flow: the fake sandbox's ``terminal`` runs each line here. bashlex reads the line; what it cannot read, and what this
shell does not know, is refused as `UnsupportedSyntax` rather than done wrongly.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from pytest_hermes_env.errors import UnknownCommand, UnsupportedSyntax
from pytest_hermes_env.sandbox.commands import COMMANDS, Process, UnsupportedOption
from pytest_hermes_env.sandbox.commands.inputs import reason
from pytest_hermes_env.sandbox.expansion import Expander, UnboundVariable
from pytest_hermes_env.sandbox.files import HOME, Files

__all__ = ["Outcome", "Shell"]

PREFIX = "/usr/bin/bash: line 3: "
"""How bash begins its own complaints under hermes, whose wrapper stands two lines above the command."""

STEPS = 10_000
"""Commands that one line may run: a loop without end is refused."""

BUILTINS = frozenset(
    {"cd", "pwd", "export", "unset", "set", "exit", "return", "eval", ".", "source", "command", "type", "which", "bash", "sh"}
    | {"env", "sleep", "wait", "time", "read", "local", "declare", "readonly", "shift", "break", "continue", "xargs", "nohup"}
)

NOT_FOUND, FAILURE, SYNTAX_ERROR = 127, 1, 2


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a terminal shows of a command line: output and complaints in their order, and the exit code.

    ``errors`` is what an answered command says on stderr; a line's outcome has all of it in ``output``.
    """

    output: str
    exit_code: int = 0
    errors: str = ""


Answer: TypeAlias = "Callable[[str, tuple[str, ...]], Outcome | None]"
Knows: TypeAlias = "Callable[[str, tuple[str, ...]], bool]"


class _Exit(Exception):
    """``exit``: the line is over."""


class _Break(Exception):
    """``break`` or ``continue``."""


@dataclass(kw_only=True)
class _State:
    """What commands of a line change: directory, variables, functions, options."""

    cwd: str
    variables: dict[str, str] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    functions: dict[str, Any] = field(default_factory=dict)
    options: set[str] = field(default_factory=set)
    before: str = ""

    def copy(self) -> _State:
        return replace(
            self,
            variables=dict(self.variables),
            exported=set(self.exported),
            functions=dict(self.functions),
            options=set(self.options),
        )


@dataclass(kw_only=True)
class _Streams:
    """Where a command reads and writes. ``out`` and ``err`` are one object when both lead to the terminal."""

    stdin: bytes
    out: bytearray
    err: bytearray


@functools.lru_cache(maxsize=256)
def _parsed(text: str) -> tuple[Any, ...]:
    """Return the syntax trees of a text. Raises: UnsupportedSyntax, SyntaxError."""
    import bashlex  # noqa: PLC0415 - 30 ms
    import bashlex.errors  # noqa: PLC0415

    if not text.strip() or all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines()):
        return ()
    for token, what in (
        (r"(^|[\s;&|(])\[\[\s", "[[ … ]]"),
        (r"\(\(", "arithmetic"),
        (r"(^|[\s;&|])case\s", "case"),
        (r"<\(|>\(", "process substitution"),
    ):
        if re.search(token, _without_quotes(text)):
            raise UnsupportedSyntax(text, what)
    try:
        return tuple(bashlex.parse(text))
    except NotImplementedError as error:
        raise UnsupportedSyntax(text, str(error) or "a construct") from error
    except bashlex.errors.ParsingError as error:
        raise SyntaxError(str(error)) from error
    except Exception as error:
        raise UnsupportedSyntax(text, f"something that bashlex cannot read ({type(error).__name__})") from error


def _without_quotes(text: str) -> str:
    return re.sub(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.", "", text, flags=re.DOTALL)


class Shell:
    """A session: its directory and variables last from line to line.

    ``answer`` is asked for every simple command before the machine's own commands, ``knows`` beforehand whether it would answer.
    ``running_in`` is the directory of the command that ``answer`` is asked for.
    """

    def __init__(
        self, files: Files, *, cwd: str = "/workspace", answer: Answer | None = None, knows: Knows | None = None
    ) -> None:
        self.files = files
        self.answer = answer
        self.knows = knows
        self.running_in = files.resolve(cwd)
        self._state = _State(
            cwd=files.resolve(cwd), variables={"HOME": HOME, "PWD": cwd, "PATH": "/usr/bin:/bin", "USER": "root"}
        )
        self._state.exported = set(self._state.variables)

    @property
    def cwd(self) -> str:
        """The session's directory."""
        return self._state.cwd

    @cwd.setter
    def cwd(self, path: str) -> None:
        self._state.cwd = self._state.variables["PWD"] = path

    def copy(self, files: Files) -> Shell:
        """Return a session in the same state on other files, with the same answers."""
        other = Shell(files, cwd=self.cwd, answer=self.answer, knows=self.knows)
        other._state = self._state.copy()
        return other

    def run(self, command: str, *, stdin: bytes = b"") -> Outcome:
        """Run a line, or several.

        Raises, before anything has happened where that can be known: UnknownCommand, UnsupportedSyntax.
        """
        terminal = bytearray()
        line = _Line(shell=self, text=command, state=self._state.copy())
        try:
            trees = _parsed(command)
        except SyntaxError as error:
            text = f"/usr/bin/bash: eval: line 3: syntax error near {error}\n"
            return Outcome(output=text, exit_code=SYNTAX_ERROR)
        line.check(trees)
        try:
            code = line.run_all(trees, _Streams(stdin=stdin, out=terminal, err=terminal))
        except _Exit as end:
            code = end.args[0]
        else:
            self._state = line.state
        self._state.variables["?"] = str(code)
        return Outcome(output=terminal.decode(errors="replace"), exit_code=code)


@dataclass(kw_only=True)
class _Line:
    """The run of one line."""

    shell: Shell
    text: str
    state: _State
    steps: int = 0

    # Before: is every command known?

    def check(self, trees: tuple[Any, ...]) -> None:
        """Raise UnknownCommand for a command whose name stands in the source and is not known."""
        defined: set[str] = set()
        for node in _nodes(trees):
            if node.kind == "function":
                defined.add(node.parts[0].word)
        for node in _nodes(trees):
            if node.kind == "command":
                self._check_command(node, defined)

    def _check_command(self, node: Any, defined: set[str]) -> None:
        words = [part for part in node.parts if part.kind == "word"]
        if not words:
            return
        raw = self._raw(words[0])
        if re.search(r"[$`*?\[\\'\"{~]", raw) and raw != "[":
            return
        text = self._source_of(node)
        if raw in BUILTINS or raw in COMMANDS or raw in defined or raw in self.state.functions:
            return
        plain = tuple(self._raw(word) for word in words)
        if self.shell.knows is not None and self.shell.knows(text, plain):
            return
        if any(re.search(r"[$`*?\[\\'\"{~]", word) for word in plain):
            return  # its words are known when it is reached
        raise UnknownCommand(plain, text)

    def _raw(self, node: Any) -> str:
        return self.text[node.pos[0] : node.pos[1]]

    def _source_of(self, node: Any) -> str:
        return " ".join(self._raw(part) for part in node.parts if part.kind in {"word", "assignment"})

    # Running

    def run_all(self, trees: tuple[Any, ...] | list[Any], streams: _Streams) -> int:
        """Run commands one after the other; return the last exit code."""
        code = 0
        for tree in trees:
            code = self._run(tree, streams)
        return code

    def _run(self, node: Any, streams: _Streams, *, is_condition: bool = False) -> int:
        self.steps += 1
        if self.steps > STEPS:
            raise UnsupportedSyntax(self.text, f"more than {STEPS} steps")
        runner = getattr(self, f"_{node.kind}", None)
        if runner is None:
            raise UnsupportedSyntax(self.text, node.kind)
        if node.kind in {"list", "pipeline", "compound", "command"}:
            code = int(runner(node, streams, is_condition))
        else:
            code = int(runner(node, streams))
        self.state.variables["?"] = str(code)
        return code

    def _stop_on_failure(self, code: int, *, is_condition: bool) -> None:
        if code and not is_condition and "e" in self.state.options:
            raise _Exit(code)

    def _list(self, node: Any, streams: _Streams, is_condition: bool) -> int:
        code, operator = 0, ";"
        parts = list(node.parts)
        for place, part in enumerate(parts):
            if part.kind == "operator":
                operator = part.op
                if operator == "&":
                    raise UnsupportedSyntax(self.text, "& in the background")
                continue
            if (operator == "&&" and code) or (operator == "||" and not code):
                continue
            following = parts[place + 1].op if place + 1 < len(parts) and parts[place + 1].kind == "operator" else ";"
            code = self._run(part, streams, is_condition=is_condition or following in {"&&", "||"})
        return code

    def _pipeline(self, node: Any, streams: _Streams, is_condition: bool) -> int:
        commands = [part for part in node.parts if part.kind not in {"reservedword", "pipe"}]
        pipes = [part.pipe for part in node.parts if part.kind == "pipe"]
        is_negated = any(part.kind == "reservedword" and part.word == "!" for part in node.parts)
        data, codes = streams.stdin, []
        for number, command in enumerate(commands):
            is_last = number == len(commands) - 1
            out = streams.out if is_last else bytearray()
            err = out if not is_last and pipes[number] == "|&" else streams.err
            inner = _Streams(stdin=data, out=out, err=err)
            is_quiet = is_condition or is_negated or len(commands) > 1
            codes.append(
                self._in_a_subshell(command, inner) if len(commands) > 1 else self._run(command, inner, is_condition=is_quiet)
            )
            data = bytes(out) if not is_last else b""
        code = next((one for one in reversed(codes) if one), 0) if "pipefail" in self.state.options else codes[-1]
        if is_negated:
            return 0 if code else 1
        self._stop_on_failure(code, is_condition=is_condition)
        return code

    def _in_a_subshell(self, command: Any, streams: _Streams) -> int:
        outer, self.state = self.state, self.state.copy()
        try:
            return self._run(command, streams, is_condition=True)
        except _Exit as end:
            return int(end.args[0])
        finally:
            self.state = outer

    def _compound(self, node: Any, streams: _Streams, is_condition: bool) -> int:
        opening = node.list[0]
        is_subshell = opening.kind == "reservedword" and opening.word == "("
        inner = [part for part in node.list if part.kind not in {"reservedword", "operator"}]
        with_redirects = self._redirected(node.redirects, streams)
        if isinstance(with_redirects, int):
            return with_redirects
        target, finish = with_redirects
        outer = self.state
        if is_subshell:
            self.state = self.state.copy()
        try:
            code = 0
            for part in inner:
                code = self._run(part, target, is_condition=is_condition)
        except _Exit as end:
            if not is_subshell:
                raise
            code = int(end.args[0])
        finally:
            self.state = outer if is_subshell else self.state
            finish()
        if is_subshell:
            self._stop_on_failure(code, is_condition=is_condition)
        return code

    def _if(self, node: Any, streams: _Streams) -> int:
        parts = list(node.parts)
        while parts:
            word = parts.pop(0)
            if word.word in {"if", "elif"}:
                is_true = self._run(parts.pop(0), streams, is_condition=True) == 0
                parts.pop(0)  # then
                body = parts.pop(0)
                if is_true:
                    return self._run(body, streams)
            elif word.word == "else":
                return self._run(parts.pop(0), streams)
        return 0

    def _for(self, node: Any, streams: _Streams) -> int:
        words = [part for part in node.parts if part.kind == "word"]
        body = node.parts[-2]
        expander = self._expander(streams)
        code = 0
        for value in [text for word in words[1:] for text in expander.words(self._raw(word))]:
            self.state.variables[words[0].word] = value
            try:
                code = self._run(body, streams)
            except _Break as jump:
                if jump.args[0] == "break":
                    break
        return code

    def _while(self, node: Any, streams: _Streams) -> int:
        condition, body = node.parts[1], node.parts[3]
        code = 0
        while (self._run(condition, streams, is_condition=True) == 0) == (node.kind == "while"):
            try:
                code = self._run(body, streams)
            except _Break as jump:
                if jump.args[0] == "break":
                    break
        return code

    _until = _while

    def _function(self, node: Any, streams: _Streams) -> int:
        del streams
        self.state.functions[node.parts[0].word] = (self.text, node.parts[-1])
        return 0

    # Simple commands

    def _command(self, node: Any, streams: _Streams, is_condition: bool) -> int:
        expander = self._expander(streams)
        try:
            words = tuple(text for part in node.parts if part.kind == "word" for text in expander.words(self._raw(part)))
            assigned = {}
            for part in node.parts:
                if part.kind == "assignment":
                    name, _, value = self._raw(part).partition("=")
                    if name.endswith("+"):
                        name, value = name[:-1], self.state.variables.get(name[:-1], "") + expander.text(value)
                    else:
                        value = expander.text(value)
                    assigned[name] = value
        except UnboundVariable as unbound:
            streams.err += f"{PREFIX}{unbound}: unbound variable\n".encode()
            raise _Exit(FAILURE) from None
        redirects = [part for part in node.parts if part.kind == "redirect"]
        redirected = self._redirected(redirects, streams)
        if isinstance(redirected, int):
            self._stop_on_failure(redirected, is_condition=is_condition)
            return redirected
        target, finish = redirected
        try:
            if not words:
                self.state.variables.update(assigned)
                code = int(self.state.variables.pop("_substituted", "0"))
            else:
                code = self._execute(words, self._source_of(node), assigned, target)
        finally:
            finish()
        self._stop_on_failure(code, is_condition=is_condition)
        return code

    def _expander(self, streams: _Streams) -> Expander:
        def substitute(text: str) -> str:
            out = bytearray()
            line = _Line(shell=self.shell, text=text, state=self.state.copy(), steps=self.steps)
            code = line.run_text(text, _Streams(stdin=b"", out=out, err=streams.err))
            self.steps = line.steps
            self.state.variables["_substituted"] = str(code)
            return out.replace(b"\0", b"").decode(errors="surrogateescape").rstrip("\n")

        return Expander(
            files=self.shell.files,
            cwd=self.state.cwd,
            variables=self.state.variables,
            substitute=substitute,
            line=self.text,
            is_strict="u" in self.state.options,
        )

    def run_text(self, text: str, streams: _Streams) -> int:
        """Run a text as a subshell does; this line's state is its own."""
        self.text = text
        try:
            return self.run_all(_parsed(text), streams)
        except SyntaxError as error:
            streams.err += f"/usr/bin/bash: eval: line 3: syntax error near {error}\n".encode()
            return SYNTAX_ERROR
        except _Exit as end:
            return int(end.args[0])

    def _execute(self, words: tuple[str, ...], source: str, assigned: dict[str, str], streams: _Streams) -> int:
        self.shell.running_in = self.state.cwd
        answer = self.shell.answer(source, words) if self.shell.answer is not None else None
        if answer is not None:
            end = "" if not answer.output or answer.output.endswith("\n") else "\n"
            streams.out += (answer.output + end).encode(errors="surrogateescape")
            streams.err += answer.errors.encode(errors="surrogateescape")
            return answer.exit_code
        name = words[0]
        if name in self.state.functions:
            return self._call_function(name, words, streams)
        if name in BUILTINS:
            from pytest_hermes_env.sandbox.builtins import run_builtin  # noqa: PLC0415 - it runs lines, as this module does

            return run_builtin(self, words, assigned, streams)
        if name in COMMANDS:
            return self._run_program(words, assigned, streams)
        path = self.shell.files.resolve(name, self.state.cwd)
        if "/" in name and self.shell.files.is_file(path) and self.shell.files.is_executable(path):
            text = self.shell.files.read(path).decode(errors="replace")
            if re.match(r"#!\s*\S*/(env\s+)?(ba)?sh\b|(?!#!)", text):
                line = _Line(shell=self.shell, text=text, state=self.state.copy(), steps=self.steps)
                return line.run_text(text, streams)
        raise UnknownCommand(words, source)

    def _call_function(self, name: str, words: tuple[str, ...], streams: _Streams) -> int:
        text, body = self.state.functions[name]
        outer, self.text = self.text, text
        kept = {key: self.state.variables.get(key) for key in (*"123456789", "#", "@", "*")}
        arguments = {str(number): word for number, word in enumerate(words[1:10], 1)}
        self.state.variables.update({**arguments, "#": str(len(words) - 1), "@": " ".join(words[1:]), "*": " ".join(words[1:])})
        try:
            return self._run(body, streams)
        except _Exit as end:
            if len(end.args) > 1:  # return
                return int(end.args[0])
            raise
        finally:
            self.text = outer
            for key, value in kept.items():
                if value is None:
                    self.state.variables.pop(key, None)
                else:
                    self.state.variables[key] = value

    def _run_program(self, words: tuple[str, ...], assigned: dict[str, str], streams: _Streams) -> int:
        exported = {name: self.state.variables[name] for name in sorted(self.state.exported) if name in self.state.variables}
        process = Process(
            words=words,
            files=self.shell.files,
            cwd=self.state.cwd,
            variables={**exported, **assigned},
            stdin=streams.stdin,
            out=streams.out,
            err=streams.err,
        )
        try:
            return COMMANDS[words[0]](process)
        except UnsupportedOption as error:
            raise UnsupportedSyntax(self.text, str(error)) from error
        except OSError as error:
            process.complain(f"{error.filename or ''}: {reason(error)}")
            return FAILURE

    # Redirections

    def _redirected(self, redirects: list[Any], streams: _Streams) -> tuple[_Streams, Callable[[], None]] | int:
        """Return streams that lead where the redirections say, and what writes files back; or an exit code."""
        if not redirects:
            return streams, lambda: None
        files = self.shell.files
        expander = self._expander(streams)
        places: dict[int, Any] = {1: streams.out, 2: streams.err}
        stdin = streams.stdin
        opened: list[tuple[str, bytearray]] = []
        for redirect in redirects:
            kind = redirect.type
            if kind in {"<<", "<<-"}:
                stdin = self._here_document(redirect, expander)
                continue
            if kind == "<<<":
                stdin = (expander.text(self._raw(redirect.output)) + "\n").encode(errors="surrogateescape")
                continue
            if isinstance(redirect.output, int):
                places[1 if redirect.input is None else redirect.input] = places.get(redirect.output, streams.out)
                continue
            names = expander.words(self._raw(redirect.output))
            if len(names) != 1:
                streams.err += f"{PREFIX}{self._raw(redirect.output)}: ambiguous redirect\n".encode()
                return FAILURE
            name = names[0]
            try:
                if kind == "<":
                    stdin = self._opened_for_reading(name, stdin)
                    continue
                if kind not in {">", ">>", ">|", "&>", "&>>", ">&"}:
                    raise UnsupportedSyntax(self.text, f"the redirection {kind}")
                target = self._opened_for_writing(name, places, append=kind in {">>", "&>>"}, opened=opened)
            except OSError as error:
                streams.err += f"{PREFIX}{name}: {reason(error)}\n".encode(errors="surrogateescape")
                for path, data in opened:
                    files.write(path, bytes(data))
                return FAILURE
            if kind in {"&>", "&>>", ">&"}:
                places[1] = places[2] = target
            else:
                places[1 if redirect.input is None else redirect.input] = target

        def finish() -> None:
            for path, data in opened:
                if files.is_dir(files.resolve(path + "/..")):
                    files.write(path, bytes(data))

        return _Streams(stdin=stdin, out=places[1], err=places[2]), finish

    def _here_document(self, redirect: Any, expander: Expander) -> bytes:
        delimiter = self._raw(redirect.output)
        body = redirect.heredoc.value
        lines = body.split("\n")
        end = re.sub(r"['\"\\]", "", delimiter)
        strips = redirect.type == "<<-"
        lines = [line.lstrip("\t") if strips else line for line in lines]
        while lines and lines[-1] == "":
            lines.pop()
        if lines and lines[-1] == end:
            lines.pop()
        text = "".join(line + "\n" for line in lines)
        is_quoted = end != delimiter
        return (text if is_quoted else expander.here_document(text)).encode(errors="surrogateescape")

    def _opened_for_reading(self, name: str, stdin: bytes) -> bytes:
        if name in {"/dev/stdin", "/dev/fd/0"}:
            return stdin
        return b"" if name == "/dev/null" else self.shell.files.read(self.shell.files.resolve(name, self.state.cwd))

    def _opened_for_writing(
        self, name: str, places: dict[int, Any], *, append: bool, opened: list[tuple[str, bytearray]]
    ) -> bytearray:
        special = {"/dev/null": bytearray(), "/dev/stdout": places[1], "/dev/stderr": places[2], "/dev/tty": places[1]}
        if name in special:
            return special[name]  # type: ignore[no-any-return]
        files = self.shell.files
        path = files.resolve(name, self.state.cwd)
        files.write(path, b"", append=append)
        data = bytearray(files.read(path))
        opened.append((path, data))
        return data


def _nodes(trees: Any) -> Iterator[Any]:
    """Give every node of the trees, substitutions excepted: their text is checked when it runs."""
    for node in trees:
        yield node
        for name in ("parts", "list"):
            yield from _nodes([child for child in getattr(node, name, ()) if node.kind not in {"word", "assignment"}])
