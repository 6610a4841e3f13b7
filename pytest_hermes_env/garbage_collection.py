"""Pauses Python's garbage collection."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Pause garbage collection while the context lasts, unless it is off already.

    ast.parse of CPython 3.11 and 3.12 counts its depth for all threads together: a collection in it runs Python code, another thread
    parses meanwhile, and the first one raises SystemError.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
