"""The programs that run other commands: bash, sh, env, xargs, time, nohup, timeout, and sleep."""

from __future__ import annotations

import os
import re
import shlex

from pytest_hermes_env.sandbox.bash.programs import run_program
from pytest_hermes_env.sandbox.bash.runner import Builtin, Runner
from pytest_hermes_env.sandbox.bash.scripts import run_script, run_text
from pytest_hermes_env.sandbox.bash.state import Place
from pytest_hermes_env.sandbox.bash.streams import Source, Streams
from pytest_hermes_env.sandbox.commands import UnsupportedOption
from pytest_hermes_env.sandbox.commands.options import read_options

__all__ = ["LAUNCHERS"]

NOT_FOUND = 127
SOME_FAILED = 123
DURATION = re.compile(r"[0-9]*\.?[0-9]+[smhd]?|[0-9]+\.|inf(?:inity)?")


def _run(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Run a command whose effects on the shell do not last."""
    return shell.subshell(lambda: shell.execute(words, shlex.join(words), streams))


def _input(streams: Streams) -> bytes:
    """Return what is left of standard input; nobody can read it again."""
    source = streams[0]
    return source.take() if isinstance(source, Source) else b""


def bash(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Run a text or a file in a new shell."""
    name = words[0]
    given = read_options(words, "ceuxlfo:", {"login": "l", "noprofile": "l", "norc": "l"}, runs_command=True)
    rest = given.operands
    if set(given.all("o")) - {"pipefail"} or (rest and rest[0].startswith("+")):
        raise UnsupportedOption(" ".join(words))
    options = set(given.letters) & set("euxf") | set(given.all("o"))
    if "c" in given:
        if not rest:
            shell.complain(streams, f"{name}: -c: option requires an argument\n")
            return 2
        called = rest[1] if len(rest) > 1 else name
        place = Place(name=called, syntax_name=f"{called}: -c")
        return run_text(shell, rest[0], streams, place=place, arguments=rest[2:], options=options)
    if not rest:
        return run_script(shell, _input(streams), (name,), streams, options=options)
    try:
        data = shell.files.read(shell.path(rest[0]))
    except IsADirectoryError:
        shell.complain(streams, f"{rest[0]}: {rest[0]}: Is a directory\n")
        return 126
    except OSError as error:
        shell.complain(streams, f"{name}: {rest[0]}: {os.strerror(error.errno or 0)}\n")
        return NOT_FOUND
    if b"\0" in data[:80]:
        raise UnsupportedOption("a binary file as a script")
    return run_script(shell, data, rest, streams, options=options)


def env(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Show the variables, or run a command with others."""
    options = read_options(words, "iu:", {"ignore-environment": "i", "unset": "u:"}, runs_command=True)
    rest = list(options.operands)

    def changed() -> int:
        state = shell.state
        state.exported = set() if "i" in options else state.exported - set(options.all("u"))
        state.functions = {}
        while rest and "=" in rest[0]:
            name, _, value = rest.pop(0).partition("=")
            state.variables[name] = value
            state.exported.add(name)
        return _run(shell, tuple(rest), streams) if rest else run_program(shell, ("env",), streams)

    return shell.subshell(changed)


def xargs(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Run a command with what standard input holds as its arguments."""
    options = read_options(words, "0rn:I:P:", {"null": "0", "no-run-if-empty": "r"}, runs_command=True)
    place, size = options.get("I"), options.get("n", "0")
    if not size.isdigit():
        raise UnsupportedOption(f"xargs -n {size}")
    text = _input(streams).decode(errors="surrogateescape")
    items = _items(text, is_nul="0" in options, by_line=bool(place))
    command = options.operands or ("echo",)
    most = int(size) or len(items)
    if place:
        lines = [tuple(word.replace(place, item) for word in command) for item in items]
    elif items:
        lines = [(*command, *items[at : at + most]) for at in range(0, len(items), most)]
    else:
        lines = [] if "r" in options else [command]
    codes = [_run(shell, line, {**streams, 0: Source()}) for line in lines]
    return SOME_FAILED if any(codes) else 0


def _items(text: str, *, is_nul: bool, by_line: bool) -> list[str]:
    if is_nul:
        return text.removesuffix("\0").split("\0") if text else []
    if by_line:
        return [line.lstrip(" \t") for line in text.split("\n") if line.strip(" \t")]
    splitter = shlex.shlex(text, posix=True, punctuation_chars=False)
    splitter.whitespace_split, splitter.commenters, splitter.whitespace = True, "", " \t\n"
    try:
        return list(splitter)
    except ValueError:
        raise UnsupportedOption("an unclosed quote in the input of xargs") from None


def time(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Run a command and tell how long it took: no time passes on this machine."""
    rest = read_options(words, "", runs_command=True).operands
    code = shell.execute(rest, shlex.join(rest), streams) if rest else 0
    shell.complain(streams, "\nreal\t0m0.000s\nuser\t0m0.000s\nsys\t0m0.000s\n")
    return code


def nohup(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Run a command; there is no terminal that could hang up."""
    rest = read_options(words, "", runs_command=True).operands
    if not rest:
        raise UnsupportedOption("nohup without a command")
    return _run(shell, rest, streams)


def timeout(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Run a command; no time passes on this machine."""
    rest = read_options(words, "k:s:", {"kill-after": "k:", "signal": "s:"}, runs_command=True).operands
    if len(rest) < 2 or not DURATION.fullmatch(rest[0]):  # noqa: PLR2004 - the time and the command
        raise UnsupportedOption(" ".join(words))
    return _run(shell, rest[1:], streams)


def sleep(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Return at once: no time passes on this machine."""
    if len(words) == 1:
        raise UnsupportedOption("sleep without a time")
    for word in words[1:]:
        if not DURATION.fullmatch(word):
            shell.complain(streams, f"sleep: invalid time interval '{word}'\nTry 'sleep --help' for more information.\n")
            return 1
    return 0


LAUNCHERS: dict[str, Builtin] = {
    "bash": bash,
    "env": env,
    "nohup": nohup,
    "sh": bash,
    "sleep": sleep,
    "time": time,
    "timeout": timeout,
    "xargs": xargs,
}
"""Name → program."""
