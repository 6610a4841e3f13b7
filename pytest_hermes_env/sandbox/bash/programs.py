"""Runs the programs of the in-memory machine with the streams and the variables of the shell."""

from __future__ import annotations

import errno
import os

from pytest_hermes_env.sandbox.bash.runner import Runner
from pytest_hermes_env.sandbox.bash.streams import FileSink, Sink, Source, Streams
from pytest_hermes_env.sandbox.commands import COMMANDS, Process, UnsupportedOption

__all__ = ["IN_BASH", "run_program"]

TALKING = frozenset({"echo", "printf"})
"""Programs that never open what they are given."""
DEVICES = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"})
"""What programs know of the directory of devices."""
IN_BASH = frozenset({"echo", "printf", "test", "[", "true", "false", ":"})
"""Programs of this machine that are bash's own commands: their complaints begin with the line they are in."""


class _Reader(Process):
    """A process whose standard input is taken from a source that others may read on."""

    source: Source
    _taken: bytes | None = None

    @property
    def stdin(self) -> bytes:
        """Everything that is left to read, also when it is asked for twice."""
        if self.source.is_directory:
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), "-")
        if self._taken is None:
            self._taken = self.source.take()
        return self._taken

    @stdin.setter
    def stdin(self, data: bytes) -> None:
        self.source = Source(data)


def run_program(shell: Runner, words: tuple[str, ...], streams: Streams) -> int:
    """Run one of the machine's programs."""
    state = shell.state
    source, out, err = streams[0], streams[1], streams[2]
    if not isinstance(source, Source) or not isinstance(out, Sink) or not isinstance(err, Sink):
        raise UnsupportedOption("a stream in the wrong direction")
    process = _Reader(
        words=_checked(shell, words, out),
        files=shell.files,
        cwd=state.cwd,
        variables=state.environment(),
        out=out.buffer,
        err=err.buffer,
        prefix=state.prefix if words[0] in IN_BASH else "",
    )
    process.source = source
    began, at = len(out.buffer), source.at
    name = shell.program_name(words[0])
    try:
        code = COMMANDS[name](process)
    except OSError as error:
        code = process.complain(f"{error.filename or ''}: {os.strerror(error.errno) if error.errno else error}")
    if name == "head" and source.is_file and source.at > at:
        source.at = at + len(out.buffer) - began  # it goes back to where its output ends
    out.flush()
    if err is not out:
        err.flush()
    return code


def _checked(shell: Runner, words: tuple[str, ...], out: Sink) -> tuple[str, ...]:
    """Return the words of a program. Raises: a path that this machine cannot serve → UnsupportedOption."""
    if words[0] == "cat":
        paths = {shell.path(word) for word in words[1:]}
        if isinstance(out, FileSink) and out.path in paths and shell.files.is_file(out.path) and shell.files.read(out.path):
            raise UnsupportedOption("cat of its own output file")
    for word in words[1:]:
        if word.startswith(("/dev/", "/proc/")) and word not in DEVICES and words[0] not in TALKING:
            raise UnsupportedOption(word)
    return words
