"""Archives of benchmark tasks: base64 of a tar file, compressed or not, unpacked so that nothing lands outside of its directory."""

from __future__ import annotations

import base64
import io
import lzma
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path


class ArchiveError(ValueError):
    """An archive cannot be read, or is not safe to unpack."""


def unpack(text: str, directory: Path) -> None:
    """Unpack an archive into ``directory``: plain files, directories, and links downwards.

    A path or link that goes up is refused even if it would stay inside: tarfile's own filter was led out by chains of such links
    (CVE-2025-4517, fixed in Python 3.12.11 and 3.13.4), and links that only go down lead nowhere else.

    Raises: ArchiveError for an archive that cannot be read, for a member that goes up, and for devices.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(base64.b64decode(text, validate=True))) as archive:
            for member in archive:
                if any(".." in path.split("/") for path in (member.name, member.linkname)):
                    raise ArchiveError(f"it holds a path that goes up: {member.name[:200]} {member.linkname[:200]}".rstrip())
                archive.extract(member, directory, filter="data")
    except (ValueError, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError) as error:
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
