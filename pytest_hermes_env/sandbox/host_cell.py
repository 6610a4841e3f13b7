"""What stands in for a cell where nothing confines: its first process runs on this machine, over files in a private directory.

Place in the flow: `real_shell` uses it with ``--hermes-real-tools=always`` where no cell can start. The in-memory machine's directories
lie in the private one, so a path in a command or in its output is translated; one in a file is not.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import IO, Any

from pytest_hermes_env.sandbox.cell import PROGRAMS
from pytest_hermes_env.sandbox.inside.messages import receive, send
from pytest_hermes_env.sandbox.limits import Limits
from pytest_hermes_env.sandbox.view import boot

__all__ = ["HostCell"]

PYTHON = os.path.dirname(sys.executable)
"""Where the interpreter of the tests is: a line finds it first."""


class HostCell:
    """Its processes, from `start` to `stop`."""

    def __init__(self) -> None:
        self._base = tempfile.TemporaryDirectory(prefix="pytest-hermes-unconfined-")
        self._root = os.path.join(os.path.realpath(self._base.name), "root")
        self._names: set[str] = set()

    def start(self) -> None:
        """Start the first process."""
        os.mkdir(self._root)
        words, pipe = [*boot(sys.executable, PROGRAMS, "server"), self._root], subprocess.PIPE
        self._process = subprocess.Popen(words, bufsize=0, stdin=pipe, stdout=pipe, env={}, start_new_session=True)
        receive(self._descriptor(self._process.stdout))
        self.ask({"do": "begin", "limits": {}, "most_bytes": Limits().disk_bytes, "has_tree": True, "directory": ""}, [])

    def ask(self, request: Mapping[str, Any], blobs: list[bytes]) -> tuple[dict[str, Any], list[bytes]]:
        """Return the answer of the first process to a request, as `Cell.ask`. Raises: it ended → EOFError, OSError."""
        self._names |= {path.split("/")[1] for path in request.get("changed", ())}
        inner = _translated(request, self._inward)
        if "command" in inner:
            places = inner["variables"].get("PATH", os.defpath).removeprefix(f"{PYTHON}:")
            inner["variables"] |= {"PATH": f"{PYTHON}:{places}", "TMPDIR": f"{self._root}/tmp"}  # noqa: S108 - below its own
        send(self._descriptor(self._process.stdin), inner, blobs)
        answer, answered = receive(self._descriptor(self._process.stdout))
        files = sum("data" in entry for entry in answer.get("changed", {}).values() if entry)
        outer = _translated(answer, lambda text: text.replace(self._root, ""))
        return outer, answered[:files] + [text.replace(self._root.encode(), b"") for text in answered[files:]]

    def stop(self) -> None:
        """End the first process, which ends all others, and remove the directory."""
        self._process.communicate()
        self._base.cleanup()

    def _inward(self, text: str) -> str:
        """Return text whose paths to the machine's directories lead into the private one."""
        names = "|".join(map(re.escape, sorted(self._names)))
        return re.sub(rf"(?<![\w./-])/(?=(?:{names})(?![\w.-]))", f"{self._root}/", text) if names else text

    @staticmethod
    def _descriptor(stream: IO[bytes] | None) -> int:
        if stream is None or stream.closed:
            raise EOFError
        return stream.fileno()


def _translated(value: Any, change: Callable[[str], str]) -> Any:
    """Return JSON's value with all its texts changed."""
    if isinstance(value, Mapping):
        return {change(name): _translated(one, change) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_translated(one, change) for one in value]
    return change(value) if isinstance(value, str) else value
