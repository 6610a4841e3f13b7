"""The commands of the in-memory shell that change the shell itself, or run other commands."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from pytest_hermes_env.errors import UnsupportedSyntax
from pytest_hermes_env.sandbox.commands import COMMANDS
from pytest_hermes_env.sandbox.commands.inputs import reason
from pytest_hermes_env.sandbox.files import HOME

if TYPE_CHECKING:
    from pytest_hermes_env.sandbox.shell import _Line, _Streams

__all__ = ["run_builtin"]

OPTIONS = frozenset("eux")


def run_builtin(line: _Line, words: tuple[str, ...], assigned: dict[str, str], streams: _Streams) -> int:
    """Run one builtin and return its exit code. Raises: what this shell does not know of it → UnsupportedSyntax."""
    name, arguments = words[0], list(words[1:])
    if name in {"exit", "return"}:
        return _leave(line, name, arguments)
    if name in {"break", "continue"}:
        from pytest_hermes_env.sandbox.shell import _Break  # noqa: PLC0415

        raise _Break(name)
    if name in {"sleep", "wait"}:
        return 0
    runner = {
        "cd": _cd,
        "pwd": _pwd,
        "export": _export,
        "declare": _export,
        "readonly": _export,
        "local": _export,
        "unset": _unset,
        "set": _set,
        "read": _read,
        "eval": _eval,
        "source": _source,
        ".": _source,
        "command": _command,
        "type": _type,
        "which": _which,
        "bash": _bash,
        "sh": _bash,
        "xargs": _xargs,
    }.get(name)
    if runner is not None:
        return runner(line, name, arguments, streams)
    if name in {"env", "time"} and arguments:
        return _with_variables(line, arguments, assigned, streams)
    if name == "env":
        return line._run_program(words, assigned, streams)  # noqa: SLF001
    raise UnsupportedSyntax(line.text, name)


def _leave(line: _Line, name: str, arguments: list[str]) -> int:
    from pytest_hermes_env.sandbox.shell import _Exit  # noqa: PLC0415

    code = (
        int(arguments[0]) % 256 if arguments and arguments[0].lstrip("-").isdigit() else int(line.state.variables.get("?", "0"))
    )
    raise _Exit(code, "return") if name == "return" else _Exit(code)


def _complain(line: _Line, streams: _Streams, text: str) -> int:
    from pytest_hermes_env.sandbox.shell import PREFIX  # noqa: PLC0415

    del line
    streams.err += f"{PREFIX}{text}\n".encode(errors="surrogateescape")
    return 1


def _cd(line: _Line, name: str, arguments: list[str], streams: _Streams) -> int:
    del name
    words = [word for word in arguments if word not in {"--", "-P", "-L"}]
    state = line.state
    target = words[0] if words else state.variables.get("HOME", HOME)
    if len(words) > 1:
        return _complain(line, streams, "cd: too many arguments")
    if target == "-":
        target = state.before or state.cwd
        streams.out += f"{target}\n".encode()
    path = line.shell.files.resolve(target or ".", state.cwd)
    try:
        line.shell.files.list_directory(path)
    except OSError as error:
        return _complain(line, streams, f"cd: {target}: {reason(error)}")
    state.before, state.cwd = state.cwd, path
    state.variables["OLDPWD"], state.variables["PWD"] = state.before, path
    return 0


def _pwd(line: _Line, name: str, arguments: list[str], streams: _Streams) -> int:
    del name, arguments
    streams.out += f"{line.state.cwd}\n".encode(errors="surrogateescape")
    return 0


def _export(line: _Line, name: str, arguments: list[str], streams: _Streams) -> int:
    words = [word for word in arguments if not word.startswith("-")]
    if len(words) < len(arguments) and name != "declare" and arguments[0] != "-p":
        raise UnsupportedSyntax(line.text, f"{name} {arguments[0]}")
    if not words:
        shown = sorted(line.state.exported & line.state.variables.keys())
        streams.out += "".join(f'declare -x {one}="{line.state.variables[one]}"\n' for one in shown).encode()
        return 0
    for word in words:
        variable, equals, value = word.partition("=")
        if not variable.isidentifier():
            return _complain(line, streams, f"{name}: `{word}': not a valid identifier")
        if equals:
            line.state.variables[variable] = value
        if name == "export":
            line.state.exported.add(variable)
    return 0


def _unset(line: _Line, name: str, arguments: list[str], streams: _Streams) -> int:
    del name, streams
    for word in arguments:
        if word.startswith("-"):
            continue
        line.state.variables.pop(word, None)
        line.state.functions.pop(word, None)
        line.state.exported.discard(word)
    return 0


def _set(line: _Line, name: str, arguments: list[str], streams: _Streams) -> int:
    del streams
    words = list(arguments)
    while words:
        word = words.pop(0)
        if word in {"-o", "+o"} and words:
            option = {"errexit": "e", "nounset": "u", "xtrace": "x", "pipefail": "pipefail"}.get(words[0])
            letters = [option] if option else []
            unknown = words.pop(0) if option is None else ""
            words = words if unknown else words[1:]
        else:
            letters = list(word[1:])
            unknown = "" if word[:1] in {"-", "+"} and set(letters) <= OPTIONS | {"o"} else word
            if "o" in letters:
                letters.remove("o")
                words.insert(0, f"{word[0]}o")
        if unknown or "x" in letters:
            raise UnsupportedSyntax(line.text, f"{name} {unknown or word}")
        (line.state.options.update if word[0] == "-" else line.state.options.difference_update)(letters)
    return 0


def _read(line: _Line, name: str, arguments: list[str], streams: _Streams) -> int:
    words = [word for word in arguments if word != "-r"]
    if any(word.startswith("-") for word in words):
        raise UnsupportedSyntax(line.text, f"{name} {' '.join(arguments)}")
    first, found, rest = streams.stdin.partition(b"\n")
    streams.stdin = rest
    values = first.decode(errors="surrogateescape").strip().split(None, max(len(words) - 1, 0))
    for number, word in enumerate(words or ["REPLY"]):
        line.state.variables[word] = values[number] if number < len(values) else ""
    return 0 if found else 1


def _run_text(line: _Line, text: str, streams: _Streams, *, shares_state: bool) -> int:
    from pytest_hermes_env.sandbox.shell import SYNTAX_ERROR, _Line, _parsed  # noqa: PLC0415

    inner = _Line(shell=line.shell, text=text, state=line.state if shares_state else line.state.copy(), steps=line.steps)
    if not shares_state:
        return inner.run_text(text, streams)
    try:
        return inner.run_all(_parsed(text), streams)
    except SyntaxError as error:
        _complain(line, streams, f"syntax error near {error}")
        return SYNTAX_ERROR


def _eval(line: _Line, name: str, arguments: list[str], streams: _Streams) -> int:
    del name
    return _run_text(line, " ".join(arguments), streams, shares_state=True)


def _source(line: _Line, name: str, arguments: list[str], streams: _Streams) -> int:
    if not arguments:
        return _complain(line, streams, f"{name}: filename argument required")
    try:
        data = line.shell.files.read(line.shell.files.resolve(arguments[0], line.state.cwd))
    except OSError as error:
        return _complain(line, streams, f"{arguments[0]}: {reason(error)}")
    return _run_text(line, data.decode(errors="replace"), streams, shares_state=True)


def _is_there(line: _Line, name: str) -> str:
    """Return what a name is: a function, a builtin, a command at a path, or nothing."""
    from pytest_hermes_env.sandbox.shell import BUILTINS  # noqa: PLC0415

    if name in line.state.functions:
        return "function"
    if name in {"echo", "printf", "test", "[", "true", "false", ":"} or name in BUILTINS - {
        "bash",
        "sh",
        "env",
        "which",
        "xargs",
        "sleep",
    }:
        return "builtin"
    known = name in COMMANDS or name in BUILTINS
    if known or (line.shell.knows is not None and line.shell.knows(name, (name,))):
        return f"/usr/bin/{name}"
    return ""


def _command(line: _Line, name: str, arguments: list[str], streams: _Streams) -> int:
    if arguments[:1] == ["-v"]:
        code = 1
        for word in arguments[1:]:
            found = _is_there(line, word)
            if found:
                streams.out += f"{found if found.startswith('/') else word}\n".encode()
                code = 0
        return code
    if not arguments or arguments[0].startswith("-"):
        raise UnsupportedSyntax(line.text, f"{name} {' '.join(arguments)}")
    return line._execute(tuple(arguments), shlex.join(arguments), {}, streams)  # noqa: SLF001


def _type(line: _Line, name: str, arguments: list[str], streams: _Streams) -> int:
    code = 0
    for word in arguments:
        found = _is_there(line, word)
        if not found:
            code = _complain(line, streams, f"{name}: {word}: not found")
        elif found.startswith("/"):
            streams.out += f"{word} is {found}\n".encode()
        else:
            streams.out += f"{word} is a {'shell ' if found == 'builtin' else ''}{found}\n".encode()
    return code


def _which(line: _Line, name: str, arguments: list[str], streams: _Streams) -> int:
    del name
    found = [_is_there(line, word) for word in arguments]
    paths = [
        place if place.startswith("/") else f"/usr/bin/{word}" for word, place in zip(arguments, found, strict=True) if place
    ]
    streams.out += "".join(f"{path}\n" for path in paths).encode()
    return 0 if all(found) and arguments else 1


def _bash(line: _Line, name: str, arguments: list[str], streams: _Streams) -> int:
    words = list(arguments)
    while words and words[0] in {"-e", "-l", "-lc", "-ec"}:
        word = words.pop(0)
        if word.endswith("c"):
            words.insert(0, "-c")
    if words[:1] == ["-c"] and len(words) > 1:
        return _run_text(line, words[1], streams, shares_state=False)
    if words and not words[0].startswith("-"):
        try:
            data = line.shell.files.read(line.shell.files.resolve(words[0], line.state.cwd))
        except OSError as error:
            streams.err += f"{name}: {words[0]}: {reason(error)}\n".encode(errors="surrogateescape")
            return 127
        return _run_text(line, data.decode(errors="replace"), streams, shares_state=False)
    if not words and streams.stdin:
        return _run_text(line, streams.stdin.decode(errors="replace"), streams, shares_state=False)
    raise UnsupportedSyntax(line.text, f"{name} {' '.join(arguments)}")


def _xargs(line: _Line, name: str, arguments: list[str], streams: _Streams) -> int:
    words = list(arguments)
    is_nul, size, place = False, 0, ""
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word == "-0":
            is_nul = True
        elif word == "-n" and words:
            size = int(words.pop(0))
        elif word == "-I" and words:
            place, size = words.pop(0), 1
        elif word not in {"-r", "-t"} or word == "-t":
            raise UnsupportedSyntax(line.text, f"{name} {word}")
    text = streams.stdin.decode(errors="surrogateescape")
    items = [item for item in text.split("\0") if item] if is_nul else text.splitlines() if place else shlex.split(text)
    command = words or ["echo"]
    batches = [items[at : at + size] for at in range(0, len(items), size)] if size else [items]
    code = 0
    for batch in batches:
        whole = [word.replace(place, batch[0]) for word in command] if place else [*command, *batch]
        inner = type(streams)(stdin=b"", out=streams.out, err=streams.err)
        code = (line._execute(tuple(whole), shlex.join(whole), {}, inner) and 123) or code  # noqa: SLF001
    return code


def _with_variables(line: _Line, arguments: list[str], assigned: dict[str, str], streams: _Streams) -> int:
    words = list(arguments)
    given = dict(assigned)
    while words and "=" in words[0] and words[0].partition("=")[0].isidentifier():
        variable, _, value = words.pop(0).partition("=")
        given[variable] = value
    if not words or words[0].startswith("-"):
        raise UnsupportedSyntax(line.text, f"env {' '.join(arguments)}")
    return line._execute(tuple(words), shlex.join(words), given, streams)  # noqa: SLF001
