"""A real bash over the files of an in-memory machine that nothing confines: in a private directory of this machine.

Place in the flow: `real_lines` uses it with ``--hermes-real-tools=always`` where no cell can start; it has the methods of `RealShell`.
The machine's directories lie in the private one, so a path in a command or in its output is translated; one in a file is not.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_hermes_env.sandbox.inside.line_script import AT_START, line_script, take
from pytest_hermes_env.sandbox.inside.tree import Tree
from pytest_hermes_env.sandbox.limits import Limits
from pytest_hermes_env.sandbox.node import Node
from pytest_hermes_env.sandbox.real_shell import Changed, Place, Ran, exported, wire_form

__all__ = ["UnconfinedShell"]

TIMED_OUT = 124


class UnconfinedShell:
    """One private directory, from the first line to `close`. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._base = tempfile.TemporaryDirectory(prefix="pytest-hermes-unconfined-")
        self._root = os.path.join(os.path.realpath(self._base.name), "root")
        self._tree = Tree(self._root)
        self._names: set[str] = set()
        self._running: dict[int, tuple[subprocess.Popen[bytes], Path]] = {}
        os.mkdir(self._root)
        self._tree.begin()
        self._tree.most_bytes = Limits().disk_bytes

    def run(self, command: str, place: Place, *, changed: Changed, timeout: float) -> Ran:
        """Write ``changed``, run a line in bash, and return what it did, as `RealShell.run`."""
        with self._lock:
            self._write(changed)
            mark = os.path.join(self._base.name, "after")
            later = {name: self._inward(place.variables[name]) for name in AT_START & place.variables.keys()}
            script = line_script(self._inward(command), self._inward(place.cwd), shlex.quote(mark), later)
            variables = {name: value for name, value in place.variables.items() if name not in later}
            process = self._popen(["-c", script], place.cwd, variables, subprocess.DEVNULL, subprocess.PIPE)
            try:
                output, timed_out = process.communicate(timeout=timeout)[0], False
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, timed_out = process.communicate()[0], True
            after, exports = (take(f"{mark}.{what}").decode(errors="surrogateescape") for what in ("cwd", "exports"))
            found = exported(exports)
            entries, contents, read = self._tree.changes()
            return Ran(
                output=output.replace(self._root.encode(), b""),
                exit_code=TIMED_OUT if timed_out else process.returncode,
                cwd=self._outward(after.removesuffix("\n")) or place.cwd,
                variables={name: self._outward(value) for name, value in found.items()} if found else {**variables, **later},
                changed={self._outward(path): self._entry(entry, contents) for path, entry in entries.items()},
                read=frozenset(map(self._outward, read)),
                timed_out=timed_out,
            )

    def start(self, command: str, place: Place, *, changed: Changed, has_input: bool = False) -> int:
        """Start a line in the background and return its process id. ``has_input``: `write` may write to it."""
        with self._lock:
            self._write(changed)
            path = Path(self._base.name, f"output-{len(self._running)}")
            with path.open("wb") as output:
                given = subprocess.PIPE if has_input else subprocess.DEVNULL
                process = self._popen(["-c", self._inward(command)], place.cwd, place.variables, given, output.fileno())
            self._running[process.pid] = process, path
            return process.pid

    def poll(self, process: int) -> tuple[bytes, int | None]:
        """Return all output of a background process so far, and its exit code, None while it runs."""
        running, path = self._running[process]
        code = running.poll()
        return path.read_bytes().replace(self._root.encode(), b""), code

    def write(self, process: int, data: bytes) -> None:
        """Write to the standard input of a background process; no bytes end it."""
        feed = self._running[process][0].stdin
        if feed is not None and not feed.closed:
            feed.write(data)
            feed.flush()
            if not data:
                feed.close()

    def kill(self, process: int) -> None:
        """End a background process and its process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        running, _ = self._running[process]
        running.wait()
        if running.stdin is not None:
            running.stdin.close()

    def close(self) -> None:
        """End the background processes and remove the directory."""
        for process in self._running:
            self.kill(process)
        with self._lock:
            self._base.cleanup()

    def _popen(
        self, words: list[str], cwd: str, variables: Mapping[str, str], given: int, output: int
    ) -> subprocess.Popen[bytes]:
        bash = shutil.which("bash") or "/bin/bash"
        environment = {name: self._inward(value) for name, value in variables.items()}
        temporary = os.path.join(self._root, "tmp")
        path = f"{os.path.dirname(sys.executable)}:{environment.get('PATH', os.defpath)}"
        return subprocess.Popen(
            ["/usr/bin/bash", *words],
            executable=bash,
            cwd=self._inward(cwd),
            env={**environment, "PATH": path, "TMPDIR": temporary},
            stdin=given,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _write(self, changed: Changed) -> None:
        self._names |= {path.split("/")[1] for path in changed}
        entries: dict[str, dict[str, Any] | None] = {}
        blobs: list[bytes] = []
        for path, entry in changed.items():
            inward = None if entry is None else {**wire_form(entry, len(blobs)), "target": self._inward(entry.target)}
            entries[self._root + path] = inward
            blobs += [entry.data] if entry else []
        self._tree.apply(entries, blobs)

    def _entry(self, fields: Mapping[str, Any] | None, contents: list[bytes]) -> Node | None:
        if fields is None:
            return None
        data = contents[fields["data"]] if "data" in fields else b""
        return Node(**{**fields, "data": data, "target": self._outward(fields.get("target", ""))})

    def _inward(self, text: str) -> str:
        """Return text whose paths to the machine's directories lead into the private one."""
        names = "|".join(map(re.escape, sorted(self._names)))
        return re.sub(rf"(?<![\w./-])/(?=(?:{names})(?![\w.-]))", f"{self._root}/", text) if names else text

    def _outward(self, text: str) -> str:
        return text.replace(self._root, "")
