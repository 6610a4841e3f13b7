"""WHAT THE MODEL SAYS: scripts, the mock model that serves them over HTTP, and a tiny tokenizer.

Importing this package loads only the standard library; what is heavy is loaded on first use.
"""

from __future__ import annotations

from pytest_hermes_env.inference.conversation import Conversation, Exchange
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
    sampled,
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
