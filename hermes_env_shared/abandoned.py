"""Removes the sandboxes of processes that were killed before they could do it: their directories, and what still runs there.

For each sandbox there is a small file in the system's temporary directory, which its process keeps locked. A lock ends with its
process, however it ends, so a file that can be locked describes an abandoned sandbox. Only the directory that the file identifies
is removed: no link, nothing of another user, and not another directory of the same name.
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

from hermes_env_shared.processes import SESSION_VARIABLE, kill_processes

__all__ = ["claim", "remove_abandoned", "remove_tree"]

PREFIX = ".hermes-rollout-"


def claim(directory: str, mark: str, *, variable: str = SESSION_VARIABLE) -> Callable[[], None]:
    """Note that this process uses ``directory``, until the returned function is called.

    ``variable`` has the value ``mark`` in the commands of the sandbox.
    """
    status = os.lstat(directory)
    place = Path(tempfile.gettempdir())
    name = uuid.uuid4().hex
    partial, final = place / f".partial{PREFIX}{name}", place / f"{PREFIX}{name}"
    handle = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    with contextlib.suppress(OSError):  # a file system without locks: then an abandoned sandbox stays
        _lock(handle)
        identity = {"directory": directory, "device": status.st_dev, "inode": status.st_ino}
        os.write(handle, json.dumps({**identity, "variable": variable, "mark": mark}).encode())
        partial.rename(final)  # it never exists unlocked while its process runs

    def release() -> None:
        os.close(handle)
        for path in (partial, final):
            path.unlink(missing_ok=True)

    return release


def remove_abandoned() -> None:
    """Remove the sandboxes of killed processes of this user."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # its process runs, or it is not a note
            _remove_noted(path)


def remove_tree(directory: str) -> None:
    """Remove a directory with everything in it, including directories that commands made inaccessible."""
    for place, names, _ in os.walk(directory):
        for name in names:
            inner = os.path.join(place, name)
            if not os.path.islink(inner):
                with contextlib.suppress(OSError):
                    os.chmod(inner, 0o700)
    shutil.rmtree(directory, ignore_errors=True)


def _remove_noted(path: Path) -> None:
    handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            return
        _lock(handle)
        note = json.loads(os.read(handle, 2**16))
        kill_processes(mark=note["mark"], directory=note["directory"], variable=note["variable"])
        if _is_same(note):
            remove_tree(note["directory"])
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
