"""Leads streams elsewhere, as redirections say."""

from __future__ import annotations

import errno
import os

from pytest_hermes_env.errors import UnsupportedSyntax
from pytest_hermes_env.sandbox.bash.expansion import Expander
from pytest_hermes_env.sandbox.bash.streams import FileSink, Nowhere, Sink, Source, Streams
from pytest_hermes_env.sandbox.bash.tree import Redirect
from pytest_hermes_env.sandbox.commands.process import path_of

__all__ = ["Refused", "redirected"]


class Refused(Exception):
    """A redirection that cannot be carried out; the text is bash's."""


def redirected(redirects: tuple[Redirect, ...], streams: Streams, expander: Expander) -> Streams:
    """Return the streams as redirections leave them. Files that are written are made or emptied. Raises: Refused."""
    found = dict(streams)
    for redirect in redirects:
        _redirect(redirect, found, expander)
    return found


def _redirect(redirect: Redirect, streams: Streams, expander: Expander) -> None:
    operator, fd = redirect.operator, redirect.fd
    if operator in {"<<", "<<-", "<<<"}:
        text = expander.text(redirect.target) + "\n" if redirect.body is None else expander.text(redirect.body)
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
            streams[fd] = _reading(name, streams, expander)
        elif operator in {">", ">|", ">>"}:
            streams[fd] = _writing(name, streams, expander, append=operator == ">>")
        elif operator in {"&>", "&>>"} or (operator == ">&" and fd == 1):
            streams[1] = streams[2] = _writing(name, streams, expander, append=operator == "&>>")
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


def _path(name: str, expander: Expander) -> str:
    if not name:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    return path_of(name, expander.files, expander.state.cwd)


def _standard(path: str, streams: Streams) -> Sink | Source | None:
    """Return the stream that a path below /dev stands for."""
    number = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}.get(path)
    if number is not None:
        return streams[number]
    if path.startswith("/dev/") and path != "/dev/null":
        raise UnsupportedSyntax(path, path)
    return None


def _reading(name: str, streams: Streams, expander: Expander) -> Sink | Source:
    path, files = _path(name, expander), expander.files
    standard = _standard(path, streams)
    if standard is not None:
        return standard
    if files.is_dir(path):
        return Source(is_directory=True)
    return Source(files.read(path), is_file=path != "/dev/null")


def _writing(name: str, streams: Streams, expander: Expander, *, append: bool) -> Sink | Source:
    path, files = _path(name, expander), expander.files
    standard = _standard(path, streams)
    if standard is not None:
        return standard
    if path == "/dev/null":
        return Nowhere()
    if name.endswith("/") and not files.is_dir(path):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    files.write(path, b"", append=append)
    return FileSink(files, path, at=None if append else 0)
