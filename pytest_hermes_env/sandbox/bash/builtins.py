"""Bash's own commands.

Source: bash 5.2, builtins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_hermes_env.sandbox.bash.commands.disk import Disk
from pytest_hermes_env.sandbox.bash.commands.process import Process, Program
from pytest_hermes_env.sandbox.bash.state import Ended, NotExact
from pytest_hermes_env.sandbox.bash.words import NAME, checked_name

__all__ = ["BUILTINS"]

ESCAPE = re.compile(r"\\(.|$)", re.DOTALL)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}
NUMBER = re.compile(r"-?[1-9][0-9]{0,17}|0")
COMPARISONS = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"]
EQUALITIES = ["=", "==", "!="]


def cd(process: Process) -> int:
    """Change the working directory."""
    state, disk = process.state, process.disk
    words = process.arguments[process.arguments[:1] == ["--"] :]
    target = words[0] if words else state.variables.get("HOME", "")
    if len(words) > 1 or not target or target[0] == "-" or state.variables.get("CDPATH"):
        raise NotExact("this cd")
    try:
        path = disk.path(target)
        if not disk.files.is_dir(path):
            disk.files.list_directory(path)
    except OSError as error:
        process.streams.error.write(state.message(f"cd: {target}", error))
        return 1
    state.variables["OLDPWD"] = state.variables.get("PWD", state.cwd)
    state.variables["PWD"] = state.cwd = disk.cwd = path
    state.exported |= {"OLDPWD", "PWD"}
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
        if not re.fullmatch(NAME, name) or checked_name(name) in {"PWD", "OLDPWD"}:
            raise NotExact(f"the variable {name}")
        if equals:
            process.state.assign(name, value)
        process.state.exported.add(name)
    return 0


def exit_(process: Process) -> int:
    """End the shell."""
    words = process.arguments
    if len(words) > 1 or not all(re.fullmatch(r"[0-9]{1,9}", word) for word in words):
        raise NotExact("this exit")
    raise Ended(int(words[0]) % 256 if words else process.state.status)


def echo(process: Process) -> int:
    """Write the words; ``-n`` without a line break, ``-e`` with escapes."""
    words = list(process.arguments)
    flags = ""
    while words and re.fullmatch(r"-[neE]+", words[0]):
        flags += words.pop(0)[1:]
    text = " ".join(words)
    if flags.rfind("e") > flags.rfind("E"):
        text = _unescaped(text)
    process.write(text if "n" in flags else f"{text}\n")
    return 0


def printf(process: Process) -> int:
    """Write a format with its arguments, again while arguments are left. It may have ``%s``, ``%d`` and ``%%``."""
    words = process.arguments
    if not words or re.match(r"-.", words[0]) or re.sub(r"%[sd%]", "", words[0]).count("%"):
        raise NotExact("this printf")
    texts, directives = re.split(r"%[sd%]", words[0]), re.findall(r"%[sd%]", words[0])
    values = list(words[1:])
    while True:
        left = len(values)
        out = _unescaped(texts[0])
        for directive, text in zip(directives, texts[1:], strict=True):
            value = "%" if directive == "%%" else values.pop(0) if values else "0" if directive == "%d" else ""
            if directive == "%d" and not NUMBER.fullmatch(value):
                raise NotExact(f"printf of {value}")
            out += value + _unescaped(text)
        process.write(out)
        if not values or len(values) == left:
            return 0


def _unescaped(text: str) -> str:
    """Return what a text with escapes means."""

    def meaning(found: re.Match[str]) -> str:
        if found[1] not in ESCAPES:
            raise NotExact(f"the escape {found[0]}")
        return ESCAPES[found[1]]

    return ESCAPE.sub(meaning, text)


def test(process: Process) -> int:
    """``test`` and ``[`` with one condition, which may be negated."""
    words = list(process.arguments)
    if process.name == "[" and (not words or words.pop() != "]"):
        raise NotExact("a missing ]")
    if {"-a", "-o", "(", ")", "<", ">"} & set(words):
        raise NotExact("test with several conditions")
    match words:
        case []:
            return 1
        case ["!", _] | ["!", _, _, _]:
            return int(_holds(words[1:], process.disk))
        case ["!", operator, _] if operator not in COMPARISONS + EQUALITIES:
            return int(_holds(words[1:], process.disk))
    return int(not _holds(words, process.disk))


def _holds(words: Sequence[str], disk: Disk) -> bool:
    """Return whether a condition of one to three words holds."""
    match words:
        case [word]:
            return word != ""
        case ["-z" | "-n" as operator, word]:
            return (word == "") == (operator == "-z")
        case ["-e" | "-f" | "-d" | "-s" as operator, name] if not name.startswith("/dev/"):
            kind = disk.kind(name)
            if operator == "-s":
                return kind == "directory" or (kind == "file" and bool(disk.read(name)))
            return kind in {"-e": {"directory", "file"}, "-f": {"file"}, "-d": {"directory"}}[operator]
        case [left, operator, right] if operator in EQUALITIES:
            return (left == right) == (operator != "!=")
        case [left, operator, right] if operator in COMPARISONS and NUMBER.fullmatch(left) and NUMBER.fullmatch(right):
            one, other = int(left), int(right)
            return [one == other, one != other, one < other, one <= other, one > other, one >= other][
                COMPARISONS.index(operator)
            ]
    raise NotExact("this test")


BUILTINS: dict[str, Program] = {
    ":": lambda _: 0,
    "[": test,
    "cd": cd,
    "echo": echo,
    "exit": exit_,
    "export": export,
    "false": lambda _: 1,
    "printf": printf,
    "pwd": pwd,
    "test": test,
    "true": lambda _: 0,
}
"""Name → builtin."""
