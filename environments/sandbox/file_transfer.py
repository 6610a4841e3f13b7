"""Moves bytes in and out of a sandbox through its shell, which every backend has.

Files are sent as base64 in chunks. Every path is quoted, every chunk is checked, a target file appears only when it is
complete, and no file name in a sandbox can make a download write outside its target directory. Reading has a size limit and a
time limit, and only regular files are opened: a FIFO or a device of the agent cannot stall or flood the reader.

Place in the flow: transfers of files and directories are methods of `ToolContext`, which is the shell of its rollout.
"""

from __future__ import annotations

import base64
import binascii
import os
import posixpath
import shlex
import tempfile
import time
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from hermes_env_shared import trees

MAX_BYTES = 64 * 2**20
"""Bytes that one read or download returns at most, unless the caller says otherwise."""

FILE_TIMEOUT_S = 60
"""Seconds that reading one file may take, unless the caller says otherwise."""

DIRECTORY_TIMEOUT_S = 600
"""Seconds that downloading a directory may take, unless the caller says otherwise."""

UPLOAD_CHARS = 60_000
"""base64 characters per upload command; a shell argument is limited to 128 KB. A multiple of four, so that each chunk decodes."""

DOWNLOAD_BYTES = 33_000
"""Bytes per terminal call: 44,000 base64 characters stay below hermes' limit of 50,000 characters of output."""

UNCUT_BYTES = 8 * 2**20
"""Bytes per command whose output hermes does not cut."""

COMMAND_TIMEOUT_S = 180
"""Seconds for a command that writes or removes."""

NOT_REGULAR = "it is not a regular file"
TIMED_OUT = 124
"""The exit code with which hermes reports a command that took too long."""


class TransferError(Exception):
    """A transfer failed; the message has the reason."""


class NotReadable(TransferError):
    """A file must not be read: it is not a regular file, it exceeds the size limit, or reading takes too long."""


class Shell(Protocol):
    """How a rollout's commands run; both methods take the command and its timeout in seconds."""

    def terminal(self, command: str, timeout: int) -> dict[str, Any]:
        """Run a command with hermes' tool, which cuts and redacts output."""

    def _uncut(self, command: str, timeout: int) -> str | None:
        """Return a command's whole output.

        None if it fails or if hermes has no environment for the rollout, as when a double answers the tools.
        """


