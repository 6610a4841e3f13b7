"""What a running command works with: the state of its shell, and its streams."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace

__all__ = ["Ended", "NotExact", "Sink", "Source", "State", "Streams"]


class NotExact(Exception):
    """The text names what the in-memory shell does not answer exactly as bash does. `Shell.run` makes a `NotKnown` of it."""


class Ended(Exception):
    """``exit``."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(kw_only=True)
class State:
    """The state of one shell; a subshell has a copy.

    ``prefix`` begins the shell's own error messages; it is None where the line number is not known.
    """

    cwd: str
    variables: dict[str, str]
    exported: set[str]
    prefix: str | None
    status: int = 0

    def copy(self) -> State:
        """Return the state of a subshell."""
        return replace(self, variables=dict(self.variables), exported=set(self.exported))

    def assign(self, name: str, value: str) -> None:
        """Set a variable. Raises: the value changes how commands work → NotExact."""
        if name in {"PWD", "OLDPWD"}:
            raise NotExact(f"{name}={value}")
        self.variables[name] = value

    def message(self, path: str, error: OSError) -> bytes:
        """Return the shell's own error message. Raises: its line number is not known, or a name has special letters → NotExact."""
        if self.prefix is None or re.search(r"[^ -~]", path):
            raise NotExact("an error message with the number of a line")
        return f"{self.prefix}{path}: {os.strerror(error.errno or 0)}\n".encode()


class Sink:
    """Collects what is written. ``path`` is the file that it is written to in the end, ``/dev/null`` for none."""

    __slots__ = ("data", "path")

    def __init__(self, path: str = "") -> None:
        self.data = bytearray()
        self.path = path

    def write(self, data: bytes) -> None:
        """Collect data."""
        if self.path != "/dev/null":
            self.data += data


class Source:
    """What can be read, once: nobody can say how much of it a first reader leaves for a second one."""

    __slots__ = ("data", "is_used")

    def __init__(self, data: bytes = b"") -> None:
        self.data = data
        self.is_used = False

    def take(self) -> bytes:
        """Return everything. Raises: it has been read → NotExact."""
        if self.is_used and self.data:
            raise NotExact("a second reader of the same input")
        self.is_used = True
        return self.data


@dataclass(frozen=True, slots=True)
class Streams:
    """Standard input, output and error. Two that lead to one place hold one object."""

    source: Source
    out: Sink
    error: Sink
