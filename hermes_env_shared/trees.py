"""Walks and removes directory trees that a model made: of any depth and width, and with any names and modes.

Everything is done through descriptors of a few directories, so that no path is ever longer than a name. No link is followed, and no
other file system is entered. What is seen may change or vanish meanwhile.

Place in the flow: `abandoned.remove_tree` and the programs in a cell use it, so it imports nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import stat
import time
from collections.abc import Iterator
from itertools import islice

__all__ = ["files", "make_directories", "remove", "usage"]

BATCH = 1000
"""Names that are read from a directory at a time."""

LEVELS = 20
"""Directories that are open at a time, one in the other."""

_IS_FULL = "it is not empty"


def remove(path: str, *, seconds: float = math.inf) -> list[str]:
    """Remove what is at ``path``, and return what resists, each with the reason.

    Raises: there is more than can be removed in ``seconds`` → TimeoutError; the next call goes on.
    """
    deadline = time.monotonic() + seconds
    try:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            os.unlink(path)
            return []
        top = _opened(path)
        try:
            if resisting := _empty(top, deadline, top):
                return resisting
        finally:
            os.close(top)
        os.rmdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except TimeoutError:
        raise
    except OSError as error:
        return [f"{path!a}: {error.strerror}"]
    return []


def usage(directory: str) -> tuple[int, int]:
    """Return the bytes and the number of the entries below a directory, also of those in directories that are closed."""
    used = number = 0
    with contextlib.suppress(OSError):
        for status in _statuses(_opened(directory, is_closed_again=True)):
            used += status.st_blocks * 512
            number += 1
    return used, number


def files(directory: str) -> list[str]:
    """Return the names of the files below a directory, relative to it, in order: of regular ones and of links to such.

    Directories that are links, and what cannot be listed or has no path, are left out.
    """
    found, pending = [], [""]
    while pending:
        place = pending.pop()
        with contextlib.suppress(OSError), os.scandir(os.path.join(directory, place)) as entries:
            for entry in entries:
                name = os.path.join(place, entry.name)
                if entry.is_dir(follow_symlinks=False):
                    pending.append(name)
                elif entry.is_file():
                    found.append(name)
    return sorted(found)


def make_directories(path: str) -> None:
    """Create a directory with those on the way to it, as `os.makedirs` does, but as many as there are."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for new in reversed(missing):
        with contextlib.suppress(FileExistsError):
            os.mkdir(new)


def _empty(directory: int, deadline: float, top: int, levels: int = LEVELS) -> list[str]:
    """Remove everything in an open directory, and return what resists.

    A directory so many ``levels`` below is moved to the ``top`` before it is emptied: so nothing is deeper than that.
    """
    device, resisting = os.fstat(directory).st_dev, dict[str, str]()
    while names := _some_names(directory, resisting):
        for name in names:
            if time.monotonic() > deadline:
                raise TimeoutError
            reason = _remove_entry(directory, name)
            if reason == _IS_FULL and not levels:
                reason = _move_up(directory, name, top)
            elif reason == _IS_FULL:
                reason = _remove_directory(directory, name, device, deadline, top, levels)
            if reason:
                resisting[name] = f"{name!a}: {reason}"
    return list(resisting.values())


def _remove_directory(outer: int, name: str, device: int, deadline: float, top: int, levels: int) -> str:
    """Remove a directory with everything in it. Return why it could not be removed, empty if it was."""
    try:
        directory = _opened(name, outer)
        try:
            if os.fstat(directory).st_dev != device:
                return "another file system is mounted there"
            if resisting := _empty(directory, deadline, top, levels - 1):
                return resisting[0]
        finally:
            os.close(directory)
    except FileNotFoundError:
        return ""
    except TimeoutError:
        raise
    except OSError as error:
        return str(error.strerror)
    return _remove_entry(outer, name)


