"""WHAT WAS RECORDED: cassettes with the model calls and tool calls of rollouts, their recording and replay."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from types import ModuleType

_MOVED = {
    "bodies": "tape",
    "deduplication": "document",
    "origin": "recorder",
    "paths": "format",
    "recorded_tools": "player",
    "redacted_events": "redact",
    "save": "format",
}
"""Modules of the previous release, and where their functions are."""


class _Moved(ModuleType):
    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        here = f"{__name__}.{_MOVED[self.__name__.rpartition('.')[2]]}"
        warnings.warn(
            f"{self.__name__} is now {here}, and this name goes with the next release", DeprecationWarning, stacklevel=2
        )
        return getattr(import_module(here), name)


sys.modules.update({f"{__name__}.{name}": _Moved(f"{__name__}.{name}") for name in _MOVED})
