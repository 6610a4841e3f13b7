"""The line that shows, on a terminal, which scenario of a contract is played, or what a recording holds; it goes away at the end."""

from __future__ import annotations

import os
import shutil
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_hermes_env.play.progress import Listener, Played

PATIENCE_S = 1.0
"""Work that ends sooner is not shown."""


def progress_line(config: pytest.Config) -> ProgressLine | None:
    """Return the line of this run; None where nobody watches: no terminal, CI, ``-q``, or an xdist worker."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    is_watched = reporter is not None and reporter.isatty and config.get_verbosity() >= 0
    return ProgressLine(config, reporter) if is_watched and not os.environ.get("CI") else None


def scenario_listener(config: pytest.Config) -> Listener | None:
    """Return the listener that shows the scenarios of this run; None where nobody watches."""
    line = progress_line(config)
    if line is None:
        return None

    def tell(played: Played | None) -> None:
        if played is None:
            line.tell("")
            return
        of_all = f" of {played.total}" if played.begun <= played.total else ""  # a case is played once per item
        line.tell(f"{played.subject}: scenario {played.begun}{of_all}, {played.scenario}")

    return tell


class ProgressLine:
    """Writes over itself; begins below the dots of the tests."""

    def __init__(self, config: pytest.Config, reporter: Any) -> None:
        """Begin without a line."""
        self._capture: Any = config.pluginmanager.get_plugin("capturemanager")
        self._reporter = reporter
        self._since: float | None = None
        self._width = 0

    def tell(self, text: str) -> None:
        """Show what is under way, with the seconds since the first call; with an empty text, remove the line."""
        if threading.current_thread() is not threading.main_thread():
            return  # capturing belongs to the test's own thread
        if not text:
            self._show("")
            self._since = None
            return
        self._since = self._since or time.monotonic()
        seconds = time.monotonic() - self._since
        if seconds >= PATIENCE_S:
            self._show(f"  {text} ({seconds:.0f} s)")

    def _show(self, text: str) -> None:
        if not text and not self._width:
            return
        with self._capture.global_and_fixture_disabled():
            if not self._width:
                self._reporter.ensure_newline()
            text = text[: shutil.get_terminal_size().columns - 1]
            self._reporter.write("\r" + text.ljust(self._width) + ("" if text else "\r"), flush=True)
        self._width = len(text)
