"""Garbage collection is paused where it would only cost time."""

from __future__ import annotations

import gc

import pytest

from pytest_hermes_env.garbage_collection import no_garbage_collection


@pytest.mark.parametrize("is_enabled", [True, False])
def test_nothing_is_collected_meanwhile(is_enabled: bool) -> None:
    """Afterwards the collector is as it was."""
    before = gc.isenabled()
    (gc.enable if is_enabled else gc.disable)()
    try:
        with no_garbage_collection():
            inside = gc.isenabled()
        after = gc.isenabled()
    finally:
        (gc.enable if before else gc.disable)()

    assert (inside, after) == (False, is_enabled)
