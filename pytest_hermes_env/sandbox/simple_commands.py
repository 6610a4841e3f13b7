"""Simple commands on an in-memory machine: what rewards ask most, answered without a process.

One command of plain words, such as ``cat answer.txt`` or ``test -f a.py``. Nothing is expanded, and only the redirections
``wc -c < FILE`` and ``echo TEXT > FILE`` are known. Whatever is not certain to come out as bash 5.2 and GNU's commands do it is
not answered: real bash runs it over the same files.

Place in the flow: the terminal of a `FakeSandbox` asks here before it starts real bash.
"""

from __future__ import annotations

import operator
import os
import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from pytest_hermes_env.sandbox.answers import Outcome
from pytest_hermes_env.sandbox.files import HOME, Files

FIRST_VARIABLES: Mapping[str, str] = {
    "HOME": HOME,
    "LANG": "C.UTF-8",
    "LOGNAME": "root",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "SHELL": "/bin/bash",
    "SHLVL": "1",
    "USER": "root",
}
"""The exported variables of a new session."""
INDIFFERENT = frozenset({"_", "OLDPWD", "PWD", "PYTHONUNBUFFERED", "SHLVL"})
"""Variables that change nothing about these commands. Any other exported one may: ``POSIXLY_CORRECT``, ``LC_ALL``, ``PATH``."""

_WORD = r"""(?:[A-Za-z0-9_./,:+@%=-]++|'[^'\n]*'|"[^"$`\\\n]*")++|!=|[\[\]!]"""
_LINE = re.compile(rf"(?:{_WORD})(?:[ \t]+(?:{_WORD}))*(?P<redirection>[ \t]+(?:>>?|<)[ \t]*(?:{_WORD}))?")
_PIECE = re.compile(_WORD)
_SYSTEM = re.compile(r"/(?:bin|boot|dev|etc|lib\w*|nix|proc|run|sbin|sys|usr|var)(?:/|$)")
"""Directories of the machine whose files the tree does not have."""
_PARTLY_SYSTEM = re.compile(r"(/(?:home|media|mnt|opt|srv))(?:/|$)")
"""Directories that are the tree's if it has them, and the machine's otherwise."""
_INDIRECT = re.compile(r"(?:^|/)\.\.(?:/|$)|/\.(?:/|$)|//|.+/$")
_UNQUOTED_IN_MESSAGES = re.compile(r"[A-Za-z0-9_./-]+")
_LITERAL = re.compile(r"[A-Za-z0-9_ /:,@%=]+")
"""A pattern that means itself to grep."""
_FORMAT = re.compile(r"(?:[^%\\]|%s|\\n)*")
_NUMBER = re.compile(r"-?[1-9][0-9]{0,17}|0")
_LONGEST_PATH = 255


class _NotCertain(Exception):
    """Real bash must run this line."""


@dataclass(frozen=True, kw_only=True)
class _Command:
    """One command: its words after the name, and the machine that it runs on. ``source``: the file on its standard input."""

    words: list[str]
    files: Files
    cwd: str
    source: str = ""

    def path(self, name: str) -> str:
        """Return a path of the tree. Raises: the machine may have something there, or the path is unusual → _NotCertain."""
        if not name or len(name) > _LONGEST_PATH or _INDIRECT.search(name):
            raise _NotCertain
        absolute = posixpath.normpath(posixpath.join(self.cwd, name))
        outside = _PARTLY_SYSTEM.match(absolute)
        if absolute == "/" or (_SYSTEM.match(absolute) and absolute not in self.files and not self.files.is_dir(absolute)):
            raise _NotCertain
        if outside and not self.files.is_dir(outside[1]):
            raise _NotCertain
        return absolute

    def read(self, name: str) -> bytes:
        """Return a file's bytes. Raises: there is no such file → OSError."""
        return self.files.read(self.path(name))

    def parsed(self, *known: str) -> tuple[str, list[str]]:
        """Return the only option, empty without one, and the operands. Raises: other options, or several → _NotCertain."""
        option, *more = [word for word in self.words if word.startswith("-")] or [""]
        if more or (option and option not in known):
            raise _NotCertain
        return option, [word for word in self.words if not word.startswith("-")]


_Answer: TypeAlias = Callable[[_Command], Outcome]


def plain_words(line: str) -> list[str] | None:
    """Return the words of one command in which nothing is expanded or redirected, or None for any other line."""
    found = _LINE.fullmatch(line.strip())
    return _words(found[0]) if found and found["redirection"] is None else None


