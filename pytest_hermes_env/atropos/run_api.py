"""Runs Atropos' own ``run-api`` in a process on loopback: environments send groups to it, and a trainer pulls batches.

Place in the flow: between ``serve`` of an environment and `pytest_hermes_env.atropos.trainer`.

Source: atroposlib 0.4.0, ``cli/run_api.py``, which listens on every interface by default and keeps its data in module state, so only
a new process starts empty.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from typing import IO, TYPE_CHECKING, Self

from pytest_hermes_env.errors import ServerStartError, shorten

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from types import TracebackType

__all__ = ["RunApi"]

COMMAND = (sys.executable, "-m", "atroposlib.cli.run_api", "--host", "127.0.0.1", "--port", "0")
"""With port 0 the system chooses a free port, which uvicorn prints: two test runs never conflict."""

LISTENING = re.compile(r"Uvicorn running on (http://127\.0\.0\.1:\d+)")
START_S, STOP_S = 60.0, 20.0


class RunApi:
    """The process. `url` is its address, `output` everything that it has printed.

    ``environ`` and ``cwd`` are the process's environment variables and working directory, by default those of this process.
    ``command`` starts it; it must print uvicorn's line with the address.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._environ = environ
        self._cwd = cwd
        self._command = list(command)
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._lines: list[str] = []
        self._listens_or_ended = threading.Event()
        self._url: str | None = None

    def start(self) -> Self:
        """Start the process; return when it listens. Once per object.

        Raises: it ends, or prints no address within a minute → ServerStartError.
        """
        process = subprocess.Popen(
            self._command, env=self._environ, cwd=self._cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._process = process
        self._reader = threading.Thread(target=self._read, args=(process.stdout,), name=f"run-api-{process.pid}", daemon=True)
        self._reader.start()
        self._listens_or_ended.wait(START_S)
        if self._url is None:
            code = self.stop()
            raise ServerStartError(
                f"run-api could not start: {shorten(' '.join(self._command))} ended with exit code {code}.\n"
                f"  expected  the line 'Uvicorn running on http://127.0.0.1:...' within {START_S:g} s\n"
                f"  seen      {shorten(self.output[-200:]) or 'no output'}\n"
                "  fix       run the command by hand"
            )
        return self

    def stop(self) -> int | None:
        """Interrupt the process and return its exit code, 0 after a normal shutdown; None when it never started."""
        process = self._process
        if process is None:
            return None
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._reader is not None:
            self._reader.join(STOP_S)
        return process.returncode

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The root of the API, without a trailing slash.

        Raises: not started → ServerStartError.
        """
        if self._url is None:
            raise ServerStartError(
                "run-api has no address yet, because it was not started.\n"
                "  fix       use `with RunApi() as api:`, or call api.start()"
            )
        return self._url

    @property
    def output(self) -> str:
        """Everything that the process has printed so far."""
        return "".join(self._lines)

    def _read(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self._lines.append(line)
                found = LISTENING.search(line)
                if found is not None and self._url is None:
                    self._url = found[1]
                    self._listens_or_ended.set()
        self._listens_or_ended.set()
