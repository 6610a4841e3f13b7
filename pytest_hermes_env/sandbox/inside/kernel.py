"""System calls that Python has no function for: namespaces, mounts, capabilities and the filter of system calls.

Place in the flow: `init` sets a cell up with these; `server` and `enter` give up rights with `give_up_rights`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:  # at run time it would cost more than all else
    from collections.abc import Mapping, Sequence

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 0x1000, 0x4000, 0x4_0000
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV, ATTR_NOEXEC = 1, 2, 4, 8
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
SYS_MOUNT_SETATTR = 442
"""The same number on every architecture; glibc has a function for it since 2.36 only."""
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 24, 38
SECCOMP_MODE_FILTER = 2
SIGKILL = 9
CAPABILITY_VERSION = 0x2008_0522
MOST_CAPABILITIES = 64

NEW_NAMESPACES = 0x7E02_0000
"""The flags of ``clone`` that create a namespace."""
TIOCSTI = 0x5412
FAMILIES = (1, 2, 10, 16)
"""The socket families that a command may use: Unix, IPv4, IPv6 and netlink. AF_VSOCK would reach the host of a virtual machine."""

_FORBIDDEN_X86 = {
    "add_key": 248, "bpf": 321, "chroot": 161, "delete_module": 176, "finit_module": 313, "init_module": 175, "kexec_file_load": 320,
    "kexec_load": 246, "keyctl": 250, "mount": 165, "open_by_handle_at": 304, "perf_event_open": 298, "pivot_root": 155,
    "process_vm_readv": 310, "process_vm_writev": 311, "ptrace": 101, "reboot": 169, "request_key": 249, "setns": 308,
    "swapoff": 168, "swapon": 167, "umount2": 166, "unshare": 272, "userfaultfd": 323,
}  # fmt: skip
_FORBIDDEN_ARM = {
    "add_key": 217, "bpf": 280, "chroot": 51, "delete_module": 106, "finit_module": 273, "init_module": 105, "kexec_file_load": 294,
    "kexec_load": 104, "keyctl": 219, "mount": 40, "open_by_handle_at": 265, "perf_event_open": 241, "pivot_root": 41,
    "process_vm_readv": 270, "process_vm_writev": 271, "ptrace": 117, "reboot": 142, "request_key": 218, "setns": 268,
    "swapoff": 225, "swapon": 224, "umount2": 39, "unshare": 97, "userfaultfd": 282,
}  # fmt: skip
_FORBIDDEN_EVERYWHERE = {
    "fsconfig": 431, "fsmount": 432, "fsopen": 430, "fspick": 433, "io_uring_enter": 426, "io_uring_register": 427,
    "io_uring_setup": 425, "mount_setattr": 442, "move_mount": 429, "open_tree": 428, "open_tree_attr": 467, "pidfd_getfd": 438,
}  # fmt: skip
"""io_uring opens sockets past the filter."""
_CLONE3 = 435
_MACHINES: Mapping[str, tuple[int, Mapping[str, int], int, int, int]] = {
    "x86_64": (0xC000_003E, _FORBIDDEN_X86, 56, 41, 16),
    "aarch64": (0xC000_00B7, _FORBIDDEN_ARM, 220, 198, 29),
}
"""Machine → its number, what is forbidden, and the numbers of clone, socket and ioctl."""

libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    """``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def mount(source: str, path: str, kind: str, flags: int, data: str = "") -> None:
    """Mount. Raises: the kernel refuses → OSError that names the path."""
    texts = [os.fsencode(text) if text else None for text in (source, path, kind)]
    with naming_step(f"mount {path}"):
        raise_on_error(libc.mount(*texts, ctypes.c_ulong(flags), os.fsencode(data) if data else None))


def bind(source: str, path: str, attributes: int) -> None:
    """Show ``source`` and all mounts below it at ``path``, with the attributes of a mount."""
    mount(source, path, "", MS_BIND | MS_REC)
    changed = struct.pack("=4Q", attributes, 0, 0, 0)  # ``struct mount_attr`` of Linux 5.12
    numbers = [ctypes.c_long(number) for number in (SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE)]
    with naming_step(f"mount_setattr {path}"):
        arguments = (numbers[0], numbers[1], os.fsencode(path), numbers[2], changed)
        raise_on_error(libc.syscall(*arguments, ctypes.c_size_t(len(changed))))


def show_words(words: Sequence[str]) -> None:
    """Show other words as those that this process was started with, as far as there is room: `ps` in a cell shows no path of the host."""
    with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
        start, end = map(int, file.read().rpartition(")")[2].split()[45:47])
    shown = b"\0".join(map(os.fsencode, words))[: end - start - 1]
    ctypes.memmove(start, shown.ljust(end - start, b"\0"), end - start)


