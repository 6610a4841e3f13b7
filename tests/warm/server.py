"""A process that has imported what takes seconds, and forks a child for each command of `client.py`.

``server.py SOCKET MODULE...`` prints a line when it has imported the modules. Each child has the variables, directory, standard
streams and arguments of its client, and ends as a Python program does.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
from typing import Any

from distributions import read_once  # beside this file

TIMEOUT_S = 240
PATH = sys.path[1:]
"""Where a program finds modules, without PYTHONPATH and its own directory."""


def main() -> None:
    """Serve clients until this process is terminated. Returns in the children, once their command has returned."""
    where, *modules = sys.argv[1:]
    read_once()
    for name in modules:
        importlib.import_module(name)
    for name, module in sys.modules.items():
        if "." not in name:  # pytest would warn that it cannot rewrite the assertions of plugins that are imported
            module.__doc__ = f"{module.__doc__} PYTEST_DONT_REWRITE"
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(where)
        listening.listen()
        print("ready", flush=True)
        while True:
            client, _ = listening.accept()
            if os.fork() == 0:
                break
            client.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with client:
        _, streams, *_ = socket.recv_fds(client, 1, 3)
        with client.makefile() as lines:
            job = json.loads(lines.readline())
        child = os.fork()
        if child:
            for stream in streams:
                os.close(stream)
            report(client, child)
    become(streams=streams, **job)


def report(client: socket.socket, child: int) -> None:
    """Tell a client the child's process id, and then its exit code; kill the child when its client was killed."""
    with contextlib.suppress(BrokenPipeError):
        client.sendall(f"{child}\n".encode())
        if hasattr(os, "pidfd_open"):
            ended = os.pidfd_open(child)
            if ended not in select.select([client, ended], [], [])[0]:
                os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        client.sendall(f"{code}\n".encode())
    os._exit(0)


def become(words: list[str], cwd: str, env: dict[str, str], streams: list[int]) -> None:
    """Run ``python *words`` in this process."""
    signal.alarm(TIMEOUT_S)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job, which may have started us, ignores it
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    if words[0] == "-u":
        del words[0]
        sys.stdout.reconfigure(write_through=True)  # type: ignore[union-attr]
    kind = words[0][:2] if words[0][:2] in {"-c", "-m"} else ""
    if kind:
        words = [words[0][2:], *words[1:]] if words[0][2:] else words[1:]
    sys.argv = ["-c", *words[1:]] if kind == "-c" else words
    added = [entry for entry in env.get("PYTHONPATH", "").split(os.pathsep) if entry]
    here = {"-c": "", "-m": cwd, "": os.path.dirname(os.path.abspath(words[0]))}[kind]
    sys.path[:] = [here, *added, *PATH]
    if kind == "-c":
        exec(compile(words[0], "<string>", "exec"), vars(sys.modules["__main__"]))
        return
    run: Any = runpy.run_module if kind == "-m" else runpy.run_path
    run(words[0], run_name="__main__", **({"alter_sys": True} if kind == "-m" else {}))


if __name__ == "__main__":
    main()
