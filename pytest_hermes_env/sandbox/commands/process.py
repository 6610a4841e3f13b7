"""What a running command is given: its words, its streams, the disk, the shell's state."""

from __future__ import annotations

import getopt
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from pytest_hermes_env.sandbox.bash.state import State
from pytest_hermes_env.sandbox.bash.streams import Streams
from pytest_hermes_env.sandbox.commands.disk import Disk
from pytest_hermes_env.sandbox.not_exact import NotExact

__all__ = ["Options", "Process", "Program", "lines_of", "quoted", "read_options", "shown"]


class Options:
    """The options that were given, by their letters, with their values in order; and the other words."""

    __slots__ = ("given", "operands")

    def __init__(self, given: list[tuple[str, str]], operands: list[str]) -> None:
        self.given: dict[str, list[str]] = {}
        for name, value in given:
            self.given.setdefault(name, []).append(value)
        self.operands = operands

    def __contains__(self, name: str) -> bool:
        return name in self.given

    def get(self, name: str, default: str = "") -> str:
        """Return an option's last value."""
        return self.given[name][-1] if name in self.given else default


@dataclass(slots=True, kw_only=True)
class Process:
    """One running command. ``run`` runs another one by its words, with other streams."""

    name: str
    arguments: Sequence[str]
    disk: Disk
    state: State
    streams: Streams
    run: Callable[[Sequence[str], Streams], int]
    code: int = 0

    def write(self, data: str | bytes) -> None:
        """Write to standard output."""
        self.streams.out.write(data.encode(errors="surrogateescape") if isinstance(data, str) else data)

    def complain(self, text: str, *, code: int = 1) -> int:
        """Write to standard error after the command's name; set and return the exit code."""
        self.streams.error.write(f"{self.name}: {text}\n".encode(errors="surrogateescape"))
        self.code = code
        return code

    def fail(self, text: str, *, code: int = 1) -> int:
        """Write to standard error as a builtin does; return the exit code."""
        self.streams.error.write(self.state.message(f"{self.name}: {text}").encode(errors="surrogateescape"))
        return code

    def locale_quoted(self, name: str) -> str:
        """Return a name as GNU's translated messages quote it: in UTF-8 with curly quotes."""
        text = quoted(name)
        return f"\u2018{text[1:-1]}\u2019" if self.state.is_utf8 else text

    @contextmanager
    def complaining(self, about: str, *, code: int = 1) -> Iterator[None]:
        """Complain of an OSError inside, after ``about``."""
        try:
            yield
        except OSError as error:
            self.complain(f"{about}: {os.strerror(error.errno or 0)}", code=code)

    def inputs(
        self, operands: Sequence[str], *, complaint: Callable[[str], str] | None = None, code: int = 1
    ) -> Iterator[tuple[str, bytes]]:
        """Yield the name and the content of each operand; ``-`` is standard input. Complain of those that do not exist.

        ``complaint`` is what is said about a name. Raises: an operand is a directory → NotExact.
        """
        for name in operands or ("-",):
            if name == "-":
                yield name, self.streams.source.take()
                continue
            try:
                data = self.disk.read(name)
            except IsADirectoryError:
                raise NotExact(f"{self.name} of a directory") from None
            except OSError as error:
                self.complain(f"{(complaint or shown)(name)}: {os.strerror(error.errno or 0)}", code=code)
            else:
                yield name, data

    def content(self, operands: Sequence[str], *, complaint: Callable[[str], str] | None = None, code: int = 1) -> bytes:
        """Return the content of all operands in one; see `inputs`."""
        return b"".join([data for _, data in self.inputs(operands, complaint=complaint, code=code)])

    def text(self, data: bytes) -> str:
        """Return data as characters. Raises: it is not text in the present locale → NotExact."""
        try:
            return data.decode("utf-8" if self.state.is_utf8 else "ascii")
        except UnicodeDecodeError:
            raise NotExact(f"{self.name} of what is not text") from None

    def options(self, letters: str, long: Mapping[str, str] | None = None, *, runs_command: bool = False) -> Options:
        """Return the options; see `read_options`."""
        return read_options(self.name, self.arguments, letters, long, runs_command=runs_command)


Program: TypeAlias = Callable[[Process], int]
"""Runs to its end and returns the exit code. Raises: it is not known exactly what GNU's command does → NotExact."""


def read_options(
    name: str, words: Sequence[str], letters: str, long: Mapping[str, str] | None = None, *, runs_command: bool = False
) -> Options:
    """Split a command's words. ``letters`` as for getopt; ``long`` leads from a long name to its letter, with a colon as there.

    Options may stand after operands, unless the operands are a command to run. Raises: any other option → NotExact.
    """
    if not any(word[:1] == "-" for word in words):
        return Options([], list(words))
    names = [f"{one}=" if target.endswith(":") else one for one, target in (long or {}).items()]
    if any(word.startswith("--") and word[2:].partition("=")[0] not in {"", *(long or {})} for word in words):
        raise NotExact(f"an option of {name}")
    try:
        found, operands = (getopt.getopt if runs_command else getopt.gnu_getopt)(list(words), letters, names)
    except getopt.GetoptError as error:
        raise NotExact(f"{name} {'-' if len(error.opt) == 1 else '--'}{error.opt}") from error
    given = [((long or {})[one[2:]].rstrip(":") if one.startswith("--") else one[1:], value) for one, value in found]
    return Options(given, operands)


def lines_of(data: bytes) -> list[bytes]:
    """Return the lines with their line breaks; the last may have none."""
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def quoted(name: str) -> str:
    """Return a name as GNU's messages quote it. Raises: it has letters that are escaped → NotExact."""
    if not re.fullmatch(r"[ -&(-~]*", name):
        raise NotExact("a message about a name with special letters")
    return f"'{name}'"


def shown(name: str) -> str:
    """Return a name as GNU's messages show it: quoted only where a shell would need it."""
    if re.fullmatch(r"[A-Za-z0-9_./-]+", name):
        return name
    if " " in name:
        return quoted(name)
    raise NotExact("a message about a name with special letters")
