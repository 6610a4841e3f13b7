"""Pauses Python's garbage collection, or spares what is there already."""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Pause garbage collection while the context lasts, unless it is off already."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def collecting_new_garbage() -> Iterator[None]:
    """Leave objects that exist out of garbage collection while the context lasts, unless some are left out already.

    Looking at all that atroposlib and hermes loaded takes a fifth of a second each time, and finds nothing.
    """
    if _something_is_left_out():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@functools.cache
def _something_is_left_out() -> bool:
    """Return whether the program has frozen objects itself; asked once, because Python counts them."""
    return gc.get_freeze_count() > 0
