"""How long a real command may take while the kit plays what nobody declared."""

from __future__ import annotations

import time

import pytest

from pytest_hermes_env import FakeSandbox
from pytest_hermes_env.sandbox.context import FakeToolContext
from pytest_hermes_env.sandbox.machine import SHORTEST_S, Patience, patience


@pytest.mark.parametrize(
    ("stops_in_s", "limit_s", "least", "most"), [(100.0, 5, 5, 5), (3.0, 60, 2, 3), (-9.0, 60, SHORTEST_S, SHORTEST_S)]
)
def test_a_command_is_stopped_by_its_timeout_or_before(stops_in_s: float, limit_s: int, least: float, most: float) -> None:
    """Something is left to each."""
    left = Patience(ends=time.monotonic() + stops_in_s).seconds_for(limit_s)

    assert least <= left <= most


@pytest.mark.usefixtures("namespaces")
def test_a_program_that_runs_for_ever_ends_as_its_timeout_would_end_it() -> None:
    """With the exit code of a timeout, and not after the 180 seconds of a terminal."""
    sandbox = FakeSandbox()
    given = Patience(ends=time.monotonic())
    token = patience.set(given)

    done = FakeToolContext(sandbox).terminal("python3 -c 'while True: pass'")

    patience.reset(token)
    sandbox.close()
    assert (done["exit_code"], given.was_over) == (124, True)
