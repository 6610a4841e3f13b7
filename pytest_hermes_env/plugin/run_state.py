"""What one pytest run shares between hooks and fixtures: hermes' home and the contract session, each made on first use."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from pytest_hermes_env.play.hermes_home import HermesHome
from pytest_hermes_env.stale_package import stale_package_explained

if TYPE_CHECKING:
    from pytest_hermes_env.contract.run.plays import Plays
    from pytest_hermes_env.contract.run.session import ContractSession
    from pytest_hermes_env.play.player import Listener, Played

HOME = pytest.StashKey[HermesHome]()
CONTRACT = pytest.StashKey["ContractSession"]()
RUN_ID = pytest.StashKey[str]()
"""The id of a run of pytest-xdist, in its controller."""
PATIENCE_S = 1.0
"""Work that ends sooner is not shown."""


def home_of(config: pytest.Config) -> HermesHome:
    """Return hermes' home of this run. It is left when ``config`` goes out of use."""
    if HOME not in config.stash:
        chosen = config.known_args_namespace.hermes_home or config.getini("hermes_home") or None
        config.stash[HOME] = home = HermesHome(chosen)
        config.add_cleanup(home.leave)
    return config.stash[HOME]


def explain_leftovers(config: pytest.Config) -> None:
    """Name a stale ``environments/__init__.py`` in every import error of this run that it causes."""
    stack = contextlib.ExitStack()
    stack.enter_context(stale_package_explained())
    config.add_cleanup(stack.close)


def contract_of(config: pytest.Config) -> ContractSession:
    """Return the contract session of this run."""
    if CONTRACT not in config.stash:
        from pytest_hermes_env.contract.run.session import ContractSession  # noqa: PLC0415 - only where it is used

        config.stash[CONTRACT] = session = ContractSession(config, lambda: _plays(config))
        if RUN_ID in config.stash:
            _ = session.plays  # which removes, at the end, what the workers of pytest-xdist have played
    return config.stash[CONTRACT]


def _plays(config: pytest.Config) -> Plays:
    from pytest_hermes_env.contract.run.plays import Plays  # noqa: PLC0415 - judging what was kept plays nothing

    run_id = getattr(config, "workerinput", {}).get("testrunuid") or config.stash.get(RUN_ID, "")
    plays = Plays(config, scenario_listener(config), run_id)
    config.add_cleanup(plays.close)
    return plays


def scenario_listener(config: pytest.Config) -> Listener | None:
    """Return what shows the scenarios of this run; None where nobody watches: no terminal, CI, ``-q``, or an xdist worker."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    is_watched = reporter is not None and reporter.isatty and config.get_verbosity() >= 0
    if not is_watched or os.environ.get("CI"):
        return None
    line = _ProgressLine(config, reporter)

    def show(played: Played | None) -> None:
        if played is None:
            line.show("", 0, 0)
            return
        who = f"blocked by {played.blocked}" if played.blocked else os.path.basename(played.subject)
        line.show(f"{who}: {played.scenario}", played.ended, played.total)

    return show


class _ProgressLine:
    """The line that shows, on a terminal, which scenario is played. It writes over itself, below the dots of the tests, and goes away."""

    def __init__(self, config: pytest.Config, reporter: Any) -> None:
        """Begin without a line."""
        self._capture: Any = config.pluginmanager.get_plugin("capturemanager")
        self._reporter = reporter
        self._since: float | None = None
        self._width = 0

    def show(self, text: str, ended: int, total: int) -> None:
        """Show what is under way, how much of it has ended, and about how long the rest takes; with an empty text, remove the line."""
        if threading.current_thread() is not threading.main_thread():
            return  # capturing belongs to the test's own thread
        if not text:
            self._write("")
            self._since = None
            return
        self._since = self._since or time.monotonic()
        seconds = time.monotonic() - self._since
        if seconds >= PATIENCE_S:
            rest = f", {ended / seconds:.2g}/s, about {(total - ended) * seconds / ended:.0f} s left" if ended else ""
            self._write(f"  {ended} of {total} scenarios{rest}; {text} ({seconds:.0f} s)")

    def _write(self, text: str) -> None:
        if not text and not self._width:
            return
        with self._capture.global_and_fixture_disabled():
            if not self._width:
                self._reporter.ensure_newline()
            text = text[: shutil.get_terminal_size().columns - 1]
            self._reporter.write("\r" + text.ljust(self._width) + ("" if text else "\r"), flush=True)
        self._width = len(text)
