"""Files that are whole or not there: replaced in one step, and written by one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from pytest_hermes_env.errors import BadCassette, shorten

__all__ = ["exclusive", "replace_file"]


def replace_file(path: Path, data: bytes) -> None:
    """Put ``data`` into a file in one step: whoever reads, and whenever this process dies, finds the old content or the new.

    Raises:
        BadCassette: the directory cannot be written, the disk is full, or another process writes this file at this moment.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(temporary, path) as handle:
            os.ftruncate(handle, 0)  # what a process that was killed has left
            _write_all(handle, data)
            os.fchmod(handle, target.stat().st_mode & 0o777 if target.exists() else 0o644)
            os.fsync(handle)
            os.replace(temporary, target)
            _sync_directory(target.parent)
    except OSError as error:
        raise BadCassette(
            f"{path}: this cassette could not be written: {error.strerror}.\n"
            "  seen      what the file held before is unchanged\n"
            "  fix       make room, or make the directory writable, and record again"
        ) from error


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Keep other processes from recording to ``path`` while the block runs. The lock ends with the process, however it ends.

    Raises:
        BadCassette: another process, or another block of this one, is recording to the file.
    """
    target = Path(os.path.realpath(path))
    with contextlib.ExitStack() as stack:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            handle = stack.enter_context(_locked(target.with_name(f".{target.name}.lock"), path))
            os.ftruncate(handle, 0)
            _write_all(handle, f"process {os.getpid()}".encode())
        except OSError as error:
            raise BadCassette(
                f"{path}: no cassette can be recorded here: {error.strerror}.\n"
                "  fix       make room, or make the directory writable"
            ) from error
        yield


@contextlib.contextmanager
def _locked(lock: Path, path: Path) -> Iterator[int]:
    """Give the handle of a file that no other process has, and remove it at the end unless it was moved away."""
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                holder = shorten(os.pread(handle, 40, 0).decode("ascii", "replace")) if lock.suffix == ".lock" else ""
                raise BadCassette(
                    f"{path}: another process{f' ({holder})' if holder else ''} is recording to this cassette.\n"
                    "  expected  one writer: each test has a cassette of its own\n"
                    "  fix       wait for it, or give one of the two another name: @pytest.mark.hermes_cassette(NAME)"
                ) from error
            if not _is_at(handle, lock):  # moved or removed between opening and locking
                continue
            try:
                yield handle
            finally:
                if _is_at(handle, lock):
                    lock.unlink()
            return
        finally:
            os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
