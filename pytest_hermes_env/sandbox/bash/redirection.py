"""Leads streams elsewhere, as redirections say."""

from __future__ import annotations

import errno
import os

from pytest_hermes_env.errors import UnsupportedSyntax
from pytest_hermes_env.sandbox.bash.expansion import Expander
from pytest_hermes_env.sandbox.bash.streams import FileSink, Nowhere, Sink, Source, Streams
from pytest_hermes_env.sandbox.bash.tree import Redirect
from pytest_hermes_env.sandbox.files import Files

__all__ = ["Refused", "redirected"]


class Refused(Exception):
    """A redirection that cannot be carried out; the text is bash's."""


def redirected(redirects: tuple[Redirect, ...], streams: Streams, *, expander: Expander, files: Files, cwd: str) -> Streams:
    """Return the streams as redirections leave them. Files that are written are made or emptied. Raises: Refused."""
    found = dict(streams)
    for redirect in redirects:
        _redirect(redirect, found, _Opener(files=files, cwd=cwd, streams=found), expander)
    return found


def _redirect(redirect: Redirect, streams: Streams, opener: _Opener, expander: Expander) -> None:
    operator, fd = redirect.operator, redirect.fd
    if operator in {"<<", "<<-"} and redirect.body is not None:
        streams[fd] = Source(expander.text(redirect.body).encode(errors="surrogateescape"), is_file=True)
        return
    if operator == "<<<":
        text = expander.text(redirect.target) + "\n"
        streams[fd] = Source(text.encode(errors="surrogateescape"), is_file=True)
        return
    names = expander.words((redirect.target,))
    if len(names) != 1:
        raise Refused(f"{redirect.target.raw}: ambiguous redirect")
    name = names[0]
    try:
        if operator in {">&", "<&"} and (name.isdigit() or name == "-"):
            _duplicate(name, fd, streams)
        elif operator == "<":
            streams[fd] = opener.reading(name)
        elif operator in {">", ">|", ">>"}:
            streams[fd] = opener.writing(name, append=operator == ">>")
        elif operator in {"&>", "&>>"} or (operator == ">&" and fd == 1):
            streams[1] = streams[2] = opener.writing(name, append=operator == "&>>")
        elif operator in {">&", "<&"}:
            raise Refused(f"{redirect.target.raw}: ambiguous redirect")
        else:
            raise UnsupportedSyntax(operator, f"the redirection {operator}")
    except OSError as error:
        raise Refused(f"{name}: {os.strerror(error.errno or errno.EIO)}") from error


def _duplicate(name: str, fd: int, streams: Streams) -> None:
    if name == "-":
        if fd in {0, 1, 2}:
            raise UnsupportedSyntax(f"{fd}>&-", "a closed stream")
        streams.pop(fd, None)
    elif int(name) not in streams:
        raise Refused(f"{name}: Bad file descriptor")
    else:
        streams[fd] = streams[int(name)]


class _Opener:
    def __init__(self, *, files: Files, cwd: str, streams: Streams) -> None:
        self._files = files
        self._cwd = cwd
        self._streams = streams

    def _path(self, name: str) -> str:
        if not name:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        return self._files.resolve(f"./{name}" if name.startswith("~") else name, self._cwd)

    def _standard(self, path: str) -> Sink | Source | None:
        """Return the stream that a path below /dev stands for."""
        number = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}.get(path)
        if number is None and path.startswith("/dev/fd/") and path[8:].isdigit():
            number = int(path[8:])
        if number is None:
            if path.startswith("/dev/") and path != "/dev/null":
                raise UnsupportedSyntax(path, path)
            return None
        if number not in self._streams:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        return self._streams[number]

    def reading(self, name: str) -> Sink | Source:
        path = self._path(name)
        standard = self._standard(path)
        if standard is not None:
            return standard
        if path == "/dev/null":
            return Source()
        if self._files.is_dir(path):
            return Source(is_directory=True)
        return Source(self._files.read(path), is_file=True)

    def writing(self, name: str, *, append: bool) -> Sink | Source:
        path = self._path(name)
        standard = self._standard(path)
        if standard is not None:
            return standard
        if path == "/dev/null":
            return Nowhere()
        if name.endswith("/") and not self._files.is_dir(path):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        self._files.write(path, b"", append=append)
        return FileSink(self._files, path, at=None if append else 0)
