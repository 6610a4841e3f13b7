"""Where commands read and write: the terminal, pipes, files, nothing."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_hermes_env.sandbox.not_exact import NotExact

__all__ = ["Sink", "Source", "Streams"]


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
    """What can be read. ``is_file``: it is a regular file, opened for this."""

    __slots__ = ("_at", "_data", "_is_unsure", "is_file", "is_used")

    def __init__(self, data: bytes = b"", *, is_file: bool = False) -> None:
        self._data = data
        self._at = 0
        self._is_unsure = self.is_used = False
        self.is_file = is_file

    @property
    def has_data(self) -> bool:
        """Whether there is anything to read."""
        return bool(self._data)

    def take(self, *, leaves_rest: bool = False) -> bytes:
        """Return what has not been read. ``leaves_rest``: the reader stops early, so nobody can say what the next one gets."""
        if self._is_unsure:
            raise NotExact("a second reader of the same input")
        self.is_used = True
        data, self._at = self._data[self._at :], len(self._data)
        self._is_unsure = leaves_rest and bool(data)
        return data

    def line(self) -> tuple[bytes, bool]:
        """Return the next line without its end, and whether it had one."""
        end = self._data.find(b"\n", self._at)
        if self._is_unsure or end < 0:
            return self.take(), False
        self.is_used = True
        line, self._at = self._data[self._at : end], end + 1
        return line, True


@dataclass(frozen=True, slots=True)
class Streams:
    """Standard input, output and error. Two that lead to one place hold one object."""

    source: Source
    out: Sink
    error: Sink
