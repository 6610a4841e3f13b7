"""Removes the directories and processes of rollouts whose process was killed before it could do it.

For each directory of a rollout there is a small file in the system's temporary directory, which the process keeps locked. A lock
ends with its process, however it ends, so a file that can be locked describes a leftover. Only directories that the file
identifies are removed: not links, not those of other users, and not another directory of the same name.

Place in the flow: `isolation` claims the directories that it creates.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path

from environments.rollout_processes import kill_processes

PREFIX = ".hermes-rollout-"


def claim(directory: str, mark: str) -> Callable[[], None]:
    """Note that this process uses ``directory``, until the returned function is called."""
    status = os.lstat(directory)
    place = Path(tempfile.gettempdir())
    name = uuid.uuid4().hex
    partial, final = place / f".partial{PREFIX}{name}", place / f"{PREFIX}{name}"
    handle = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    with contextlib.suppress(OSError):  # a file system without locks: then a leftover stays
        _lock(handle)
        note = {"directory": directory, "device": status.st_dev, "inode": status.st_ino, "mark": mark}
        os.write(handle, json.dumps(note).encode())
        partial.rename(final)  # it never exists unlocked while its process runs

    def release() -> None:
        os.close(handle)
        for path in (partial, final):
            path.unlink(missing_ok=True)

    return release


def remove_leftovers() -> None:
    """Remove what rollouts of killed processes of this user left."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # its process runs, or it is not a note
            _remove_leftover(path)


def _remove_leftover(path: Path) -> None:
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            return
        _lock(handle)
        note = json.loads(os.read(handle, 2**16))
        kill_processes(mark=note["mark"], directory=note["directory"])
        if _is_same(note):
            shutil.rmtree(note["directory"], ignore_errors=True)
        path.unlink()
    finally:
        os.close(handle)


def _is_same(note: dict[str, object]) -> bool:
    """Whether the noted directory is still the one that was noted."""
    with contextlib.suppress(FileNotFoundError):
        status = os.lstat(str(note["directory"]))
        known = (status.st_dev, status.st_ino) == (note["device"], note["inode"])
        return known and stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return False


def _lock(handle: int) -> None:
    """Lock an open file until it is closed. Raises: another process has locked it → OSError."""
    import fcntl  # noqa: PLC0415 - does not exist on every system

    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
