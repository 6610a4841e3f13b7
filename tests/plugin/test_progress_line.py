"""The line that shows which scenario of a contract is played."""

from __future__ import annotations

import contextlib
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_hermes_env.play.player import Played
from pytest_hermes_env.plugin import run_state as module
from pytest_hermes_env.plugin.run_state import scenario_listener


class Terminal:
    """Stands for pytest's terminal reporter: keeps what is on the screen."""

    isatty = True

    def __init__(self) -> None:
        self.rows = ["my_env.py ."]

    def ensure_newline(self) -> None:
        self.rows.append("")

    def write(self, text: str, *, flush: bool) -> None:
        assert flush
        *_, shown = text.rstrip("\r").split("\r")
        self.rows[-1] = shown.rstrip()


def config(reporter: Terminal | None, verbosity: int = 0) -> Any:
    plugins = {
        "terminalreporter": reporter,
        "capturemanager": SimpleNamespace(global_and_fixture_disabled=contextlib.nullcontext),
    }
    return SimpleNamespace(pluginmanager=SimpleNamespace(get_plugin=plugins.get), get_verbosity=lambda: verbosity)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    return Terminal()


HAPPY = Played("MyEnv", total=2, ended=0, scenario="happy")


def test_scenario_is_shown_and_goes_away(terminal):
    """With how many have ended of all, and the line that blocks it."""
    listener = scenario_listener(config(terminal))
    assert listener is not None
    listener(HAPPY)
    first = list(terminal.rows)
    listener(Played("MyEnv", total=2, ended=0, scenario="gold of item 0", blocked="my_env.py:7 compute_reward"))
    second = list(terminal.rows)
    listener(None)

    assert first == ["my_env.py .", "  0 of 2 scenarios; MyEnv: happy (0 s)"]
    assert second == ["my_env.py .", "  0 of 2 scenarios; blocked by my_env.py:7 compute_reward: gold of item 0 (0 s)"]
    assert terminal.rows == ["my_env.py .", ""]


def test_short_work_is_not_shown(terminal, monkeypatch):
    """A line that flashes up says nothing."""
    monkeypatch.setattr(module, "PATIENCE_S", 1000.0)
    listener = scenario_listener(config(terminal))
    assert listener is not None
    listener(HAPPY)

    assert terminal.rows == ["my_env.py ."]


def test_scenarios_of_another_thread_are_not_shown(terminal):
    """Capturing belongs to the main thread."""
    thread = threading.Thread(target=scenario_listener(config(terminal)), args=(HAPPY,))
    thread.start()
    thread.join()

    assert terminal.rows == ["my_env.py ."]


@pytest.mark.parametrize("reason", ["no reporter", "no terminal", "-q", "CI"])
def test_nobody_listens_where_nobody_watches(terminal, monkeypatch, reason):
    """An xdist worker has no reporter."""
    if reason == "CI":
        monkeypatch.setenv("CI", "true")
    terminal.isatty = reason != "no terminal"
    reporter = None if reason == "no reporter" else terminal

    assert scenario_listener(config(reporter, verbosity=-1 if reason == "-q" else 0)) is None
