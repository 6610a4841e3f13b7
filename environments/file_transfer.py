"""Moves bytes in and out of a sandbox through its terminal, the one tool that every backend has.

Files are sent as base64 in chunks. Every path is quoted, every chunk is checked, a target file appears only when it is
complete, and no file name in a sandbox can make a download write outside its target directory.

Place in the flow: `ToolContext` calls these functions with itself as the terminal.
"""

from __future__ import annotations

import base64
import binascii
import os
import posixpath
import shlex
import tempfile
import uuid
from pathlib import Path
from typing import Any, Protocol

__all__ = ["TransferError", "download_dir", "download_file", "read_bytes", "upload_dir", "upload_file"]

UPLOAD_CHARS = 60_000
"""base64 characters per upload command; a shell argument is limited to 128 KB. A multiple of four, so that each chunk decodes."""

DOWNLOAD_BYTES = 33_000
"""Bytes per download command: 44,000 base64 characters stay below hermes' limit of 50,000 characters of output."""


class TransferError(Exception):
    """A transfer failed; the message has the reason."""


class Terminal(Protocol):
    """The method that a transfer requires."""

    def terminal(self, command: str, timeout: int = 180) -> dict[str, Any]:
        """Run a command and return its exit code and output."""


def upload_file(terminal: Terminal, local: Path, remote: str) -> dict[str, Any]:
    """Copy ``local`` into the sandbox; see `ToolContext.upload_file`."""
    try:
        data = local.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the local path
        return {"exit_code": -1, "output": f"Cannot read local file {local}: {error}"}
    try:
        _write_bytes(terminal, data, remote)
    except TransferError as error:
        return {"exit_code": -1, "output": str(error)}
    return {"exit_code": 0, "output": f"{len(data)} bytes to {remote}", "bytes": len(data)}


def upload_dir(terminal: Terminal, local: Path, remote: str) -> list[dict[str, Any]]:
    """Copy every regular file under ``local``; see `ToolContext.upload_dir`."""
    if not local.is_dir():
        return [{"exit_code": -1, "output": f"Local directory not found: {local}"}]
    files = sorted(path for path in local.rglob("*") if path.is_file())
    return [
        {"path": str(path), **upload_file(terminal, path, posixpath.join(remote, path.relative_to(local).as_posix()))}
        for path in files
    ]


def download_file(terminal: Terminal, remote: str, local: Path) -> dict[str, Any]:
    """Copy one file out of the sandbox; see `ToolContext.download_file`."""
    try:
        data = read_bytes(terminal, remote)
        _write_atomically(local, data)
    except (TransferError, OSError, ValueError) as error:  # ValueError: a NUL in the local path
        return {"success": False, "error": str(error)}
    return {"success": True, "bytes": len(data)}


def download_dir(terminal: Terminal, remote: str, local: Path) -> list[dict[str, Any]]:
    """Copy every regular file under ``remote``; see `ToolContext.download_dir`."""
    try:
        names = _list_files(terminal, remote)
    except TransferError as error:
        return [{"success": False, "path": remote, "error": str(error)}]
    root = Path(os.path.realpath(local))
    root.mkdir(parents=True, exist_ok=True)
    return [{"path": name, **_download_into(terminal, remote, name, root)} for name in names]


def read_bytes(terminal: Terminal, remote: str) -> bytes:
    """Return a sandbox file's bytes. Raises: TransferError with the reason."""
    path = _quoted(remote)
    size_text = _run(terminal, f"wc -c < {path}", f"Cannot read {remote}").strip()
    if not size_text.isdecimal():
        raise TransferError(f"Cannot read {remote}: its size came back as {size_text[:200]!r}")
    size = int(size_text)
    data = bytearray()
    while len(data) < size:
        chunk = _read_chunk(terminal, remote, len(data), min(DOWNLOAD_BYTES, size - len(data)))
        data += chunk
    return bytes(data)


def _read_chunk(terminal: Terminal, remote: str, start: int, length: int) -> bytes:
    """Return ``length`` bytes from ``start``, sent as base64, or as hexadecimal if hermes redacted the base64 as a secret."""
    cut = f"tail -c +{start + 1} < {_quoted(remote)} | head -c {length}"
    for encode, decode in ((f"{cut} | base64", _from_base64), (f"{cut} | od -An -v -tx1", _from_hex)):
        chunk = decode(_run(terminal, encode, f"Cannot read {remote} from byte {start}"))
        if chunk is not None and len(chunk) == length:
            return chunk
    raise TransferError(f"Cannot read {remote}: bytes {start} to {start + length} arrived incomplete")


def _from_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return None


def _from_hex(text: str) -> bytes | None:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return None


def _write_bytes(terminal: Terminal, data: bytes, remote: str) -> None:
    """Write a sandbox file: under a temporary name first, then move it into place."""
    partial = f"{remote}.{uuid.uuid4().hex[:8]}.part"
    directory = posixpath.dirname(remote)
    if directory:
        _run(terminal, f"mkdir -p -- {_quoted(directory)}", f"Cannot create the directory of {remote}")
    text = base64.b64encode(data).decode()
    chunks = [text[at : at + UPLOAD_CHARS] for at in range(0, len(text), UPLOAD_CHARS)] or [""]
    try:
        for number, chunk in enumerate(chunks, 1):
            redirect = ">" if number == 1 else ">>"
            command = f"printf %s {shlex.quote(chunk)} | base64 -d {redirect} {_quoted(partial)}"
            _run(terminal, command, f"Cannot write {remote}: chunk {number} of {len(chunks)} failed")
        place = f"if [ -d {_quoted(remote)} ]; then echo 'it is a directory'; exit 1; fi; "
        _run(terminal, f"({place}mv -f -- {_quoted(partial)} {_quoted(remote)})", f"Cannot write {remote}")
    except TransferError:
        terminal.terminal(f"rm -f -- {_quoted(partial)}")
        raise


def _list_files(terminal: Terminal, remote: str) -> list[str]:
    """Return the relative names of the regular files under ``remote``; names may contain any character."""
    listing = f".hermes-listing-{uuid.uuid4().hex[:12]}"
    try:
        command = f"(CDPATH= cd -- {_quoted(remote)} && find . -type f -print0) > {listing}"
        _run(terminal, command, f"Cannot list {remote}")
        raw = read_bytes(terminal, listing)
    finally:
        terminal.terminal(f"rm -f -- {listing}")
    names = [entry.decode(errors="surrogateescape") for entry in raw.split(b"\0") if entry]
    return sorted(name.removeprefix("./") for name in names if not name.endswith("/" + listing))


def _download_into(terminal: Terminal, remote: str, name: str, root: Path) -> dict[str, Any]:
    """Download one listed file, unless its path would lie outside ``root``."""
    target = Path(os.path.realpath(root / name))
    if not target.is_relative_to(root) or target == root:
        return {"success": False, "error": f"Refused: the listed name {name!r} leads outside {root}"}
    return download_file(terminal, posixpath.join(remote, name), target)


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


def _run(terminal: Terminal, command: str, failure: str) -> str:
    """Run a command and return its output. Raises: TransferError when it fails."""
    result = terminal.terminal(command)
    exit_code = result.get("exit_code")
    if exit_code != 0 or result.get("error"):
        reason = result.get("error") or result.get("output") or "no output"
        raise TransferError(f"{failure} (exit code {exit_code}): {str(reason)[:200]}")
    return str(result.get("output") or "")
