"""A process that has imported the layer, and forks a child for each command that it reads: only importing costs seconds.

Each child has its own variables, directory, output and exit code, and ends as a Python program does.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import sys
from typing import Any

TIMEOUT_S = 240


def main() -> None:
    """Run the command of each line; print its exit code. Returns in the children, too, once their command has returned."""
    importlib.import_module("environments.hermes_base_env")
    while line := sys.stdin.readline():
        child = os.fork()
        if child == 0:
            become(**json.loads(line))
            return
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def become(words: list[str], cwd: str, env: dict[str, str], stdout: str, stderr: str) -> None:
    """Run ``python *words`` in this process."""
    signal.alarm(TIMEOUT_S)
    for number, name in enumerate([os.devnull, stdout, stderr]):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    is_module = words[0] == "-m"
    sys.argv = words[1:] if is_module else words
    sys.path[0] = cwd if is_module else os.path.dirname(os.path.abspath(words[0]))
    run: Any = runpy.run_module if is_module else runpy.run_path
    run(sys.argv[0], run_name="__main__", **({"alter_sys": True} if is_module else {}))


if __name__ == "__main__":
    main()