@dataclass(frozen=True, kw_only=True)
class _Limits:
    """What is left for reading: bytes, and the time until ``deadline``."""

    max_bytes: int
    timeout: int
    deadline: float

    def seconds_left(self, remote: str) -> int:
        """Return the timeout for the next command. Raises: no time is left → NotReadable."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise self.timed_out(remote)
        return max(1, int(left))

    def timed_out(self, remote: str) -> NotReadable:
        """Return the error for a read that took too long."""
        return NotReadable(f"Cannot read {remote}: it takes longer than {self.timeout} seconds; timeout= raises the limit")


def _limits(max_bytes: int, timeout: int) -> _Limits:
    return _Limits(max_bytes=max_bytes, timeout=timeout, deadline=time.monotonic() + timeout)


def upload_file(self: Shell, local_path: str, remote_path: str) -> dict[str, Any]:
    """Copy a file of this machine, byte for byte, into the sandbox.

    Returns ``{"exit_code": 0, "output": ..., "bytes": n}``, or an exit code other than 0 with the reason as output.
    """
    try:
        data = Path(local_path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the local path
        return {"exit_code": -1, "output": f"Cannot read local file {local_path}: {error}"}
    try:
        _write_bytes(self, data, remote_path)
    except TransferError as error:
        return {"exit_code": -1, "output": str(error)}
    return {"exit_code": 0, "output": f"{len(data)} bytes to {remote_path}", "bytes": len(data)}


def upload_dir(self: Shell, local_dir: str, remote_dir: str) -> list[dict[str, Any]]:
    """Copy every file under a directory of this machine into the sandbox; one result per file."""
    local = Path(local_dir)
    if not local.is_dir():
        return [{"exit_code": -1, "output": f"Local directory not found: {local}"}]
    names = {str(local / name): Path(name).as_posix() for name in trees.files(local_dir)}
    return [{"path": path, **upload_file(self, path, posixpath.join(remote_dir, name))} for path, name in names.items()]


def download_file(
    self: Shell, remote_path: str, local_path: str, *, max_bytes: int = MAX_BYTES, timeout: int = FILE_TIMEOUT_S
) -> dict[str, Any]:
    """Copy a regular file of the sandbox, byte for byte, to this machine.

    Returns ``{"success": True, "bytes": n}`` or ``{"success": False, "error": reason}``; no partial file is left behind.
    ``max_bytes`` and ``timeout`` (seconds) limit the download.
    """
    return _download(self, remote_path, Path(local_path), _limits(max_bytes, timeout))


def download_dir(
    self: Shell, remote_dir: str, local_dir: str, *, max_bytes: int = MAX_BYTES, timeout: int = DIRECTORY_TIMEOUT_S
) -> list[dict[str, Any]]:
    """Copy every regular file under a sandbox directory to this machine; one result per file, never outside ``local_dir``.

    ``max_bytes`` and ``timeout`` (seconds) limit the download of all files together.
    """
    limits = _limits(max_bytes, timeout)
    try:
        names = _list_files(self, remote_dir, limits)
    except TransferError as error:
        return [{"success": False, "path": remote_dir, "error": str(error)}]
    root = Path(os.path.realpath(local_dir))
    root.mkdir(parents=True, exist_ok=True)
    results = []
    for name in names:
        target = Path(os.path.realpath(root / name))
        if target.is_relative_to(root) and target != root:
            result = _download(self, posixpath.join(remote_dir, name), target, limits)
        else:
            result = {"success": False, "error": f"Refused: the listed name {name!r} leads outside {root}"}
        limits = replace(limits, max_bytes=limits.max_bytes - result.get("bytes", 0))
        results.append({"path": name, **result})
    return results


def read_bytes(shell: Shell, remote: str, *, max_bytes: int, timeout: int) -> bytes:
    """Return a sandbox file's bytes.

    Raises: no regular file, larger than ``max_bytes``, or slower than ``timeout`` seconds → NotReadable; any other reason →
    TransferError.
    """
    return _read(shell, remote, _limits(max_bytes, timeout))


def _read(shell: Shell, remote: str, limits: _Limits) -> bytes:
    size, data = _read_beginning(shell, remote, limits)
    while len(data) < size:
        data += _read_chunk(shell, remote, len(data), size - len(data), limits)
    return data


def _read_beginning(shell: Shell, remote: str, limits: _Limits) -> tuple[int, bytes]:
    """Return a file's size and its first bytes: all of them if they fit one command."""
    length = UNCUT_BYTES
    answer = shell._uncut(_beginning(remote, length, "command -p "), limits.seconds_left(remote))
    if answer is None:
        length = DOWNLOAD_BYTES
        answer = _run_reading(shell, _beginning(remote, length), remote, limits)
    size_text, _, encoded = answer.strip().partition("\n")
    if not size_text.strip().isdecimal():
        raise TransferError(f"Cannot read {remote}: its size came back as {size_text[:200]!r}")
    size = int(size_text)
    if size > limits.max_bytes:
        raise NotReadable(
            f"Cannot read {remote}: it exceeds the limit of {limits.max_bytes:,} bytes; max_bytes= raises the limit"
        )
    data = _from_base64(encoded) or b""
    return size, data if len(data) == min(size, length) else b""


def _beginning(remote: str, length: int, prefix: str = "") -> str:
    """Return the command that prints the size of a regular file, and ``length`` bytes of it. ``prefix``: see `_cut`."""
    path = _quoted(remote)
    return (
        f"if [ -e {path} ] && [ ! -f {path} ]; then echo {shlex.quote(NOT_REGULAR)}; false; "
        f"else {prefix}wc -c < {path} && {_cut(path, 0, length, prefix)} | {prefix}base64; fi"
    )


def _read_chunk(shell: Shell, remote: str, start: int, left: int, limits: _Limits) -> bytes:
    """Return the next bytes from ``start``: uncut where hermes has an environment, else with the terminal."""
    path = _quoted(remote)
    length = min(left, UNCUT_BYTES)
    uncut = shell._uncut(f"{_cut(path, start, length, 'command -p ')} | command -p base64", limits.seconds_left(remote))
    if uncut is not None and (chunk := _from_base64(uncut)) is not None and len(chunk) == length:
        return chunk
    length = min(left, DOWNLOAD_BYTES)
    read = _from_base64(_run_reading(shell, f"{_cut(path, start, length)} | base64", remote, limits))
    if read is not None and len(read) == length:
        return read
    raise TransferError(f"Cannot read {remote}: bytes {start} to {start + length} arrived incomplete")


def _cut(path: str, start: int, length: int, prefix: str = "") -> str:
    """Return the command that prints ``length`` bytes from ``start``. ``prefix``: how its programs are found."""
    return f"{prefix}tail -c +{start + 1} < {path} | {prefix}head -c {length}"