def run_simple(line: str, files: Files, cwd: str, variables: Mapping[str, str]) -> Outcome | None:
    """Run a line if it is a simple command of this table; None: real bash must run it, and nothing has happened.

    ``variables`` are the exported ones of the session.
    """
    found = _LINE.fullmatch(line.strip())
    if found is None or _that_matter(variables) != _that_matter(FIRST_VARIABLES):
        return None
    name, *words = _words(line.strip()[: found.start("redirection")] if found["redirection"] else found[0])
    answer = _COMMANDS.get(name)
    if answer is None or (name not in _BUILTINS and any(f"{place}/{name}" in files.nodes for place in _PLACES)):
        return None
    command = _Command(words=words, files=files, cwd=cwd)
    try:
        return _redirected(name, command, found["redirection"]) if found["redirection"] else answer(command)
    except (_NotCertain, OSError, UnicodeDecodeError):
        return None


def _redirected(name: str, command: _Command, redirection: str) -> Outcome:
    sign, target = re.split(r"(?<=[<>])\s*(?=[^<>\s])", redirection.strip(), maxsplit=1)
    path = command.path(_words(target)[0])
    if sign == "<" and name == "wc":
        return _wc(replace(command, source=path))
    if sign == "<" or name not in {"echo", "printf"}:
        raise _NotCertain
    output = _COMMANDS[name](command).output
    command.files.write(path, output.encode(errors="surrogateescape"), append=sign == ">>")
    return Outcome(output="")


def _words(text: str) -> list[str]:
    """Return plain words without their quotes."""
    pieces = (found[0] for found in _PIECE.finditer(text))
    return [re.sub(r"'([^']*)'|\"([^\"]*)\"", lambda quoted: quoted[1] or quoted[2] or "", piece) for piece in pieces]


def _that_matter(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name not in INDIFFERENT}


# Commands


def _echo(command: _Command) -> Outcome:
    words, end = list(command.words), "\n"
    while words and re.fullmatch(r"-[neE]+", words[0]):
        if "e" in words[0]:
            raise _NotCertain
        end = "" if "n" in words.pop(0) else end
    return Outcome(output=" ".join(words) + end)


def _printf(command: _Command) -> Outcome:
    if not command.words or command.words[0].startswith("-") or not _FORMAT.fullmatch(command.words[0]):
        raise _NotCertain
    form, *values = command.words
    if form.count("%s") != len(values):
        raise _NotCertain
    texts = form.replace("\\n", "\n").split("%s")
    return Outcome(output=texts[0] + "".join(value + text for value, text in zip(values, texts[1:], strict=True)))


def _pwd(command: _Command) -> Outcome:
    if command.words:
        raise _NotCertain
    return Outcome(output=f"{command.cwd}\n")


def _cat(command: _Command) -> Outcome:
    output, code = b"", 0
    for name in command.parsed()[1] or [""]:
        try:
            output += command.read(name)
        except OSError as error:
            output, code = output + _complaint("cat: ", name, error), 1
    return Outcome(output=output.decode(errors="replace"), exit_code=code)


def _wc(command: _Command) -> Outcome:
    option, names = command.parsed("-c", "-l", "-w")
    if not option or len(names) != (0 if command.source else 1):
        raise _NotCertain
    data = command.read(command.source or names[0])
    if option == "-w" and not data.isascii():
        raise _NotCertain
    count = {"-c": len(data), "-l": data.count(b"\n"), "-w": len(data.split())}[option]
    return Outcome(output=f"{count}\n" if command.source else f"{count} {names[0]}\n")


def _grep(command: _Command) -> Outcome:
    option, operands = command.parsed("-c", "-q", "-F")
    pattern, *names = operands or [""]
    if len(names) != 1 or not _LITERAL.fullmatch(pattern):
        raise _NotCertain
    text = command.read(names[0]).decode()
    if "\0" in text:
        raise _NotCertain
    found = [one for one in text.removesuffix("\n").split("\n") if pattern in one] if text else []
    shown = {"-q": "", "-c": f"{len(found)}\n"}.get(option, "".join(f"{one}\n" for one in found))
    return Outcome(output=shown, exit_code=int(not found))


