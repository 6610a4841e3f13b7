"""Hugging Face's libraries believe that they are offline while a test is kept from the network.

An environment whose ``setup`` asks the hub for a data set, and has built-in items to fall back on, then takes those at once, as on
a machine without a network; it need not be told apart from one that reaches for the network by mistake. What the computer has
cached can still be loaded. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

__all__ = ["hub_offline"]

_VARIABLES = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")
_CONSTANTS = (
    ("huggingface_hub.constants", "HF_HUB_OFFLINE"),
    ("datasets.config", "HF_HUB_OFFLINE"),
    ("datasets.config", "HF_DATASETS_OFFLINE"),
)
"""What the libraries read when they are asked for something, made from the variables at their import.

Source: huggingface_hub 1.x constants.py, datasets 4.x config.py.
"""


@contextlib.contextmanager
def hub_offline() -> Iterator[None]:
    """Switch the hub off, for libraries that are loaded and for those that are loaded meanwhile; then put everything back.

    A run that sets one of the variables itself, to whatever value, keeps its own.
    """
    if any(name in os.environ for name in _VARIABLES):
        yield
        return
    held = {(name, constant): getattr(sys.modules[name], constant) for name, constant in _CONSTANTS if name in sys.modules}
    for name, constant in held:
        setattr(sys.modules[name], constant, True)
    os.environ.update(dict.fromkeys(_VARIABLES, "1"))
    try:
        yield
    finally:
        for name in _VARIABLES:
            os.environ.pop(name, None)
        for name, constant in _CONSTANTS:
            if name in sys.modules:
                setattr(sys.modules[name], constant, held.get((name, constant), False))