def _from_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return None


def _write_bytes(shell: Shell, data: bytes, remote: str) -> None:
    """Write a sandbox file: under a temporary name first, then move it into place."""
    partial = f"{remote}.{uuid.uuid4().hex[:8]}.part"
    directory = posixpath.dirname(remote)
    if directory:
        _run(shell, f"mkdir -p -- {_quoted(directory)}", f"Cannot create the directory of {remote}")
    text = base64.b64encode(data).decode()
    chunks = [text[at : at + UPLOAD_CHARS] for at in range(0, len(text), UPLOAD_CHARS)] or [""]
    try:
        for number, chunk in enumerate(chunks, 1):
            redirect = ">" if number == 1 else ">>"
            command = f"printf %s {shlex.quote(chunk)} | base64 -d {redirect} {_quoted(partial)}"
            _run(shell, command, f"Cannot write {remote}: chunk {number} of {len(chunks)} failed")
        place = f"if [ -d {_quoted(remote)} ]; then echo 'it is a directory'; exit 1; fi; "
        _run(shell, f"({place}mv -f -- {_quoted(partial)} {_quoted(remote)})", f"Cannot write {remote}")
    except TransferError:
        shell.terminal(f"rm -f -- {_quoted(partial)}", COMMAND_TIMEOUT_S)
        raise


def _list_files(shell: Shell, remote: str, limits: _Limits) -> list[str]:
    """Return the relative names of the regular files under ``remote``; names may contain any character."""
    listing = f".hermes-listing-{uuid.uuid4().hex[:12]}"
    try:
        command = f"(CDPATH= cd -- {_quoted(remote)} && find . -type f -print0) > {listing}"
        _run_reading(shell, command, remote, limits, "Cannot list")
        raw = _read(shell, listing, limits)
    finally:
        shell.terminal(f"rm -f -- {listing}", COMMAND_TIMEOUT_S)
    names = [entry.decode(errors="surrogateescape") for entry in raw.split(b"\0") if entry]
    return sorted(name.removeprefix("./") for name in names if not name.endswith("/" + listing))


def _download(shell: Shell, remote: str, local: Path, limits: _Limits) -> dict[str, Any]:
    try:
        data = _read(shell, remote, limits)
        _write_atomically(local, data)
    except (TransferError, OSError, ValueError) as error:  # ValueError: a NUL in the local path
        return {"success": False, "error": str(error)}
    return {"success": True, "bytes": len(data)}


def _write_atomically(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:32]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(partial).replace(path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


def _quoted(path: str) -> str:
    """Quote a path for the shell; a leading ``~`` still means the home directory, and a leading dash starts no option."""
    if path == "~":
        return '"$HOME"'
    if path.startswith("~/"):
        return f'"$HOME"/{_quoted_text(path[2:])}'
    return _quoted_text(f"./{path}" if path.startswith("-") else path)


def _quoted_text(text: str) -> str:
    """Quote text for bash. Bytes that are not UTF-8 are escaped, because some backends cannot send them."""
    if text.isascii() or not any("\udc80" <= letter <= "\udcff" for letter in text):
        return shlex.quote(text)
    escaped = (f"\\x{byte:02x}" for byte in text.encode(errors="surrogateescape"))
    return f"$'{''.join(escaped)}'"


def _run(shell: Shell, command: str, failure: str) -> str:
    """Run a command and return its output. Raises: TransferError when it fails."""
    return _output(shell.terminal(command, COMMAND_TIMEOUT_S), failure)


def _run_reading(shell: Shell, command: str, remote: str, limits: _Limits, failure: str = "Cannot read") -> str:
    """Run a command that reads ``remote`` and return its output. Raises: it took too long, no regular file → NotReadable."""
    result = shell.terminal(command, limits.seconds_left(remote))
    if result.get("exit_code") == TIMED_OUT:
        raise limits.timed_out(remote)
    if str(result.get("output")).strip() == NOT_REGULAR:
        raise NotReadable(f"{failure} {remote}: {NOT_REGULAR}")
    return _output(result, f"{failure} {remote}")


def _output(result: dict[str, Any], failure: str) -> str:
    exit_code = result.get("exit_code")
    if exit_code != 0 or result.get("error"):
        reason = result.get("error") or result.get("output") or "no output"
        raise TransferError(f"{failure} (exit code {exit_code}): {str(reason)[:200]}")
    return str(result.get("output") or "")
