"""The commands that tell what a name is, or run it as what it is: command, builtin, type, which."""

from __future__ import annotations

from pytest_hermes_env.sandbox.bash.programs import IN_BASH
from pytest_hermes_env.sandbox.bash.runner import Runner
from pytest_hermes_env.sandbox.bash.saying import Builtin, say, unsupported
from pytest_hermes_env.sandbox.bash.streams import Streams

__all__ = ["LOOKUP", "which"]

KEYWORDS = frozenset(
    {"if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "function", "select"}
    | {"time", "{", "}", "!", "[[", "]]", "coproc"}
)


def _kind(shell: Runner, name: str) -> str:
    """Return what a name is: keyword, function, builtin, the path of a program, or nothing."""
    if name in KEYWORDS:
        return "keyword"
    if name in shell.state.functions:
        return "function"
    if name in IN_BASH or shell.is_builtin(name):
        return "builtin"
    return path_of(shell, name)


def path_of(shell: Runner, name: str) -> str:
    """Return where a program is, or nothing."""
    if "/" in name:
        path = shell.path(name)
        is_there = shell.files.is_file(path) and shell.files.is_executable(path)
        is_program = shell.program_name(name) != name and shell.is_program(shell.program_name(name))
        return name if is_there or is_program else ""
    known = shell.is_program(name) or (shell.knows is not None and shell.knows(name, (name,)))
    return f"/usr/bin/{name}" if known else ""


def command(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Run a command, or tell with ``-v`` what it is."""
    rest = list(words[1:])
    if rest[:1] in (["-v"], ["-V"]):
        if rest[0] == "-V":
            return type_(shell, ("type", *rest[1:]), streams)
        found = [(name, _kind(shell, name)) for name in rest[1:]]
        for name, kind in found:
            if kind:
                shell.write(streams, f"{kind if '/' in kind else name}\n")
        return int(not any(kind for _, kind in found))
    while rest[:1] in (["-p"], ["--"]):
        rest.pop(0)
    if not rest:
        return 0
    if rest[0].startswith("-"):
        raise unsupported(words)
    functions = shell.state.functions
    hidden = functions.pop(rest[0], None)
    try:
        return shell.execute(tuple(rest), " ".join(rest), streams)
    finally:
        if hidden is not None:
            functions.setdefault(rest[0], hidden)


def builtin_(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Run a builtin."""
    if len(words) == 1:
        return 0
    if words[1] not in IN_BASH and not shell.is_builtin(words[1]):
        return say(shell, streams, f"builtin: {words[1]}: not a shell builtin")
    return command(shell, ("command", *words[1:]), streams)


def type_(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Tell what names are."""
    rest = list(words[1:])
    option = rest.pop(0) if rest and rest[0].startswith("-") else ""
    if option not in {"", "-t", "-p", "-P"}:
        raise unsupported(words)
    code = 0
    for name in rest:
        kind = _kind(shell, name)
        if option == "-t":
            shell.write(streams, f"{'file' if '/' in kind else kind}\n" if kind else "")
        elif option:
            found = path_of(shell, name) if option == "-P" or "/" in kind else ""
            shell.write(streams, f"{found}\n" if found else "")
            kind = kind if option == "-p" else found
        elif "/" in kind:
            shell.write(streams, f"{name} is {kind}\n")
        elif kind == "function":
            raise unsupported(words)  # bash prints its body
        elif kind:
            shell.write(streams, f"{name} is a shell {kind}\n")
        else:
            say(shell, streams, f"type: {name}: not found")
        code = code or int(not kind)
    return code


def which(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Tell where programs are."""
    names = [word for word in words[1:] if word != "-a"]
    if any(name.startswith("-") for name in names):
        raise unsupported(words)
    code = int(not names)
    for name in names:
        path = f"/usr/bin/{name}" if name in IN_BASH - {":"} else path_of(shell, name)
        shell.write(streams, f"{path}\n" if path else "")
        code = code or int(not path)
    return code


LOOKUP: dict[str, Builtin] = {"builtin": builtin_, "command": command, "type": type_}
"""Name → builtin."""