def _ls(command: _Command) -> Outcome:
    option, names = command.parsed("-1", "-a", "-A")
    name, *more = names or ["."]
    path = command.path(name)
    if more:
        raise _NotCertain
    if command.files.is_file(path):
        return Outcome(output=f"{name}\n")
    try:
        entries = command.files.list_directory(path)
    except OSError as error:
        return Outcome(output=_complaint("ls: cannot access ", name, error).decode(), exit_code=2)
    if option == "-a":
        entries = sorted([".", "..", *entries], key=os.fsencode)
    elif option != "-A":
        entries = [entry for entry in entries if not entry.startswith(".")]
    return Outcome(output="".join(f"{entry}\n" for entry in entries))


def _mkdir(command: _Command) -> Outcome:
    option, names = command.parsed("-p")
    paths = [command.path(name) for name in names]
    if len(paths) != 1 and not (paths and option):
        raise _NotCertain
    if option and not all(_can_be_made(path, command.files) for path in paths):
        raise _NotCertain
    for path in paths:
        command.files.make_directory(path, parents=bool(option))
    return Outcome(output="")


def _can_be_made(path: str, files: Files) -> bool:
    """Return whether no file is in the way of a directory."""
    while path != "/" and not files.is_dir(path):
        if files.exists(path):
            return False
        path = posixpath.dirname(path)
    return True


def _rm(command: _Command) -> Outcome:
    option, names = command.parsed("-f")
    if len(names) != 1:
        raise _NotCertain
    path = command.path(names[0])
    if not option or command.files.exists(path):
        command.files.remove(path)
    return Outcome(output="")


def _touch(command: _Command) -> Outcome:
    _, names = command.parsed()
    if len(names) != 1 or command.files.exists(path := command.path(names[0])):
        raise _NotCertain
    command.files.write(path, b"")
    return Outcome(output="")


def _test(command: _Command) -> Outcome:
    words = command.words[1:] if command.words[:1] == ["!"] and len(command.words) > 1 else command.words
    return Outcome(output="", exit_code=int(_holds(words, command) == (words is not command.words)))


def _bracket(command: _Command) -> Outcome:
    if command.words[-1:] != ["]"]:
        raise _NotCertain
    return _test(replace(command, words=command.words[:-1]))


def _holds(words: list[str], command: _Command) -> bool:
    """Return whether a condition of two or three words holds."""
    match words:
        case ["-z" | "-n" as sign, word]:
            return (word == "") == (sign == "-z")
        case ["-e" | "-f" | "-d" | "-s" as sign, name]:
            path, files = command.path(name), command.files
            if sign == "-d":
                return files.is_dir(path)
            is_file = files.is_file(path)
            if sign == "-s":
                return files.is_dir(path) or (is_file and bool(files.read(path)))
            return is_file or (sign == "-e" and files.is_dir(path))
        case [left, "=" | "==" | "!=" as sign, right]:
            return (left == right) == (sign != "!=")
        case [left, sign, right] if sign in _COMPARISONS and _NUMBER.fullmatch(left) and _NUMBER.fullmatch(right):
            return bool(_COMPARISONS[sign](int(left), int(right)))
    raise _NotCertain


def _complaint(beginning: str, name: str, error: OSError) -> bytes:
    """Return GNU's message about a file. Raises: its name would be quoted in an unusual way → _NotCertain."""
    if not _UNQUOTED_IN_MESSAGES.fullmatch(name):
        raise _NotCertain
    shown = f"'{name}'" if beginning.startswith("ls") else name
    return f"{beginning}{shown}: {os.strerror(error.errno or 0)}\n".encode()


_COMPARISONS = {
    "-eq": operator.eq,
    "-ne": operator.ne,
    "-lt": operator.lt,
    "-le": operator.le,
    "-gt": operator.gt,
    "-ge": operator.ge,
}
_COMMANDS: dict[str, _Answer] = {
    ":": lambda _: Outcome(output=""),
    "[": _bracket,
    "cat": _cat,
    "echo": _echo,
    "false": lambda _: Outcome(output="", exit_code=1),
    "grep": _grep,
    "ls": _ls,
    "mkdir": _mkdir,
    "printf": _printf,
    "pwd": _pwd,
    "rm": _rm,
    "test": _test,
    "touch": _touch,
    "true": lambda _: Outcome(output=""),
    "wc": _wc,
}
_BUILTINS = frozenset({":", "[", "echo", "false", "printf", "pwd", "test", "true"})
_PLACES = FIRST_VARIABLES["PATH"].split(":")
