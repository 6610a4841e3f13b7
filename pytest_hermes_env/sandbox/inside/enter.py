"""The program that runs a command in a cell: it joins the namespaces, gives up all rights, and starts the command.

Its arguments are the host's id of the cell's first process, the four numbers of the limits, the file for the reason why the cell cannot
be joined, the directory to start in, and the command's words. It has the standard streams, session and terminal of the command, waits for it, and ends as it does. A signal that
ends the command is sent to its process group, so this program ignores it.

It runs once for each command, so it imports next to nothing.

Place in the flow: the shell that `local_cell` writes runs it for each command of a local sandbox.
"""

from __future__ import annotations

import ctypes
import os
import sys

from . import kernel

NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts")
NOTICE = "/run/limit"
"""Where the first process of the cell writes which limit was hit."""
REPORTED = "/run/reported"
"""What of it was reported."""
NOT_RUNNABLE = 126
LIMITS = ("cpu_s", "memory_bytes", "processes", "disk_bytes")
SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXFSZ = 1, 2, 3, 13, 15, 25
ENDING = (SIGHUP, SIGINT, SIGQUIT, SIGTERM)
DEFAULT, IGNORE = 0, 1


def main() -> None:
    """Run the command and end as it does."""
    first, *numbers = sys.argv[1:6]
    lost, directory, *words = sys.argv[6:]
    os.closerange(3, 65536)
    try:
        kernel.make_unreadable()
        _join(first)
        before = _content(NOTICE)
        inherited = _on_signals(IGNORE, *ENDING)  # before the command can say that it began
        process = os.fork()
    except OSError as error:
        reason = f"the cell of this sandbox cannot be joined: {error.filename}: {error.strerror}"
        if lost:
            with open(lost, "w", encoding="utf-8") as file:
                file.write(reason)
        sys.exit(reason)
    if process == 0:
        limits = dict(zip(LIMITS, map(int, numbers), strict=True))
        for number, what in zip(ENDING, inherited, strict=True):
            _on_signals(what, number)
        _become_command(limits, directory, words)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    _tell(before)
    if code < 0:
        _on_signals(DEFAULT, -code)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _join(first: str) -> None:
    descriptors = [os.open(f"/proc/{first}/ns/{name}", os.O_RDONLY) for name in NAMESPACES]
    for descriptor in descriptors:
        with kernel.naming_step("setns"):
            kernel.raise_on_error(kernel.libc.setns(descriptor, 0))
        os.close(descriptor)


def _become_command(limits: dict[str, int], directory: str, words: list[str]) -> None:
    try:
        kernel.limit_resources(limits)
        kernel.drop_capabilities()
        kernel.give_up_rights()
        for place in (directory, os.environ.get("HOME", "/"), "/"):
            try:
                os.chdir(place)
                break
            except OSError:
                pass
        _on_signals(DEFAULT, SIGINT, SIGPIPE, SIGXFSZ)
        kernel.end_with_parent()
        os.execve(words[0], words, {**os.environ, "PWD": os.getcwd()})  # noqa: S606
    except OSError as error:
        os.write(2, f"{words[0]}: {error}\n".encode(errors="surrogateescape"))
    finally:
        os._exit(NOT_RUNNABLE)


def _tell(before: bytes) -> None:
    """Write the last limit that was hit, if that was since the start of the command or was not reported yet."""
    now = _content(NOTICE)
    if now == before and len(now) <= len(_content(REPORTED)):
        return
    os.write(2, b"\nlimit of this sandbox: " + now.rpartition(b"\n")[2] + b"\n")
    try:
        descriptor = os.open(REPORTED, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        os.write(descriptor, now)
        os.close(descriptor)
    except OSError:  # a command put something else there
        pass


def _content(path: str) -> bytes:
    """Return the beginning of a file, empty without one."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        content = os.read(descriptor, 4096)
        os.close(descriptor)
    except OSError:
        return b""
    return content


def _on_signals(what: int, *numbers: int) -> list[int]:
    """Set what signals do, and return what they did. Python's own function would import half of the library.

    A handler of Python's cannot be restored; only SIGINT has one, and `_become_command` gives it the default.
    """
    return [kernel.libc.signal(number, ctypes.c_void_p(what)) for number in numbers]
