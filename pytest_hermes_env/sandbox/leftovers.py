"""Removes the sandboxes of test processes that were killed before they could do it.

Each sandbox directory has a file that its test process keeps locked. A lock ends with its process, however it ends, so a directory
whose file can be locked belongs to nobody. Directories without that file, of other users, and links are left alone.

Place in the flow: `LocalSandbox` claims its directory at its start, after it has removed leftovers.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["claim", "remove_leftovers"]

OWNER = "owner"
"""The locked file in a sandbox directory, outside of the part that commands see."""


def claim(directory: Path) -> Callable[[], None]:
    """Mark ``directory`` as used by this process, until the returned function is called or the process ends."""
    partial = directory / f".{OWNER}"
    handle = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    with contextlib.suppress(OSError):  # a file system without locks: then a leftover stays
        _lock(handle)
        partial.rename(directory / OWNER)  # it never exists unlocked while its process runs
    return lambda: os.close(handle)


def remove_leftovers(parent: Path, prefix: str, remove: Callable[[Path], None]) -> None:
    """Call ``remove`` with each claimed directory ``prefix*`` in ``parent`` whose process has ended."""
    for directory in sorted(parent.glob(f"{prefix}*")):
        with contextlib.suppress(OSError), _locked(directory):
            remove(directory)


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory of this user. Raises: it is not one, or its process runs → OSError."""
    place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        handle = os.open(OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)
        try:
            for number, kind in ((place, stat.S_ISDIR), (handle, stat.S_ISREG)):
                status = os.fstat(number)
                if status.st_uid != os.geteuid() or not kind(status.st_mode):
                    raise PermissionError(f"{directory} is not a sandbox of this user")
            _lock(handle)
            yield
        finally:
            os.close(handle)
    finally:
        os.close(place)


def _lock(handle: int) -> None:
    """Lock an open file until it is closed. Raises: another process has locked it → OSError."""
    import fcntl  # noqa: PLC0415 - does not exist on every system

    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
