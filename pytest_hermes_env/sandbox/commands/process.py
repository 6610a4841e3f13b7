"""What a built-in command is given, and what it may do: the process of the in-memory machine."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pytest_hermes_env.sandbox.files import Files

__all__ = ["Process", "Program", "UnsupportedOption", "lines_of", "path_of"]


class UnsupportedOption(Exception):
    """A command was given an option that this machine does not know; it is refused rather than ignored."""


@dataclass(kw_only=True)
class Process:
    """One running command.

    ``words`` are the command's name and arguments. ``out`` and ``err`` collect bytes; they are one object where both lead to
    the terminal. ``variables`` are the exported ones. ``prefix`` stands before the name in every complaint. ``code`` is the exit code so
    far: a complaint sets it.
    """

    words: tuple[str, ...]
    files: Files
    cwd: str
    variables: dict[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    prefix: str = ""
    code: int = 0

    @property
    def name(self) -> str:
        """The command's name."""
        return self.words[0]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words after the name."""
        return self.words[1:]

    def path(self, text: str) -> str:
        """Return ``text`` as an absolute path, seen from the working directory."""
        return path_of(text, self.files, self.cwd)

    def write(self, data: str | bytes) -> None:
        """Write to standard output; text as UTF-8."""
        self.out += data.encode(errors="surrogateescape") if isinstance(data, str) else data

    def complain(self, text: str, *, code: int = 1) -> int:
        """Write to standard error after the command's name, as GNU's commands do; set and return the exit code."""
        self.err += f"{self.prefix}{self.name}: {text}\n".encode(errors="surrogateescape")
        self.code = code
        return code

    @contextlib.contextmanager
    def complaining(self, about: str, *, code: int = 1) -> Iterator[None]:
        """Complain of an OSError inside, after ``about``, and go on."""
        try:
            yield
        except OSError as error:
            self.complain(f"{about}: {os.strerror(error.errno) if error.errno else error}", code=code)

    def inputs(self, operands: Sequence[str], *, complaint: str = "{name}", code: int = 1) -> Iterator[tuple[str, bytes]]:
        """Yield the name and the content of each operand; ``-`` is standard input. Complain of those that cannot be read."""
        for name in operands or ("-",):
            if name == "-":
                yield name, self.stdin
                continue
            with self.complaining(complaint.format(name=name), code=code):
                yield name, self.files.read(self.path(name))

    def content(self, operands: Sequence[str]) -> bytes:
        """Return the content of all operands in one; see `inputs`."""
        return b"".join(data for _, data in self.inputs(operands))


def path_of(word: str, files: Files, cwd: str) -> str:
    """Return a word of a command as an absolute path. A tilde in it is a letter: the shell has replaced the others."""
    return files.resolve(f"./{word}" if word.startswith("~") else word, cwd)


def lines_of(data: bytes) -> list[bytes]:
    """Return the lines with their line breaks; the last may have none."""
    return io.BytesIO(data).readlines()


Program: TypeAlias = Callable[[Process], int]
"""Runs to its end and returns the exit code."""
