"""The init program of a cell: no network but a private loopback, every file read-only except below one directory.

Run as a program, on Linux: ``python -I -S cell_init.py WRITABLE EMPTY_DIRECTORY EMPTY_FILE [HIDDEN ...]``. It creates user,
mount, pid, network and IPC namespaces, sets them up, prints one line of JSON, and ends. The first process of the pid namespace
stays until its standard input ends; then the kernel kills every process in the cell, detached ones included.

Place in the flow: `cell.Cell` starts it where bubblewrap is not installed, and joins each command to its namespaces.

No process in the cell has a capability: the only mapped user is not root, so no process can undo the set-up.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Iterator

__all__ = ["DEVICES", "DEVICE_LINKS", "ORDINARY_USER", "main"]

CLONE_NEWNS = 0x0002_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 0x1000, 0x4000, 0x4_0000
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID = 1, 2
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
SYS_MOUNT_SETATTR = 442
"""The same number on every architecture; glibc has a function for it since 2.36 only."""
SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 0x1, 0x40

ORDINARY_USER = 1000
"""The user id of root in the cell: as root it would have every capability there."""
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
"""The devices that a command sees: no disks, which root could open, and no terminals of the user."""
DEVICE_LINKS = (
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
)


class MountAttributes(ctypes.Structure):
    """``struct mount_attr`` of Linux 5.12."""

    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


libc = ctypes.CDLL(None, use_errno=True)


def main(writable: str, empty_directory: str, empty_file: str, *hidden: str) -> None:
    """Run the cell until standard input ends. ``hidden`` directories show ``empty_directory``, hidden files ``empty_file``.

    Prints ``{"pid": n}``, the host's id of the process whose namespaces a command joins, or ``{"error": reason}``.
    """
    try:
        with _naming_step("unshare"):
            _make_namespaces()
        report, send = os.pipe()
        first = os.fork()
    except OSError as error:
        print(json.dumps({"error": _reason(error)}), flush=True)  # noqa: T201 - the parent reads it
        return
    if first == 0:
        covers = [(empty_directory if os.path.isdir(path) else empty_file, path) for path in hidden]
        _run_as_init(writable, covers, send)
    os.close(send)
    with open(report, encoding="utf-8") as file:
        error_text = file.read()
    print(json.dumps({"error": error_text} if error_text else {"pid": first}), flush=True)  # noqa: T201
    if error_text:
        os.waitpid(first, 0)


def _make_namespaces() -> None:
    user, group = os.geteuid(), os.getegid()
    _raise_on_error(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC))
    for name, content in (
        ("uid_map", f"{user or ORDINARY_USER} {user} 1"),
        ("setgroups", "deny"),
        ("gid_map", f"{group or ORDINARY_USER} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(content)


def _run_as_init(writable: str, covers: list[tuple[str, str]], report: int) -> None:
    """Run as process 1 of the pid namespace: set up the mounts, report, reap, and end when standard input does."""
    try:
        _set_up_mounts(writable, covers)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    except OSError as error:
        os.write(report, _reason(error).encode())
        os._exit(1)
    os.close(report)
    while os.read(0, 1):
        pass
    os._exit(0)


def _set_up_mounts(writable: str, covers: list[tuple[str, str]]) -> None:
    _mount("", "/", "", MS_REC | MS_PRIVATE)
    _make_devices()
    _mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY)
    _change_attributes("/", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, 0)
    for cover, path in covers:
        with _ignoring_unreachable():
            _mount(cover, path, "", MS_BIND)
    for source, path in ((writable, writable), (os.path.join(writable, "shm"), "/dev/shm")):  # noqa: S108 - that is its name
        _mount(source, path, "", MS_BIND)
        _change_attributes(path, MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY)
    with _naming_step("loopback"), socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP | IFF_RUNNING))


def _make_devices() -> None:
    real = {name: os.open(f"/dev/{name}", os.O_PATH) for name in DEVICES if os.path.exists(f"/dev/{name}")}
    _mount("tmpfs", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64k")
    for name, descriptor in real.items():
        with open(f"/dev/{name}", "wb"):
            _mount(f"/proc/self/fd/{descriptor}", f"/dev/{name}", "", MS_BIND)
        os.close(descriptor)
    for name, target in DEVICE_LINKS:
        os.symlink(target, f"/dev/{name}")
    os.mkdir("/dev/shm")  # noqa: S108 - that is its name


def _mount(source: str, path: str, kind: str, flags: int, data: str = "") -> None:
    texts = [os.fsencode(text) if text else None for text in (source, path, kind)]
    with _naming_step(f"mount {path}"):
        _raise_on_error(libc.mount(*texts, ctypes.c_ulong(flags), os.fsencode(data) if data else None))


def _change_attributes(path: str, added: int, removed: int) -> None:
    """Change the attributes of the mount at ``path`` and of all mounts below it."""
    attributes = MountAttributes(added, removed, 0, 0)
    numbers = [ctypes.c_long(number) for number in (SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE)]
    with _naming_step(f"mount_setattr {path}"):
        arguments = (numbers[0], numbers[1], os.fsencode(path), numbers[2], ctypes.byref(attributes))
        _raise_on_error(libc.syscall(*arguments, ctypes.c_size_t(ctypes.sizeof(attributes))))


def _raise_on_error(returned: int) -> None:
    if returned != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@contextlib.contextmanager
def _naming_step(name: str) -> Iterator[None]:
    """Name the failed step in an OSError."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from error


@contextlib.contextmanager
def _ignoring_unreachable() -> Iterator[None]:
    """Ignore a path that commands cannot reach either: it is below a directory that only root may enter."""
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.EACCES, errno.ENOENT}:
            raise


def _reason(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}"


if __name__ == "__main__":
    main(*sys.argv[1:])
