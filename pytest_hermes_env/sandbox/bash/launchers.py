"""The programs that run other commands: bash, sh, env, xargs, time, nohup, timeout, and sleep."""

from __future__ import annotations

import os
import re
import shlex

from pytest_hermes_env.errors import UnsupportedSyntax
from pytest_hermes_env.sandbox.bash.programs import run_program
from pytest_hermes_env.sandbox.bash.runner import Runner
from pytest_hermes_env.sandbox.bash.saying import Builtin, unsupported
from pytest_hermes_env.sandbox.bash.scripts import run_script, run_text
from pytest_hermes_env.sandbox.bash.state import Place
from pytest_hermes_env.sandbox.bash.streams import Source, Streams

__all__ = ["LAUNCHERS"]

NOT_FOUND = 127
SOME_FAILED = 123
DURATION = re.compile(r"[0-9]*\.?[0-9]+[smhd]?|[0-9]+\.|inf(?:inity)?")


def _run(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    return shell.execute(words, shlex.join(words), streams)


def bash(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Run a text or a file in a new shell."""
    name = words[0]
    rest = list(words[1:])
    options: set[str] = set()
    takes_text = False
    while rest and rest[0][:1] in {"-", "+"} and len(rest[0]) > 1:
        word = rest.pop(0)
        if word == "--":
            break
        if word in {"-o", "-eo", "-euo", "-ceo"} and rest[:1] == ["pipefail"]:
            options |= {rest.pop(0), *word[1:-1]} - {"c"}
            continue
        if word in {"--login", "--noprofile", "--norc", "--posix"}:
            continue
        if word[0] == "+" or set(word[1:]) - set("ceuxlf"):
            raise unsupported(words)
        takes_text = takes_text or "c" in word
        options |= set(word[1:]) & set("euxf")
    if takes_text:
        if not rest:
            shell.complain(streams, f"{name}: -c: option requires an argument\n")
            return 2
        called = rest[1] if len(rest) > 1 else name
        place = Place(name=called, syntax_name=f"{called}: -c")
        return run_text(shell, rest[0], streams, place=place, arguments=tuple(rest[2:]), options=options)
    if not rest:
        source = streams[0]
        data = source.rest if isinstance(source, Source) else b""
        if isinstance(source, Source):
            source.at = len(source.data)
        return run_script(shell, data, (name,), streams, options=options)
    try:
        data = shell.files.read(shell.path(rest[0]))
    except IsADirectoryError:
        shell.complain(streams, f"{rest[0]}: {rest[0]}: Is a directory\n")
        return 126
    except OSError as error:
        shell.complain(streams, f"{name}: {rest[0]}: {os.strerror(error.errno or 0)}\n")
        return NOT_FOUND
    if b"\0" in data[:80]:
        shell.complain(streams, f"{rest[0]}: {rest[0]}: cannot execute binary file\n")
        return 126
    return run_script(shell, data, tuple(rest), streams, options=options)


def env(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Show the variables, or run a command with others."""
    state = shell.state
    rest = list(words[1:])
    kept = (dict(state.variables), set(state.exported))
    try:
        while rest and rest[0].startswith("-"):
            option = rest.pop(0)
            if option in {"-i", "-", "--ignore-environment"}:
                state.exported = set()
            elif option == "-u" and rest:
                state.exported.discard(rest.pop(0))
            elif option == "--":
                break
            else:
                raise unsupported(words)
        while rest and "=" in rest[0]:
            name, _, value = rest.pop(0).partition("=")
            state.variables[name] = value
            state.exported.add(name)
        if not rest:
            return run_program(shell, ("env",), streams)
        functions, state.functions = state.functions, {}
        try:
            return shell.subshell(lambda: _run(shell, tuple(rest), streams))
        finally:
            state.functions = functions
    finally:
        state.variables, state.exported = kept


def xargs(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Run a command with what standard input holds as its arguments."""
    rest = list(words[1:])
    is_nul, size, place, needs_input = False, 0, "", False
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        option = rest.pop(0)
        if option in {"-0", "--null"}:
            is_nul = True
        elif option in {"-r", "--no-run-if-empty"}:
            needs_input = True
        elif option in {"-0r", "-r0"}:
            is_nul = needs_input = True
        elif option in {"-n", "-L"} and rest and rest[0].isdigit() and option == "-n":
            size = int(rest.pop(0))
        elif re.fullmatch(r"-n[0-9]+", option):
            size = int(option[2:])
        elif option == "-I" and rest:
            place = rest.pop(0)
        elif option.startswith("-I"):
            place = option[2:]
        elif option == "-P" and rest:
            rest.pop(0)
        elif option == "--":
            break
        else:
            raise unsupported(words)
    source = streams[0]
    if not isinstance(source, Source):
        raise unsupported(words)
    text = source.rest.decode(errors="surrogateescape")
    source.at = len(source.data)
    items = _items(text, words, is_nul=is_nul, by_line=bool(place))
    command = tuple(rest) or ("echo",)
    if place:
        lines = [tuple(word.replace(place, item) for word in command) for item in items]
    elif not items:
        lines = [] if needs_input else [command]
    else:
        lines = [(*command, *items[at : at + (size or len(items))]) for at in range(0, len(items), size or len(items))]
    inner: Streams = {**streams, 0: Source()}
    failed = False
    for line in lines:
        failed = bool(shell.subshell(lambda one=line: _run(shell, one, inner))) or failed  # type: ignore[misc]
    return SOME_FAILED if failed else 0


def _items(text: str, words: tuple[str, ...], *, is_nul: bool, by_line: bool) -> list[str]:
    if is_nul:
        return text.removesuffix("\0").split("\0") if text else []
    if by_line:
        return [line.lstrip(" \t") for line in text.split("\n") if line.strip(" \t")]
    try:
        splitter = shlex.shlex(text, posix=True, punctuation_chars=False)
        splitter.whitespace_split, splitter.commenters = True, ""
        splitter.whitespace = " \t\n"
        return list(splitter)
    except ValueError:
        raise UnsupportedSyntax(" ".join(words), "an unclosed quote in the input of xargs") from None


def time(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Run a command and tell how long it took: no time passes on this machine."""
    rest = words[1:]
    if rest[:1] == ("-p",):
        rest = rest[1:]
        told = "real 0.00\nuser 0.00\nsys 0.00\n"
    else:
        told = "\nreal\t0m0.000s\nuser\t0m0.000s\nsys\t0m0.000s\n"
    code = _run(shell, rest, streams) if rest else 0
    shell.complain(streams, told)
    return code


def nohup(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Run a command; there is no terminal that could hang up."""
    if len(words) == 1 or words[1].startswith("-"):
        raise unsupported(words)
    return shell.subshell(lambda: _run(shell, words[1:], streams))


def timeout(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Run a command; no time passes on this machine."""
    rest = list(words[1:])
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in {"-k", "-s"} and rest:
            rest.pop(0)
        elif not re.fullmatch(r"-[ks].+|--(?:kill-after|signal)=.+|--foreground|--preserve-status|-v", option):
            raise unsupported(words)
    if len(rest) < 2 or not DURATION.fullmatch(rest[0]):  # noqa: PLR2004 - the time and the command
        raise unsupported(words)
    return shell.subshell(lambda: _run(shell, tuple(rest[1:]), streams))


def sleep(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Return at once: no time passes on this machine."""
    if len(words) == 1:
        shell.complain(streams, "sleep: missing operand\nTry 'sleep --help' for more information.\n")
        return 1
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
