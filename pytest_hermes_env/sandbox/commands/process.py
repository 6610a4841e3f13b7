"""What a built-in command is given, and what it may do: the process of the in-memory machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pytest_hermes_env.sandbox.files import Files

__all__ = ["Process", "Program", "UnsupportedOption"]


class UnsupportedOption(Exception):
    """A command was given an option that this machine does not know; it is refused rather than ignored."""


@dataclass(kw_only=True)
class Process:
    """One running command.

    ``words`` are the command's name and arguments. ``out`` and ``err`` collect bytes; they are one object where both lead to
    the terminal. ``variables`` are the exported ones.
    """

    words: tuple[str, ...]
    files: Files
    cwd: str
    variables: dict[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)

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
        return self.files.resolve(text, self.cwd)

    def write(self, data: str | bytes) -> None:
        """Write to standard output; text as UTF-8."""
        self.out += data.encode(errors="surrogateescape") if isinstance(data, str) else data

    def complain(self, text: str) -> None:
        """Write one line to standard error, after the command's name, as GNU's commands do."""
        self.err += f"{self.name}: {text}\n".encode(errors="surrogateescape")


Program: TypeAlias = Callable[[Process], int]
"""Runs to its end and returns the exit code."""
