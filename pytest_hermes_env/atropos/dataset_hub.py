"""Switches Hugging Face's dataset hub off for libraries that are imported already.

An environment whose ``setup`` loads a dataset, and has built-in items to fall back on, then uses those at once, as on a machine
without a network. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_hermes_env.patches import assign, replace

_VARIABLES = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")
_SWITCHES = (
    "huggingface_hub.constants.HF_HUB_OFFLINE",
    "datasets.config.HF_HUB_OFFLINE",
    "datasets.config.HF_DATASETS_OFFLINE",
)
_CACHES = (
    "huggingface_hub.constants.HF_HUB_CACHE",
    "huggingface_hub.constants.HUGGINGFACE_HUB_CACHE",
    "datasets.config.HF_DATASETS_CACHE",
    "datasets.config.HF_MODULES_CACHE",
)
"""What the libraries read at each call, computed from the variables at their import.

Source: huggingface_hub 1.x constants.py, datasets 4.x config.py.
"""


@contextlib.contextmanager
def hub_offline() -> Iterator[None]:
    """Switch the hub off; cached datasets can still be loaded. Does nothing in a run that sets one of the variables itself."""
    if any(name in os.environ for name in _VARIABLES):
        yield
        return
    with _replaced(dict.fromkeys(_SWITCHES, True)):
        os.environ.update(dict.fromkeys(_VARIABLES, "1"))
        try:
            yield
        finally:
            for name in _VARIABLES:
                os.environ.pop(name, None)


@contextlib.contextmanager
def hub_offline_without_caches() -> Iterator[None]:
    """Switch the hub off, and let the libraries find empty caches, so that a cached dataset does not hide a download."""
    with tempfile.TemporaryDirectory(prefix="hermes-env-offline-") as empty:
        caches = {
            target: type(before)(Path(empty) / target.rpartition(".")[2].lower())
            for target in _CACHES
            if (before := _value(target)) is not None
        }
        with _replaced(dict.fromkeys(_SWITCHES, True) | caches):
            yield


@contextlib.contextmanager
def _replaced(values: Mapping[str, Any]) -> Iterator[None]:
    """Give constants of loaded libraries other values. A library that is loaded meanwhile was loaded offline: switch it back on."""
    loaded = [target for target in values if _value(target) is not None]
    with contextlib.ExitStack() as replaced:
        for target in loaded:
            replaced.enter_context(replace(target, values[target]))
        yield
    is_offline = os.environ.get(_VARIABLES[0], "").upper() in {"1", "ON", "YES", "TRUE"}
    for target in set(_SWITCHES) - set(loaded):
        if _value(target) is not None:
            assign(target, is_offline)


def _value(target: str) -> Any:
    """Return the value of a constant; None where its library is not loaded or has no such constant."""
    module, _, name = target.rpartition(".")
    return getattr(sys.modules.get(module), name, None)