def give_up_rights() -> None:
    """Take from this process, and from all that it starts, every right that a command does not need.

    No program gains rights by setuid, no other process may read this one's memory, and system calls that could lead out of a
    cell are refused.
    """
    make_unreadable()
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _filter_system_calls()


def make_unreadable() -> None:
    """Keep other processes of the same user from reading this one's memory, descriptors and variables."""
    _prctl(PR_SET_DUMPABLE, 0)


def end_with_parent() -> None:
    """End this process when its parent does, whatever it runs by then."""
    _prctl(PR_SET_PDEATHSIG, SIGKILL)


def drop_capabilities() -> None:
    """Give up all capabilities for good: a program that is started as root has none, either."""
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    for number in range(MOST_CAPABILITIES):
        if libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0:
            break
    header, sets = struct.pack("=II", CAPABILITY_VERSION, 0), bytes(24)
    with naming_step("capset"):
        raise_on_error(libc.capset(header, sets))


def limit_resources(limits: Mapping[str, int]) -> None:
    """Limit this process and each that it starts."""
    for kind, most, more in (
        (resource.RLIMIT_CPU, limits["cpu_s"], 1),  # SIGXCPU, which says what happened, and SIGKILL a second later
        (resource.RLIMIT_DATA, limits["memory_bytes"], 0),
        (resource.RLIMIT_FSIZE, limits["disk_bytes"], 0),
        (resource.RLIMIT_NPROC, 4 * limits["processes"], 0),  # it counts threads, too; the first process counts processes
        (resource.RLIMIT_CORE, 0, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        limit = most + more if hard == resource.RLIM_INFINITY else min(most + more, hard)
        resource.setrlimit(kind, (min(most, limit), limit))


def _filter_system_calls() -> None:
    """Refuse the forbidden system calls, and what another architecture's numbers would let through."""
    program = b"".join(_filter(os.uname().machine))
    buffer = ctypes.create_string_buffer(program, len(program))
    described = _Program(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    with naming_step("seccomp"):
        raise_on_error(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(described), 0, 0))


def _filter(machine: str) -> list[bytes]:
    """Return the instructions of the filter: classic BPF over ``struct seccomp_data``."""
    if machine not in _MACHINES:
        raise OSError(errno.ENOSYS, f"no system call filter for {machine}", "seccomp")
    architecture, forbidden, clone, socket, ioctl = _MACHINES[machine]
    load, equal, at_least, has_bit, answer = 0x20, 0x15, 0x35, 0x45, 0x06

    def refuse(number: int) -> bytes:
        return struct.pack("=HBBI", answer, 0, 0, 0x0005_0000 | number)

    def step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
        return struct.pack("=HBBI", code, if_true, if_false, value)

    number, first, second = 0, 16, 24  # offsets in seccomp_data: the call, and the low half of its first two arguments
    program = [step(load, 4), step(equal, architecture, 1), refuse(errno.ENOSYS)]
    program += [step(load, number), step(at_least, 0x4000_0000, 0, 1), refuse(errno.ENOSYS)]  # the x32 numbers of x86_64
    for call in sorted({*forbidden.values(), *_FORBIDDEN_EVERYWHERE.values()}):
        program += [step(equal, call, 0, 1), refuse(errno.EPERM)]
    program += [step(equal, _CLONE3, 0, 1), refuse(errno.ENOSYS)]  # its flags are in memory; the C library then uses clone
    program += [step(equal, clone, 0, 3), step(load, first), step(has_bit, NEW_NAMESPACES, 0, 1), refuse(errno.EPERM)]
    program += [
        step(load, number),
        step(equal, ioctl, 0, 3),
        step(load, second),
        step(equal, TIOCSTI, 0, 1),
        refuse(errno.EPERM),
    ]
    program += [step(load, number), step(equal, socket, 0, len(FAMILIES) + 2), step(load, first)]
    program += [step(equal, family, len(FAMILIES) - at) for at, family in enumerate(FAMILIES)]
    return [*program, refuse(errno.EAFNOSUPPORT), step(answer, 0x7FFF_0000)]


def _prctl(option: int, value: int) -> None:
    with naming_step(f"prctl {option}"):
        raise_on_error(libc.prctl(option, value, 0, 0, 0))


def raise_on_error(returned: int) -> None:
    """Raises: a system call failed → OSError."""
    if returned != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class naming_step:  # noqa: N801 - it is used like a function
    """Name the failed step in an OSError."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, self._name) from error
