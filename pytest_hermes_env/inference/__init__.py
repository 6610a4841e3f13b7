"""WHAT THE MODEL SAYS: scripts, the mock model that serves them over HTTP, and a tiny tokenizer.

Importing this package loads only the standard library; each name is loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_hermes_env.inference.conversation import Conversation
    from pytest_hermes_env.inference.request_log import Exchange
    from pytest_hermes_env.inference.sampling import sampled
    from pytest_hermes_env.inference.script import Script
    from pytest_hermes_env.inference.server import MockServer
    from pytest_hermes_env.inference.steps import (
        Turn,
        TurnLike,
        call,
        call_raw,
        empty_choices,
        fail,
        garbage,
        hang,
        say,
        think,
        turn,
        unoffered,
    )
    from pytest_hermes_env.inference.templates import TEMPLATES
    from pytest_hermes_env.inference.tokens import build_tokenizer
    from pytest_hermes_env.inference.yaml_script import load_script

__all__ = [
    "TEMPLATES",
    "Conversation",
    "Exchange",
    "MockServer",
    "Script",
    "Turn",
    "TurnLike",
    "build_tokenizer",
    "call",
    "call_raw",
    "empty_choices",
    "fail",
    "garbage",
    "hang",
    "load_script",
    "sampled",
    "say",
    "think",
    "turn",
    "unoffered",
]

_HOMES = {
    "Conversation": "conversation",
    "Exchange": "request_log",
    "MockServer": "server",
    "Script": "script",
    "TEMPLATES": "templates",
    "build_tokenizer": "tokens",
    "load_script": "yaml_script",
    "sampled": "sampling",
}
_DEFAULT_HOME = "steps"


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES.get(name, _DEFAULT_HOME)}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
