"""Removes the sandboxes of processes that were killed before they could do it: their directories, and what still runs there.

For each sandbox there is a small file in the system's temporary directory, which its process keeps locked. A lock ends with its
process, however it ends, so a file that can be locked describes an abandoned sandbox. Only the directory that the file identifies
is removed: no link, nothing of another user, and not another directory of the same name.

Removing never raises, and nobody waits for it for long: what takes its time is done by a thread beside the work, or by the next
process. What resists is set aside under another name, reported once, and left alone from then on.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import logging
import math
import os
import stat
import tempfile
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

from hermes_env_shared import trees
from hermes_env_shared.processes import SESSION_VARIABLE, kill_processes

__all__ = ["claim", "is_gone", "left_behind", "remove_abandoned", "remove_abandoned_meanwhile", "remove_tree"]

logger = logging.getLogger(__name__)

PREFIX = ".hermes-rollout-"
SET_ASIDE = "hermes-set-aside-"
"""How the names of directories begin that could not be removed."""

INLINE_S = 2.0
"""Seconds that whoever removes a tree waits for it."""
LAST_S = 5.0
"""Seconds that the end of a process waits for the removal of what others abandoned."""


def claim(directory: str, mark: str, *, variable: str = SESSION_VARIABLE) -> Callable[[], None]:
    """Note that this process uses ``directory``, until the returned function is called.

    ``variable`` has the value ``mark`` in the commands of the sandbox. Without room for a note, the directory of a killed process stays.
    """
    place = Path(tempfile.gettempdir())
    name = uuid.uuid4().hex
    partial, final = place / f".partial{PREFIX}{name}", place / f"{PREFIX}{name}"
    try:
        status = os.lstat(directory)
        handle = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    except OSError:
        return lambda: None
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


def left_behind() -> tuple[list[str], list[str]]:
    """Return what is still there of killed processes of this user, and what could not be removed and was set aside."""
    place, noted = Path(tempfile.gettempdir()), []
    for path in place.glob(f"{PREFIX}*"):
        with (
            contextlib.suppress(OSError, ValueError, KeyError, TypeError),
            open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file,
        ):
            _lock(file.fileno())
            noted.append(str(json.load(file)["directory"]))
    return noted, [str(path) for path in place.glob(f"{SET_ASIDE}*")]


@functools.cache
def remove_abandoned_meanwhile() -> None:
    """Remove them in a thread, once in a process."""
    thread = threading.Thread(target=remove_abandoned, name="removes abandoned sandboxes", daemon=True)
    thread.start()
    atexit.register(thread.join, LAST_S)


def remove_tree(directory: str, *, inode: int | None = None, then: Callable[[], None] = lambda: None) -> None:
    """Remove a directory with everything in it, whatever commands did to it, and call ``then``. Never raises.

    What takes more than `INLINE_S` seconds is removed by a thread. ``inode`` identifies the directory: one that was moved within
    its parent is removed there, too.
    """
    if inode is not None and not _is_there(directory, inode):
        _remove_moved(directory, inode)
    try:
        _remove(directory, INLINE_S)
    except TimeoutError:
        with contextlib.suppress(RuntimeError):  # no more threads: the process ends, and the next one finds the note
            threading.Thread(target=_finish, args=(directory, then), name="removes a large sandbox", daemon=True).start()
        return
    then()


def _finish(directory: str, then: Callable[[], None]) -> None:
    _remove(directory)
    then()


def _remove(directory: str, seconds: float = math.inf) -> None:
    """Remove a directory, or set aside what resists. Raises: it takes more than ``seconds`` → TimeoutError."""
    resisting = trees.remove(directory, seconds=seconds)
    if resisting:
        place = os.path.join(os.path.dirname(directory), f"{SET_ASIDE}{uuid.uuid4().hex}")
        try:
            os.rename(directory, place)
        except OSError:  # it is a mount, say
            place = directory
        logger.warning("%s could not be removed, and is left as %s: %.300s", directory, place, "; ".join(resisting[:3]))


def is_gone(directory: str) -> bool:
    """Whether nothing is there. Raises: that cannot be known, as in a directory that was closed → OSError."""
    try:
        os.lstat(directory)
    except FileNotFoundError:
        return True
    return False


def _is_there(directory: str, inode: int) -> bool:
    with contextlib.suppress(OSError):
        return os.lstat(directory).st_ino == inode
    return False


def _remove_moved(directory: str, inode: int) -> None:
    """Remove a directory that a command moved within its parent, and say so."""
    with contextlib.suppress(OSError), os.scandir(os.path.dirname(directory)) as entries:
        for entry in entries:
            if entry.inode() == inode and entry.is_dir(follow_symlinks=False):
                logger.warning("A command moved the sandbox %s to %s: it is removed there", directory, ascii(entry.path))
                remove_tree(entry.path)
                return
    if os.path.lexists(directory):
        logger.warning("A command put something else in the place of the sandbox %s; where it moved that is unknown", directory)


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
            _remove(note["directory"])
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
