"""One rollout's machine, as the code that uses it sees it: its tools, and its files as bytes."""

from __future__ import annotations

import errno
import math
import sys
import time
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from pytest_hermes_env.sandbox.files import Files

MAX_BYTES = 64 * 2**20
"""Bytes that one read or download returns at most, unless the caller says otherwise; as in the environment layer."""

FILE_TIMEOUT_S = 60
"""Seconds that reading one file may take, unless the caller says otherwise; as in the environment layer."""

NOT_REGULAR = "it is not a regular file"


class NotReadable(OSError):
    """A file must not be read: it is not regular, it is larger than the reader allows, or reading it takes too long."""


def too_large(path: str, max_bytes: int) -> NotReadable:
    """Return the error for a file that is larger than the reader allows."""
    return NotReadable(errno.EFBIG, f"it exceeds the limit of {max_bytes:,} bytes; max_bytes= raises the limit", path)


SHORTEST_S = 0.5
"""What is left to each command that starts when a rollout's time is over, in seconds."""


@dataclass
class Patience:
    """How long the real commands of a rollout may take together: until ``ends`` of `time.monotonic`. Then they end as their own timeout would end them.

    ``was_over``: one was stopped that its own timeout would have let go on.
    """

    ends: float = math.inf
    was_over: bool = False

    def seconds_for(self, limit_s: float) -> float:
        """Return how long a command with this timeout may take now."""
        return min(limit_s, max(SHORTEST_S, self.ends - time.monotonic()))


patience: ContextVar[Patience] = ContextVar("hermes_env_patience", default=Patience())  # noqa: B039 - the default is without end, and never over


POLL_S = 0.1
"""How long a cancelled rollout's call goes on unnoticed, in seconds."""


def is_interrupted() -> bool:
    """Return whether hermes was asked to end the tool that runs in this thread: its rollout was cancelled."""
    module = sys.modules.get("tools.interrupt")
    return module is not None and bool(module.is_interrupted())


def wait(seconds: float) -> None:
    """Sleep, and no longer once the call is interrupted."""
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0 and not is_interrupted():
        time.sleep(min(left, POLL_S))


class Machine(Protocol):
    """A machine that a `FakeToolContext` works on, in memory or real."""

    @property
    def cwd(self) -> str:
        """The session's directory: where relative paths lead."""

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Return the result of one tool call as text."""

    def read_bytes(self, path: str, max_bytes: int = MAX_BYTES, timeout: float = FILE_TIMEOUT_S) -> bytes:
        """Return a file's bytes. Raises: it does not exist → OSError; it is a FIFO, too large or too slow → NotReadable."""

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
