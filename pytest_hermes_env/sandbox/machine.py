"""One rollout's machine, as the code that uses it sees it: its tools, and its files as bytes."""

from __future__ import annotations

from typing import Any, Protocol

from pytest_hermes_env.sandbox.files import Files

__all__ = ["InMemoryMachine", "Machine"]


class Machine(Protocol):
    """A machine that a `FakeToolContext` works on, in memory or real."""

    @property
    def cwd(self) -> str:
        """The session's directory: where relative paths lead."""

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Return the result of one tool call as text."""

    def read_bytes(self, path: str) -> bytes:
        """Return a file's bytes. Raises: the file does not exist → OSError."""

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file and create missing directories. Raises: it cannot be written → OSError."""

    def list_files(self, directory: str) -> list[str]:
        """Return the names of all files below a directory, relative to it. Raises: the directory does not exist → OSError."""

    def release(self) -> None:
        """Release what the machine holds."""


class InMemoryMachine(Machine, Protocol):
    """A fake sandbox's machine, as a function that answers a command or a tool sees it."""

    @property
    def files(self) -> Files:
        """The files of this machine; ``files["/workspace/a.py"]`` is text."""
