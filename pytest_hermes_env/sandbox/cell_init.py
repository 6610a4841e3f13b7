"""The program that holds a confined world open: no network but its own loopback, all files read-only but one directory.

Run as a program of its own, on Linux: ``python -I -S holder.py WORLD EMPTY BLANK [HIDDEN ...]``. It makes user, mount, pid,
network and IPC namespaces, arranges them, prints one line of JSON, and ends. The first process of the pid namespace stays until
its standard input ends; then the kernel kills every process that was started in this world, however it detached itself.

Place in the flow: `cell.Cell` starts it where bubblewrap is not at hand, and joins each command to its namespaces.

Nobody inside holds a capability: the one user who is mapped is not root, so nothing that is arranged here can be undone.
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
"""Who root is inside: as root it would hold every capability there."""
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
"""All of /dev that a command sees. Not the disks, which root could open; not the terminals of the user."""
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


def main(world: str, empty: str, blank: str, *hidden: str) -> None:
    """Let ``world`` be held open until standard input ends. ``hidden`` places show ``empty``, if directories, or ``blank``.

    Prints ``{"pid": n}``, the host's id of the process whose namespaces a command joins, or ``{"error": reason}``.
    """
    try:
        with _step("unshare"):
            _make_namespaces()
        readable, writable = os.pipe()
        first = os.fork()
    except OSError as error:
        print(json.dumps({"error": _reason(error)}), flush=True)  # noqa: T201 - the parent reads it
        return
    if first == 0:
        _be_first(world, [(empty if os.path.isdir(place) else blank, place) for place in hidden], writable)
    os.close(writable)
    with open(readable, encoding="utf-8") as report:
        error_text = report.read()
    print(json.dumps({"error": error_text} if error_text else {"pid": first}), flush=True)  # noqa: T201
    if error_text:
        os.waitpid(first, 0)


def _make_namespaces() -> None:
    user, group = os.geteuid(), os.getegid()
    _check(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC))
    for name, content in (
        ("uid_map", f"{user or ORDINARY_USER} {user} 1"),
        ("setgroups", "deny"),
        ("gid_map", f"{group or ORDINARY_USER} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(content)


def _be_first(world: str, covers: list[tuple[str, str]], report: int) -> None:
    """Be process 1 of the pid namespace: arrange the world, report, reap, and end when standard input does."""
    try:
        _arrange(world, covers)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    except OSError as error:
        os.write(report, _reason(error).encode())
        os._exit(1)
    os.close(report)
    while os.read(0, 1):
        pass
    os._exit(0)


def _arrange(world: str, covers: list[tuple[str, str]]) -> None:
    _mount("", "/", "", MS_REC | MS_PRIVATE)
    _make_devices()
    _mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY)
    _change("/", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, 0)
    for cover, place in covers:
        with _allowed_to_be_out_of_reach():
            _mount(cover, place, "", MS_BIND)
    for source, place in ((world, world), (os.path.join(world, "shm"), "/dev/shm")):  # noqa: S108 - that is its name
        _mount(source, place, "", MS_BIND)
        _change(place, MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY)
    with _step("loopback"), socket.socket() as any_socket:
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


def _mount(source: str, place: str, kind: str, flags: int, data: str = "") -> None:
    texts = [os.fsencode(text) if text else None for text in (source, place, kind)]
    with _step(f"mount {place}"):
        _check(libc.mount(*texts, ctypes.c_ulong(flags), os.fsencode(data) if data else None))


def _change(place: str, added: int, removed: int) -> None:
    """Change what is allowed at ``place`` and everything mounted below it."""
    attributes = MountAttributes(added, removed, 0, 0)
    numbers = [ctypes.c_long(number) for number in (SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE)]
    with _step(f"mount_setattr {place}"):
        arguments = (numbers[0], numbers[1], os.fsencode(place), numbers[2], ctypes.byref(attributes))
        _check(libc.syscall(*arguments, ctypes.c_size_t(ctypes.sizeof(attributes))))


def _check(returned: int) -> None:
    if returned != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@contextlib.contextmanager
def _step(name: str) -> Iterator[None]:
    """Say in an error which step failed."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from error


@contextlib.contextmanager
def _allowed_to_be_out_of_reach() -> Iterator[None]:
    """Let a place be that no command can reach either: below a directory that only root may enter."""
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.EACCES, errno.ENOENT}:
            raise


def _reason(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}"


if __name__ == "__main__":
    main(*sys.argv[1:])
