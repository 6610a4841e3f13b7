"""What a running command is given: its words, its streams, the disk, the shell's state."""

from __future__ import annotations

import getopt
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pytest_hermes_env.sandbox.bash.commands.disk import Disk
from pytest_hermes_env.sandbox.bash.state import NotExact, State, Streams

__all__ = ["Process", "Program", "lines_of", "quoted", "shown"]


@dataclass(slots=True, kw_only=True)
class Process:
    """One running command."""

    name: str
    arguments: Sequence[str]
    disk: Disk
    state: State
    streams: Streams
    code: int = 0

    def write(self, data: str | bytes) -> None:
        """Write to standard output."""
        self.streams.out.write(data.encode(errors="surrogateescape") if isinstance(data, str) else data)

    def complain(self, text: str, *, code: int = 1) -> int:
        """Write to standard error after the command's name; set and return the exit code."""
        self.streams.error.write(f"{self.name}: {text}\n".encode(errors="surrogateescape"))
        self.code = code
        return code

    def read(self, name: str) -> bytes:
        """Return the content of an operand; ``-`` is standard input. Raises: OSError; it is a directory → NotExact."""
        try:
            return self.streams.source.take() if name == "-" else self.disk.read(name)
        except IsADirectoryError:
            raise NotExact(f"{self.name} of a directory") from None

    def inputs(self, operands: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the name and the content of each operand, or of standard input. Complain of those that do not exist."""
        for name in operands or ("-",):
            try:
                data = self.read(name)
            except OSError as error:
                self.complain(f"{shown(name)}: {os.strerror(error.errno or 0)}")
            else:
                yield name, data

    def options(self, letters: str) -> tuple[dict[str, str], list[str]]:
        """Return the options, of ``letters`` as for getopt, with their values; and the other words. Raises: another option → NotExact."""
        if not any(word[:1] == "-" for word in self.arguments):
            return {}, list(self.arguments)
        try:
            given, operands = getopt.gnu_getopt(list(self.arguments), letters)
        except getopt.GetoptError as error:
            raise NotExact(f"{self.name} -{error.opt}") from error
        return {name[1:]: value for name, value in given}, operands


Program: TypeAlias = Callable[[Process], int]
"""Runs to its end and returns the exit code. Raises: it is not known exactly what GNU's command does → NotExact."""


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
    """Return a name that GNU's messages show as it is. Raises: they quote it → NotExact."""
    if re.fullmatch(r"[A-Za-z0-9_./-]+", name):
        return name
    raise NotExact("a message about a name with special letters")
