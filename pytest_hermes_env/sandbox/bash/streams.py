"""Where commands read and write: the terminal, pipes, files of the in-memory machine, nothing.

Place in the flow: `runner` hands each command its streams by number and calls `flush` when it is done, so that what reads a file
afterwards finds what was written.
"""

from __future__ import annotations

import contextlib
from typing import TypeAlias

from pytest_hermes_env.sandbox.files import Files

__all__ = ["FileSink", "Nowhere", "Sink", "Source", "Streams"]


class Sink:
    """Collects what is written: the terminal, or a pipe."""

    __slots__ = ("buffer",)

    def __init__(self) -> None:
        self.buffer = bytearray()

    def flush(self) -> None:
        """Bring what was collected to its place."""


class Nowhere(Sink):
    """``/dev/null``."""

    __slots__ = ()

    def flush(self) -> None:
        """Forget what was collected."""
        self.buffer.clear()


class FileSink(Sink):
    """A file that was opened for writing; ``at`` is where writing goes on, or None at the end."""

    __slots__ = ("_at", "_files", "path")

    def __init__(self, files: Files, path: str, *, at: int | None) -> None:
        super().__init__()
        self._files = files
        self.path = path
        self._at = at

    def flush(self) -> None:
        """Write what was collected. A file that was removed or replaced meanwhile is let be."""
        if not self.buffer:
            return
        data = bytes(self.buffer)
        self.buffer.clear()
        with contextlib.suppress(OSError):
            if self._at is None:
                if self._files.is_file(self.path):
                    self._files.write(self.path, data, append=True)
                return
            before = self._files.read(self.path)
            at, self._at = self._at, self._at + len(data)
            self._files.write(self.path, before[:at].ljust(at, b"\0") + data + before[at + len(data) :])


class Source:
    """What can be read: data with the place up to which it has been read. ``is_file``: programs can go back in it."""

    __slots__ = ("at", "data", "is_directory", "is_file")

    def __init__(self, data: bytes = b"", *, is_file: bool = False, is_directory: bool = False) -> None:
        self.data = data
        self.at = 0
        self.is_file = is_file
        self.is_directory = is_directory

    @property
    def rest(self) -> bytes:
        """What has not been read."""
        return self.data[self.at :] if self.at else self.data

    def take(self) -> bytes:
        """Return what has not been read, as read now."""
        data, self.at = self.rest, len(self.data)
        return data

    def line(self, end: bytes = b"\n") -> tuple[bytes, bool]:
        """Return the next line without its end, and whether it had one."""
        found = self.data.find(end, self.at)
        if found < 0:
            return self.take(), False
        line, self.at = self.data[self.at : found], found + len(end)
        return line, True


Streams: TypeAlias = "dict[int, Sink | Source]"
"""File descriptor → what it leads to. Two that lead to one place hold one object."""
