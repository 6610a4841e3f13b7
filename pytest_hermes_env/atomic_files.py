"""Writes files in one step, by one process at a time: a reader sees the old content or the new, never a part.

Cassettes and reports are written here; the functions raise the error of the kind of file.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from pytest_hermes_env.errors import BadCassette, UsageError, shorten


def replace_file(path: Path, data: bytes) -> None:
    """Put ``data`` into a cassette in one step, even if this process is killed meanwhile.

    Raises: the directory cannot be written, the disk is full, or another process is writing this file → BadCassette.
    """
    try:
        _replace(path, data)
    except BlockingIOError as error:
        raise _in_use(path, "") from error
    except OSError as error:
        raise BadCassette(
            f"{path}: this cassette could not be written: {error.strerror}.\n"
            "  seen      what the file held before is unchanged\n"
            "  fix       make room, or make the directory writable, and record again"
        ) from error


def write_text(path: str, text: str) -> None:
    """Put ``text`` into a report in one step, and make its directory. Raises: as `write_bytes`."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def write_bytes(path: str, data: bytes) -> None:
    """Put ``data`` into a file in one step, and make its directory. Raises: it cannot be written, or another process writes it → UsageError."""
    try:
        _replace(Path(path), data)
    except OSError as error:
        file = next((folder for folder in reversed(Path(path).parents) if folder.is_file()), None)
        why = f"{file} is a file.\n  fix       move it, or write elsewhere" if file is not None else error.strerror or error
        raise UsageError(f"{path} cannot be written: {why}") from error


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Keep other processes from recording to ``path`` while the block runs. The lock ends with the process.

    Raises: another process, or another block of this one, is recording to the file → BadCassette.
    """
    target = Path(os.path.realpath(path))
    with contextlib.ExitStack() as stack:
        try:
            stack.callback(_remove_empty, [folder for folder in target.parents if not folder.exists()])
            handle = stack.enter_context(_locked(target.with_name(f".{target.name}.lock")))
            os.ftruncate(handle, 0)
            _write_all(handle, f"process {os.getpid()}".encode())
        except BlockingIOError as error:
            raise _in_use(path, f" ({error.filename})") from error
        except OSError as error:
            raise BadCassette(
                f"{path}: no cassette can be recorded here: {error.strerror}.\n"
                "  fix       make room, or make the directory writable"
            ) from error
        yield


def _remove_empty(folders: list[Path]) -> None:
    """Remove directories that were made for a recording which was not written, the innermost first."""
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:  # it holds something, or was never made
            return


def _in_use(path: Path, owner: str) -> BadCassette:
    return BadCassette(
        f"{path}: another process{owner} is recording to this cassette.\n"
        "  expected  one writer: each test has a cassette of its own\n"
        "  fix       wait for it, or give one of the two another name: @pytest.mark.hermes_cassette(NAME)"
    )


def _replace(path: Path, data: bytes) -> None:
    """Write to a file next to ``path``, then rename it. Raises: OSError; BlockingIOError while another process does the same."""
    target = Path(os.path.realpath(path))
    if target.is_dir():  # the root has no name for a file beside it
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    temporary = target.with_name(f".{target.name}.tmp")
    with _locked(temporary) as handle:
        os.ftruncate(handle, 0)  # removes the rest of a process that was killed
        _write_all(handle, data)
        os.fchmod(handle, target.stat().st_mode & 0o777 if target.exists() else 0o644)
        os.fsync(handle)
        os.replace(temporary, target)
        _sync_directory(target.parent)


@contextlib.contextmanager
def _locked(lock: Path) -> Iterator[int]:
    """Yield the handle of a file that no other process has, and remove it at the end unless it was moved away. Its directory is made.

    Raises: BlockingIOError, with the content of the file as its ``filename``, when another process has it.
    """
    while True:
        lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:  # another process removed the directory, which was empty
            continue
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                owner = shorten(os.pread(handle, 40, 0).decode("ascii", "replace"))
                raise BlockingIOError(error.errno, "another process is writing it", owner) from error
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
