"""Bash's own commands.

Source: bash 5.2, builtins.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from pytest_hermes_env.sandbox.bash.conditions import test
from pytest_hermes_env.sandbox.bash.printing import echo, printf
from pytest_hermes_env.sandbox.bash.state import Ended, Jump
from pytest_hermes_env.sandbox.bash.words import COMPUTED
from pytest_hermes_env.sandbox.commands.process import Process, Program
from pytest_hermes_env.sandbox.not_exact import NotExact

__all__ = ["BUILTINS", "DECLARING", "OTHER_BUILTINS"]

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DECLARING = frozenset({"export"})
"""Builtins whose arguments may be assignments, which are not split."""
OTHER_BUILTINS = re.compile(
    r"\.|source|alias|bg|bind|builtin|caller|command|compgen|complete|compopt|declare|dirs|disown|enable|eval|exec|fc|fg|getopts|hash|help|"
    r"history|jobs|kill|let|local|logout|mapfile|popd|pushd|readarray|readonly|return|set|shift|shopt|suspend|times|trap|type|typeset|"
    r"ulimit|umask|unalias|wait"
)
"""Builtins that only real bash runs."""


def cd(process: Process) -> int:
    """Change the working directory."""
    state, disk = process.state, process.disk
    words = list(process.arguments)
    if words[:1] == ["--"]:
        words.pop(0)
    elif words and re.match(r"-.", words[0]):
        raise NotExact(f"cd {words[0]}")
    if len(words) > 1:
        return process.fail("too many arguments")
    target = words[0] if words else state.variables.get("HOME", "")
    shows = target == "-"
    if shows:
        target = state.variables.get("OLDPWD", "")
    if not target or state.variables.get("CDPATH"):
        raise NotExact("cd without a directory")
    try:
        path = disk.path(target)
        if not disk.files.is_dir(path):
            disk.files.list_directory(path)
    except OSError as error:
        return process.fail(f"{target}: {os.strerror(error.errno or 0)}")
    disk.reads.add(path)
    state.variables["OLDPWD"] = state.variables.get("PWD", state.cwd)
    state.variables["PWD"] = state.cwd = disk.cwd = path
    state.exported |= {"OLDPWD", "PWD"}
    if shows:
        process.write(f"{path}\n")
    return 0


def pwd(process: Process) -> int:
    """Write the working directory."""
    if process.arguments:
        raise NotExact("pwd with arguments")
    process.write(f"{process.state.cwd}\n")
    return 0


def export(process: Process) -> int:
    """Export variables."""
    if not process.arguments:
        raise NotExact("export without a name")
    for word in process.arguments:
        name, equals, value = word.partition("=")
        _check_name(name)
        if equals:
            process.state.assign(name, value)
        process.state.exported.add(name)
    return 0


def unset(process: Process) -> int:
    """Forget variables."""
    for name in process.arguments:
        _check_name(name)
        process.state.variables.pop(name, None)
        process.state.exported.discard(name)
    return 0


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name) or COMPUTED.fullmatch(name) or name in {"PWD", "OLDPWD"}:
        raise NotExact(f"the variable {name}")


def read(process: Process) -> int:
    """Read a line into variables."""
    options = process.options("r", runs_command=True)
    names = options.operands
    data, has_end = process.streams.source.line()
    if not names or b"\0" in data or (b"\\" in data and "r" not in options):
        raise NotExact("this read")
    text = data.decode(errors="surrogateescape")
    if "IFS" in process.state.variables:
        values = [text]
    else:
        values = re.split(r"[ \t]+", text.strip(" \t"), maxsplit=len(names) - 1) if len(names) > 1 else [text.strip(" \t")]
        if re.search(r"[\r\v\f\x1c-\x1f]", text):
            raise NotExact("this read")
    for number, name in enumerate(names):
        _check_name(name)
        process.state.assign(name, values[number] if number < len(values) else "")
    return int(not has_end)


def exit_(process: Process) -> int:
    """End the shell."""
    raise Ended(_number(process.arguments, process.state.status) % 256)


def jump(process: Process) -> int:
    """Leave a loop, or go on with it."""
    levels = _number(process.arguments, 1)
    if not 0 < levels <= process.state.loops:
        raise NotExact(f"{process.name} out of a loop")
    raise Jump(is_break=process.name == "break", levels=levels)


def _number(words: Sequence[str], default: int) -> int:
    if not words:
        return default
    if len(words) > 1 or not re.fullmatch(r"[0-9]{1,9}", words[0]):
        raise NotExact("this number")
    return int(words[0])


BUILTINS: dict[str, Program] = {
    ":": lambda _: 0,
    "[": test,
    "break": jump,
    "cd": cd,
    "continue": jump,
    "echo": echo,
    "exit": exit_,
    "export": export,
    "false": lambda _: 1,
    "printf": printf,
    "pwd": pwd,
    "read": read,
    "test": test,
    "true": lambda _: 0,
    "unset": unset,
}
"""Name → builtin."""
