"""Stands in for a Python interpreter: ``client.py SOCKET ARGUMENTS`` runs ``python ARGUMENTS`` in a child of `server.py`."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main() -> int:
    """Return the exit code of the program; hand on the signals that end one."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    job = {"words": sys.argv[2:], "cwd": os.getcwd(), "env": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(sys.argv[1])
        socket.send_fds(server, [b"-"], [0, 1, 2])
        server.sendall(json.dumps(job).encode() + b"\n")
        with server.makefile() as lines:
            child = int(lines.readline())
            for number in SIGNALS:
                signal.signal(number, lambda number, _: os.kill(child, number))
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            code = int(lines.readline())
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
