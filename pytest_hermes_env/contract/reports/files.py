"""Files that are there as a whole or not at all, whoever reads them while they are written."""

from __future__ import annotations

import os
import tempfile

from pytest_hermes_env.errors import UsageError

__all__ = ["write_whole"]


def write_whole(path: str, text: str) -> None:
    """Write ``text`` to ``path``, making its directory; a reader sees the old file or the new one, never a part.

    Raises: UsageError when the place cannot be written to.
    """
    folder = os.path.dirname(os.path.abspath(path))
    try:
        os.makedirs(folder, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=folder, prefix=f".{os.path.basename(path)}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
            os.chmod(draft, 0o666 & ~_umask())
            os.replace(draft, path)
        except BaseException:
            os.unlink(draft)
            raise
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error


def _umask() -> int:
    """Return the mask of new files; it can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
