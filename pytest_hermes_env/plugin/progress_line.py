"""The line that shows, on a terminal, which scenario of a contract is being played; it goes away when they have ended."""

from __future__ import annotations

import os
import shutil
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_hermes_env.rollout.progress import Listener, Played

__all__ = ["progress_line"]

PATIENCE_S = 1.0
"""Work that ends sooner is not shown."""


def progress_line(config: pytest.Config) -> Listener | None:
    """Return the listener for this run; None where nobody watches: no terminal, CI, ``-q``, or an xdist worker."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    is_watched = reporter is not None and reporter.isatty and config.get_verbosity() >= 0
    return _Line(config, reporter) if is_watched and not os.environ.get("CI") else None


class _Line:
    """Writes over itself; begins below the dots of the tests."""

    def __init__(self, config: pytest.Config, reporter: Any) -> None:
        self._capture: Any = config.pluginmanager.get_plugin("capturemanager")
        self._reporter = reporter
        self._since: float | None = None
        self._width = 0

    def __call__(self, played: Played | None) -> None:
        """Show the scenario that begins, or remove the line."""
        if threading.current_thread() is not threading.main_thread():
            return  # capturing belongs to the test's own thread
        if played is None:
            self._show("")
            self._since = None
            return
        self._since = self._since or time.monotonic()
        seconds = time.monotonic() - self._since
        if seconds >= PATIENCE_S:
            of_all = f" of {played.total}" if played.begun <= played.total else ""  # a case is played once per item
            self._show(f"  {played.subject}: scenario {played.begun}{of_all}, {played.scenario} ({seconds:.0f} s)")

    def _show(self, text: str) -> None:
        if not text and not self._width:
            return
        with self._capture.global_and_fixture_disabled():
            if not self._width:
                self._reporter.ensure_newline()
            text = text[: shutil.get_terminal_size().columns - 1]
            self._reporter.write("\r" + text.ljust(self._width) + ("" if text else "\r"), flush=True)
        self._width = len(text)
