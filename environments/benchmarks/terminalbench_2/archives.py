"""Archives of benchmark tasks: base64 of a tar file, compressed or not, unpacked so that nothing lands outside of its directory."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

MAX_BYTES = 256 * 1024 * 1024
MAX_MEMBERS = 20_000
HEADER_BYTES = 1024
"""How much of an archive a member may take beside its content, on average."""
_DECOMPRESSED: dict[bytes, Callable[[io.BytesIO], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
"""The first bytes of a compressed archive -> what reads it."""


class ArchiveError(ValueError):
    """An archive cannot be read, or is not safe to unpack."""


class _Bounded:
    """The bytes of an archive, decompressed, up to a limit: tarfile reads headers of any length into memory."""

    def __init__(self, data: bytes, limit: int) -> None:
        opened = next((opened for start, opened in _DECOMPRESSED.items() if data.startswith(start)), None)
        self._source = opened(io.BytesIO(data)) if opened else io.BytesIO(data)
        self._left = limit

    def read(self, size: int) -> bytes:
        """Return the next bytes. Raises: ArchiveError beyond the limit."""
        data = self._source.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise ArchiveError("the headers of the archive are too long")
        return data


def unpack(text: str, directory: Path, *, max_bytes: int = MAX_BYTES) -> None:
    """Unpack an archive into ``directory``: plain files, directories, and links downwards.

    A path or link that goes up is refused even if it would stay inside: tarfile's own filter was led out by chains of such links
    (CVE-2025-4517, fixed in Python 3.12.11 and 3.13.4), and links that only go down lead nowhere else.

    Raises: ArchiveError for an archive that cannot be read, for a member that goes up, devices, more than `MAX_MEMBERS` members, or
    files of more than ``max_bytes`` together.
    """
    try:
        data = _Bounded(base64.b64decode(text, validate=True), max_bytes + MAX_MEMBERS * HEADER_BYTES)
        with tarfile.open(fileobj=data, mode="r|") as archive:  # type: ignore[call-overload]  # typeshed asks for more than read()
            size = 0
            for number, member in enumerate(archive, start=1):
                size += member.size
                _check(member, number, size, max_bytes)
                archive.extract(member, directory, filter="data")
    except ArchiveError:
        raise
    except (ValueError, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, RecursionError) as error:
        raise ArchiveError(f"the archive cannot be unpacked: {type(error).__name__}: {error}") from error


def _check(member: tarfile.TarInfo, number: int, size: int, max_bytes: int) -> None:
    """Raises: ArchiveError for a member that goes up, or that is too much."""
    if not 0 <= member.size <= size <= max_bytes or number > MAX_MEMBERS:
        raise ArchiveError(f"the archive holds more than {max_bytes:,} bytes or {MAX_MEMBERS:,} members")
    if any(".." in path.split("/") for path in (member.name, member.linkname)):
        raise ArchiveError(f"the archive holds a path that goes up: {member.name[:200]} {member.linkname[:200]}".rstrip())


def packed(files: Mapping[str, str]) -> str:
    """Return an archive of text files, by their paths."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, content in files.items():
            data = content.encode()
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(data), 0o644
            archive.addfile(member, io.BytesIO(data))
    return base64.b64encode(buffer.getvalue()).decode()
