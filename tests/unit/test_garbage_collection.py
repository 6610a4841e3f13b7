"""Garbage collection is paused where it would only cost time, or would hang."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from pytest_hermes_env import garbage_collection
from pytest_hermes_env.garbage_collection import collecting_new_garbage, no_garbage_collection


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


class Cycle:
    """Holds itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def nothing_frozen() -> Iterator[None]:
    """The suite leaves what it imports out of garbage collection; put it back for the test."""
    was_frozen = gc.get_freeze_count()
    gc.unfreeze()
    gc.disable()  # it would collect at any moment
    garbage_collection._something_is_left_out.cache_clear()
    yield
    garbage_collection._something_is_left_out.cache_clear()
    gc.enable()
    if was_frozen:
        gc.freeze()


@pytest.mark.usefixtures("nothing_frozen")
def test_only_new_garbage_is_collected_meanwhile() -> None:
    """Afterwards the older garbage is."""
    old = weakref.ref(Cycle())
    with collecting_new_garbage():
        new = weakref.ref(Cycle())
        gc.collect()
        inside = old() is None, new() is None
    gc.collect()

    assert inside == (False, True)
    assert old() is None


@pytest.mark.usefixtures("nothing_frozen")
def test_what_others_keep_out_stays_out() -> None:
    """A program may have frozen its objects itself."""
    gc.freeze()
    before = gc.get_freeze_count()

    with collecting_new_garbage():
        pass

    assert gc.get_freeze_count() > 0.9 * before  # another thread may have dropped some of them
