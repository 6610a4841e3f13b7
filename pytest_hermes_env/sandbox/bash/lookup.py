"""The commands that tell what a name is, or run it as what it is: command, builtin, type, which."""

from __future__ import annotations

from pytest_hermes_env.sandbox.bash.programs import IN_BASH
from pytest_hermes_env.sandbox.bash.runner import Builtin, Runner
from pytest_hermes_env.sandbox.bash.streams import Streams
from pytest_hermes_env.sandbox.commands import UnsupportedOption
from pytest_hermes_env.sandbox.commands.options import read_options

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
    return _path(shell, name)


def _path(shell: Runner, name: str) -> str:
    """Return where a program is, or nothing."""
    if "/" in name:
        path = shell.path(name)
        is_there = shell.files.is_file(path) and shell.files.is_executable(path)
        is_program = shell.program_name(name) != name and shell.is_program(shell.program_name(name))
        return name if is_there or is_program else ""
    known = shell.is_program(name) or (shell.knows is not None and shell.knows(name, (name,)))
    return f"/usr/bin/{name}" if known else ""


def command(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Run a command that is no function, or tell with ``-v`` what it is."""
    options = read_options(words, "v", runs_command=True)
    rest = options.operands
    if "v" in options:
        kinds = [_kind(shell, name) for name in rest]
        found = [kind if "/" in kind else name for name, kind in zip(rest, kinds, strict=True) if kind]
        shell.write(streams, "".join(f"{one}\n" for one in found))
        return int(not found)
    if not rest:
        return 0
    functions = shell.state.functions
    hidden = functions.pop(rest[0], None)
    try:
        return shell.execute(rest, " ".join(rest), streams)
    finally:
        if hidden is not None:
            functions.setdefault(rest[0], hidden)


def builtin_(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Run a builtin."""
    if len(words) > 1 and words[1] not in IN_BASH and not shell.is_builtin(words[1]):
        return shell.say(streams, f"builtin: {words[1]}: not a shell builtin")
    return command(shell, ("command", *words[1:]), streams)


def type_(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Tell what names are, with ``-t`` in one word."""
    options = read_options(words, "t")
    code = 0
    for name in options.operands:
        kind = _kind(shell, name)
        code = code or int(not kind)
        if "t" in options:
            shell.write(streams, f"{'file' if '/' in kind else kind}\n" if kind else "")
        elif kind == "function":
            raise UnsupportedOption("type of a function")  # bash prints its body
        elif kind:
            shell.write(streams, f"{name} is {kind if '/' in kind else f'a shell {kind}'}\n")
        else:
            shell.say(streams, f"type: {name}: not found")
    return code


def which(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Tell where programs are."""
    names = read_options(words, "").operands
    paths = [f"/usr/bin/{name}" if name in IN_BASH - {":"} else _path(shell, name) for name in names]
    shell.write(streams, "".join(f"{path}\n" for path in paths if path))
    return int(not names or not all(paths))


LOOKUP: dict[str, Builtin] = {"builtin": builtin_, "command": command, "type": type_}
"""Name → builtin."""