def _remove_entry(directory: int, name: str) -> str:
    """Remove a file, a link or an empty directory. Return why it could not be removed, empty if it was."""
    try:
        os.unlink(name, dir_fd=directory)
    except FileNotFoundError:
        return ""
    except OSError as error:
        reason = str(error.strerror)
    else:
        return ""
    try:
        os.rmdir(name, dir_fd=directory)
    except FileNotFoundError:
        return ""
    except NotADirectoryError:
        return reason
    except OSError as error:  # a mount point is busy, whatever is in it
        return _IS_FULL if error.errno in {errno.ENOTEMPTY, errno.EEXIST} else str(error.strerror)
    return ""


def _move_up(directory: int, name: str, top: int) -> str:
    """Move a directory to the top under a new name. Return why it could not be moved, empty if it was."""
    try:
        os.close(_opened(name, directory))  # its owner must be able to write it
        os.rename(name, os.urandom(16).hex(), src_dir_fd=directory, dst_dir_fd=top)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return str(error.strerror)
    return ""


def _some_names(directory: int, without: dict[str, str]) -> list[str]:
    with os.scandir(directory) as entries:
        return list(islice((entry.name for entry in entries if entry.name not in without), BATCH))


def _opened(name: str, directory: int | None = None, *, is_closed_again: bool = False) -> int:
    """Open a directory, also one whose mode forbids it. It stays accessible to its owner, unless it ``is_closed_again``."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    try:
        opened = os.open(name, flags, dir_fd=directory)
    except PermissionError:
        if not hasattr(os, "O_PATH"):
            raise
        place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
        try:
            mode = stat.S_IMODE(os.fstat(place).st_mode)
            try:
                os.chmod(f"/proc/self/fd/{place}", stat.S_IRWXU)
            except FileNotFoundError:  # without /proc: the directory is there, and stays closed
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name) from None
            try:
                opened = os.open(name, flags, dir_fd=directory)
            finally:
                if is_closed_again:
                    os.chmod(f"/proc/self/fd/{place}", mode)
        finally:
            os.close(place)
    if not is_closed_again and os.fstat(opened).st_mode & stat.S_IRWXU != stat.S_IRWXU:
        with contextlib.suppress(OSError):
            os.fchmod(opened, stat.S_IRWXU)
    return opened


def _statuses(current: int) -> Iterator[os.stat_result]:
    """Yield the status of each entry below an open directory, which is closed in the end.

    It goes down by a name and up by ``..``: if that is not where it came from, the tree was changed, and it ends.
    """
    device = os.fstat(current).st_dev
    way: list[tuple[int, list[str]]] = []
    try:
        found, pending = _listed(current)
        while True:
            yield from found
            found = []
            if pending:
                with contextlib.suppress(OSError), _accessible(current):
                    inner = _opened(pending.pop(), current, is_closed_again=True)
                    way.append((os.fstat(current).st_ino, pending))
                    os.close(current)
                    current, pending = inner, []
                    if os.fstat(inner).st_dev == device:
                        found, pending = _listed(inner)
            elif way:
                inode, pending = way.pop()
                with _accessible(current):
                    outer = os.open("..", os.O_RDONLY | os.O_DIRECTORY, dir_fd=current)
                os.close(current)
                current = outer
                if os.fstat(current).st_ino != inode:
                    return
            else:
                return
    finally:
        os.close(current)


def _listed(directory: int) -> tuple[list[os.stat_result], list[str]]:
    """Return the status of each entry of an open directory, and the names of the directories."""
    found, directories = [], []
    with contextlib.suppress(OSError), _accessible(directory), os.scandir(directory) as entries:
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            found.append(status)
            if stat.S_ISDIR(status.st_mode):
                directories.append(entry.name)
    return found, directories


@contextlib.contextmanager
def _accessible(directory: int) -> Iterator[None]:
    """Let the owner of an open directory use the names in it meanwhile."""
    again = os.dup(directory)
    mode = stat.S_IMODE(os.fstat(again).st_mode)
    is_closed = not mode & stat.S_IXUSR
    try:
        if is_closed:
            os.fchmod(again, mode | stat.S_IXUSR)
        yield
    finally:
        if is_closed:
            os.fchmod(again, mode)
        os.close(again)
