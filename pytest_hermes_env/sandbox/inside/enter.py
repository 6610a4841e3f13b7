"""The program that runs a command in a cell: it joins the namespaces, gives up all rights, and starts the command.

Its arguments are the host's id of the cell's first process, the limits as JSON, the directory to start in, and the command's words.
It has the same standard streams, session and terminal as the command, waits for it, and ends as it does.

Place in the flow: the shell that `cell_shell` writes runs it for each command of a local sandbox.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time

from pytest_hermes_env.sandbox.inside import kernel

__all__ = ["main"]

NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts")
NOTICE = "/run/limit"
"""Where the first process of the cell writes which limit was hit."""
NOT_RUNNABLE = 126


def main() -> None:
    """Run the command and end as it does."""
    first, limits, directory, *words = sys.argv[1:]
    begun = time.time()
    os.closerange(3, 1024)
    try:
        kernel.make_unreadable()
        _join(first)
        process = os.fork()
    except OSError as error:
        sys.exit(f"the cell of this sandbox cannot be joined: {error.filename}: {error.strerror}")
    if process == 0:
        _become_command(json.loads(limits), directory, words)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: _pass_on(process, received))
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    with contextlib.suppress(OSError), open(NOTICE, encoding="utf-8") as notice:
        if os.fstat(notice.fileno()).st_mtime >= begun:
            os.write(2, f"\nlimit of this sandbox: {notice.read(200)}\n".encode())
    if code < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no other effect
            signal.signal(-code, signal.SIG_DFL)
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
            with contextlib.suppress(OSError):
                os.chdir(place)
                break
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        kernel.end_with_parent()
        os.execve(words[0], words, {**os.environ, "PWD": os.getcwd()})
    except OSError as error:
        os.write(2, f"{words[0]}: {error}\n".encode(errors="surrogateescape"))
    finally:
        os._exit(NOT_RUNNABLE)


def _pass_on(process: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)
