"""The commands that are the shell's own: they change it, ask it about itself, or run other commands in it.

Place in the flow: `Runner.execute` looks here before it looks at the machine's programs.
"""

from __future__ import annotations

import os
import re

from pytest_hermes_env.sandbox.bash.launchers import LAUNCHERS
from pytest_hermes_env.sandbox.bash.lookup import LOOKUP, which
from pytest_hermes_env.sandbox.bash.programs import run_program
from pytest_hermes_env.sandbox.bash.runner import Builtin, Runner
from pytest_hermes_env.sandbox.bash.state import Abandoned, Ended, Jump, Place, Returned
from pytest_hermes_env.sandbox.bash.streams import Streams
from pytest_hermes_env.sandbox.bash.variables import VARIABLES, invalid_option
from pytest_hermes_env.sandbox.commands import COMMANDS, UnsupportedOption
from pytest_hermes_env.sandbox.files import HOME

__all__ = ["BUILTINS", "PROGRAMS"]


# Directories


def cd(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Change the working directory."""
    state = shell.state
    rest = words[2:] if words[1:2] == ("--",) else words[1:]
    if rest and re.match("-.", rest[0]):
        return invalid_option(shell, streams, "cd", rest[0][:2], "LPe@", "[-L|[-P [-e]] [-@]] [dir]")
    if len(rest) > 1:
        return shell.say(streams, "cd: too many arguments")
    if not rest and "HOME" not in state.variables:
        return shell.say(streams, "cd: HOME not set")
    target = rest[0] if rest else state.variables.get("HOME", HOME)
    shows = target == "-"
    if shows:
        if "OLDPWD" not in state.variables:
            return shell.say(streams, "cd: OLDPWD not set")
        target = state.variables["OLDPWD"]
    if target:
        found = _searched(shell, target)
        shows = shows or found is not None
        path = found or shell.path(target)
        try:
            shell.files.list_directory(path)
        except OSError as error:
            return shell.say(streams, f"cd: {target}: {os.strerror(error.errno or 0)}")
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
    if len(words) > 1 and re.match("-.", words[1]):
        return invalid_option(shell, streams, "pwd", words[1][:2], "LP-", "[-LP]")
    shell.write(streams, f"{shell.state.cwd}\n")
    return 0


# Leaving


def _status(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Return the exit code that ``exit`` or ``return`` is given."""
    if len(words) == 1:
        return shell.state.status
    if re.fullmatch(r"[-+]?[0-9]+", words[1]):
        return int(words[1]) % 256
    return shell.say(streams, f"{words[0]}: {words[1]}: numeric argument required", 2)


def exit_(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """End the shell."""
    code = _status(shell, words, streams)
    if len(words) > 2:  # noqa: PLR2004 - the name and a number
        shell.say(streams, "exit: too many arguments")
        raise Abandoned
    raise Ended(code)


def return_(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Leave a function or a sourced file."""
    if not shell.state.scopes and not shell.state.sourced:
        return shell.say(streams, "return: can only `return' from a function or sourced script")
    raise Returned(_status(shell, words, streams))


def jump(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Leave or go on with a loop."""
    if not shell.state.loops:
        return shell.say(streams, f"{words[0]}: only meaningful in a `for', `while', or `until' loop", 0)
    levels = words[1] if len(words) > 1 else "1"
    if not levels.isdigit() or not int(levels):
        raise UnsupportedOption(" ".join(words[:2]))
    raise Jump(words[0], int(levels))


def exec_(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Become another command."""
    if len(words) == 1 or words[1].startswith("-"):
        raise UnsupportedOption(" ".join(words[:2]))
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
        shell.say(streams, f"{words[0]}: filename argument required")
        shell.complain(streams, f"{words[0]}: usage: {words[0]} filename [arguments]\n")
        return 2
    state, name = shell.state, words[1]
    try:
        data = shell.files.read(shell.path(name))
    except OSError as error:
        is_directory = isinstance(error, IsADirectoryError)
        told = f"{words[0]}: {name}: is a directory" if is_directory else f"{name}: {os.strerror(error.errno or 0)}"
        return shell.say(streams, told)
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
        raise UnsupportedOption(" ".join(words[:2]))
    return 0


def umask(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Tell the mask of new files, or set it, which changes nothing here."""
    if len(words) == 1:
        shell.write(streams, "0022\n")
    elif not re.fullmatch(r"[0-7]{1,4}", words[1]):
        raise UnsupportedOption(" ".join(words[:2]))
    return 0


BUILTINS: dict[str, Builtin] = {
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

PROGRAMS: dict[str, Builtin] = {**dict.fromkeys(COMMANDS, run_program), **LAUNCHERS, "which": which}
"""Name → program, also of those that run other commands or ask the shell."""
