"""The commands that are the shell's own: they change it, ask it about itself, or run other commands in it.

Place in the flow: `Runner.execute` looks here before it looks at the machine's programs.
"""

from __future__ import annotations

import os
import re

from pytest_hermes_env.sandbox.bash.launchers import LAUNCHERS
from pytest_hermes_env.sandbox.bash.lookup import LOOKUP, which
from pytest_hermes_env.sandbox.bash.runner import Runner
from pytest_hermes_env.sandbox.bash.saying import USAGES, Builtin, bad_option, say, unsupported
from pytest_hermes_env.sandbox.bash.state import Abandoned, Ended, Jump, Place, Returned
from pytest_hermes_env.sandbox.bash.streams import Streams
from pytest_hermes_env.sandbox.bash.variables import VARIABLES
from pytest_hermes_env.sandbox.files import HOME

__all__ = ["BUILTINS", "OWN"]


# Directories


def cd(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Change the working directory."""
    state = shell.state
    rest = list(words[1:])
    while rest and rest[0].startswith("-") and rest[0] != "-":
        option = rest.pop(0)
        if option == "--":
            break
        if option not in {"-L", "-P"}:
            return bad_option(shell, streams, "cd", option[:2])
    if len(rest) > 1:
        return say(shell, streams, "cd: too many arguments")
    if not rest and "HOME" not in state.variables:
        return say(shell, streams, "cd: HOME not set")
    target = rest[0] if rest else state.variables.get("HOME", HOME)
    shows = target == "-"
    if shows:
        if "OLDPWD" not in state.variables:
            return say(shell, streams, "cd: OLDPWD not set")
        target = state.variables["OLDPWD"]
    if target:
        found = _searched(shell, target)
        shows = shows or found is not None
        path = found or shell.path(target)
        try:
            shell.files.list_directory(path)
        except OSError as error:
            return say(shell, streams, f"cd: {target}: {os.strerror(error.errno or 0)}")
    else:
        path = state.cwd
    state.variables["OLDPWD"] = state.variables.get("PWD", state.cwd)
    state.variables["PWD"] = state.cwd = path
    state.exported |= {"OLDPWD", "PWD"}
    if shows:
        shell.write(streams, f"{path}\n")
    return 0


def _searched(shell: Runner, target: str) -> str | None:
    """Return the directory that CDPATH leads to."""
    if target.startswith(("/", "./", "../")) or target in {".", ".."}:
        return None
    for above in filter(None, shell.state.variables.get("CDPATH", "").split(":")):
        path = shell.files.resolve(f"{above}/{target}", shell.state.cwd)
        if shell.files.is_dir(path):
            return path
    return None


def pwd(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Write the working directory."""
    for word in words[1:]:
        if word.startswith("-") and word not in {"-L", "-P", "--"}:
            return bad_option(shell, streams, "pwd", word[:2])
    shell.write(streams, f"{shell.state.cwd}\n")
    return 0


# Leaving


def exit_(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """End the shell."""
    if len(words) > 1 and not re.fullmatch(r"[-+]?[0-9]+", words[1]):
        say(shell, streams, f"exit: {words[1]}: numeric argument required")
        raise Ended(2)
    if len(words) > 2:  # noqa: PLR2004 - the name and a number
        say(shell, streams, "exit: too many arguments")
        raise Abandoned
    raise Ended(int(words[1]) % 256 if len(words) > 1 else shell.state.status)


def return_(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Leave a function or a sourced file."""
    if not shell.state.scopes and not shell.state.sourced:
        return say(shell, streams, "return: can only `return' from a function or sourced script")
    if len(words) > 1 and not re.fullmatch(r"[-+]?[0-9]+", words[1]):
        say(shell, streams, f"return: {words[1]}: numeric argument required")
        raise Returned(2)
    raise Returned(int(words[1]) % 256 if len(words) > 1 else shell.state.status)


def jump(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Leave or go on with a loop."""
    if not shell.state.loops:
        return say(shell, streams, f"{words[0]}: only meaningful in a `for', `while', or `until' loop", 0)
    levels = words[1] if len(words) > 1 else "1"
    if not levels.isdigit() or not int(levels):
        raise unsupported(words)
    raise Jump(words[0], int(levels))


def exec_(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Become another command."""
    if len(words) == 1 or words[1].startswith("-"):
        raise unsupported(words)
    raise Ended(shell.execute(words[1:], " ".join(words[1:]), streams))


# Texts that run in this shell


def eval_(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Run the words as a line."""
    rest = words[2:] if words[1:2] == ("--",) else words[1:]
    text = " ".join(rest)
    before = shell.state.place.before + shell.state.line - 1 + text.count("\n")
    name = shell.state.place.name
    return shell.text(text, streams, place=Place(name=name, before=before, syntax_name=f"{name}: eval"))


def source(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Run a file in this shell."""
    if len(words) == 1:
        say(shell, streams, f"{words[0]}: filename argument required")
        shell.complain(streams, USAGES[words[0]] + "\n")
        return 2
    state, name = shell.state, words[1]
    try:
        data = shell.files.read(shell.path(name))
    except OSError as error:
        is_directory = isinstance(error, IsADirectoryError)
        told = f"{words[0]}: {name}: is a directory" if is_directory else f"{name}: {os.strerror(error.errno or 0)}"
        return say(shell, streams, told)
    arguments, state.arguments = state.arguments, words[2:] or state.arguments
    state.sourced += 1
    try:
        return shell.text(data.decode(errors="surrogateescape"), streams, place=Place(name=name))
    except Returned as returned:
        return returned.code
    finally:
        state.arguments = arguments
        state.sourced -= 1


def wait(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Wait for what runs in the background: nothing does."""
    del shell, streams
    if len(words) > 1:
        raise unsupported(words)
    return 0


def umask(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Tell the mask of new files, or set it, which changes nothing here."""
    if len(words) == 1:
        shell.write(streams, "0022\n")
    elif not re.fullmatch(r"[0-7]{1,4}", words[1]):
        raise unsupported(words)
    return 0


OWN: dict[str, Builtin] = {
    ".": source,
    "break": jump,
    "cd": cd,
    "continue": jump,
    "eval": eval_,
    "exec": exec_,
    "exit": exit_,
    "pwd": pwd,
    "return": return_,
    "source": source,
    "umask": umask,
    "wait": wait,
    **LOOKUP,
    **VARIABLES,
}
"""Name → builtin, the commands that are bash's."""

BUILTINS: dict[str, Builtin] = {**OWN, **LAUNCHERS, "which": which}
"""Name → builtin, with the programs that run other commands or ask the shell."""
