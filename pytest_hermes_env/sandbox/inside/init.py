"""The program that sets cells up where bubblewrap is not installed: namespaces, a root directory of its own, no capability.

For each cell it gets descriptors over the socket that is its standard input: a plan as JSON, where to report to, and the cell's standard
streams. It forks a process, which creates user, mount, pid, network, IPC and host name namespaces, builds the new root directory step by
step, and whose child serves as the first process of the pid namespace: so each cell begins with what is imported here. That process
writes ``{"child-pid": n}`` to the descriptor for reports, waits for the cell's first process, and ends.

Place in the flow: `cell.Cell` starts it. The steps are those of `view.Step`; bubblewrap gets the same ones as arguments.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
from collections.abc import Mapping
from typing import Any

from . import kernel, server

NAMESPACES = 0x0002_0000 | 0x0400_0000 | 0x0800_0000 | 0x1000_0000 | 0x2000_0000 | 0x4000_0000
"""Mount, host name, IPC, user, pid and network."""
SIOCSIFFLAGS, IFF_UP, IFF_RUNNING = 0x8914, 0x1, 0x40
MNT_DETACH = 2
DESCRIPTORS = 5
"""The plan, where to report to, and three streams."""
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
NEW_ROOT = "/dev"
"""A directory that every machine has. The new root directory is mounted there, for this process only, before it becomes ``/``."""


def main() -> None:
    """Start a cell for each message, until the other side ends."""
    os.setsid()  # Ctrl-C must not end a cell before its sandbox
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for what it starts
    asked = socket.socket(fileno=0)
    while True:
        data, descriptors, *_ = socket.recv_fds(asked, 1, DESCRIPTORS)
        if not data:
            return
        process = os.fork()
        if process == 0:
            _run_cell(*descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        asked.send(str(process).encode())


def _run_cell(plan_file: int, info: int, *streams: int) -> None:
    """Run a cell until its first process ends, and end this process."""
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        with open(plan_file, encoding="utf-8") as file:
            plan = json.load(file)
        _make_namespaces(plan["user"])
        first = os.fork()
        if first == 0:
            _become_first(plan)
        with open(info, "w", encoding="utf-8") as report:
            json.dump({"child-pid": first}, report)
        os.closerange(0, 2)
        os.waitpid(first, 0)
        os._exit(0)
    except OSError as error:
        os.write(2, f"{_reason(error)}\n".encode())
    finally:
        os._exit(1)


def _make_namespaces(inner: int) -> None:
    user, group = os.geteuid(), os.getegid()
    with kernel.naming_step("unshare"):
        kernel.raise_on_error(kernel.libc.unshare(NAMESPACES))
        for name, content in (("uid_map", f"{inner} {user} 1"), ("setgroups", "deny"), ("gid_map", f"{inner} {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(content)


def _become_first(plan: Mapping[str, Any]) -> None:
    """Serve as process 1 of the pid namespace: build the root directory, give up all rights, and do what the plan's command does."""
    try:
        with kernel.naming_step("loopback"), socket.socket() as any_socket:
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP | IFF_RUNNING))
        if plan["host_name"]:
            socket.sethostname(plan["host_name"])
        _build_root(plan["steps"])
        kernel.drop_capabilities()
        os.closerange(3, 65536)
        kernel.show_words(plan["command"])
        server.main("/")
        os._exit(0)
    except OSError as error:
        os.write(2, f"{_reason(error)}\n".encode())
    finally:
        os._exit(1)


def _build_root(steps: list[dict[str, Any]]) -> None:
    sources = {
        step["source"]: os.open(step["source"], os.O_PATH) for step in steps if step["kind"] in {"bind", "writable", "device"}
    }
    kernel.mount("", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    for step in steps:
        path = NEW_ROOT + step["path"].rstrip("/")
        source = f"/proc/self/fd/{sources[step['source']]}" if step["source"] in sources else step["source"]
        with kernel.naming_step(f"{step['kind']} {step['path']}"):
            _do(step, source, path)
    os.chdir(NEW_ROOT)
    with kernel.naming_step("pivot_root"):
        kernel.raise_on_error(kernel.libc.syscall(ctypes.c_long(PIVOT_ROOT[os.uname().machine]), b".", b"."))
        kernel.raise_on_error(kernel.libc.umount2(b".", MNT_DETACH))
    os.chdir("/")


def _do(step: Mapping[str, Any], source: str, path: str) -> None:
    kind = step["kind"]
    if kind == "link":
        _make_directory(os.path.dirname(path))
        os.symlink(source, path)
    elif kind == "file":
        _make_directory(os.path.dirname(path))
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(source)
            os.fchmod(file.fileno(), step["mode"])
    elif kind == "directory":
        _make_directory(path)
        os.chmod(path, step["mode"])
    elif kind == "seal":
        kernel.mount("", path, "", 0x20 | kernel.MS_BIND | kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV)
    elif kind in {"bind", "writable", "device"} and not os.path.isdir(source):
        _make_directory(os.path.dirname(path))
        if not os.path.lexists(path):
            with open(path, "x", encoding="utf-8"):
                pass
    else:
        _make_directory(path)
    if kind == "tmpfs":
        size = f"size={step['size']},nr_inodes={max(64, step['size'] // 2048)},mode={step['mode']:o}"
        kernel.mount("tmpfs", path, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, size)
    elif kind == "proc":
        kernel.mount("proc", path, "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC | kernel.MS_RDONLY)
    elif kind == "device":
        kernel.bind(
            source, path, kernel.ATTR_NOSUID | kernel.ATTR_NOEXEC | kernel.ATTR_RDONLY
        )  # it can be written, its mode cannot
    elif kind in {"bind", "writable"}:
        read_only = kernel.ATTR_RDONLY if kind == "bind" else 0
        kernel.bind(source, path, kernel.ATTR_NOSUID | kernel.ATTR_NODEV | read_only)


def _make_directory(path: str) -> None:
    if not os.path.isdir(path):
        os.makedirs(path, exist_ok=True)


def _reason(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}"
