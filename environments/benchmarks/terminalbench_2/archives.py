"""Archives of benchmark tasks: base64 of a tar file, compressed or not, unpacked so that nothing lands outside of its directory."""

from __future__ import annotations

import base64
import binascii
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

__all__ = ["ArchiveError", "packed", "unpack"]

MAX_BYTES = 256 * 1024 * 1024
MAX_MEMBERS = 20_000


class ArchiveError(ValueError):
    """An archive cannot be read, or is not safe to unpack."""


def unpack(text: str, directory: Path, *, max_bytes: int = MAX_BYTES) -> None:
    """Unpack an archive into ``directory``: plain files, directories, and links that stay inside it.

    Raises: ArchiveError for an archive that cannot be read, for members that would land outside, devices, more than `MAX_MEMBERS`
    members, or files of more than ``max_bytes`` together.
    """
    try:
        data = base64.b64decode(text, validate=True)
        with tarfile.open(fileobj=io.BytesIO(data), mode="r|*") as archive:
            size = 0
            for number, member in enumerate(archive, start=1):
                size += member.size
                if size > max_bytes or number > MAX_MEMBERS:
                    raise ArchiveError(f"the archive holds more than {max_bytes:,} bytes or {MAX_MEMBERS:,} members")
                archive.extract(member, directory, filter="data")
    except (binascii.Error, tarfile.TarError, EOFError, OSError) as error:
        raise ArchiveError(f"the archive cannot be unpacked: {type(error).__name__}: {error}") from error


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
