"""The public names of the room."""

from __future__ import annotations

import subprocess
import sys

from pytest_hermes_env import inference

LIGHT = """
import sys
before = set(sys.modules)
import pytest_hermes_env.inference, pytest_hermes_env.inference.script
from pytest_hermes_env.inference import Conversation, Exchange, MockServer, Script, call, say
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)))
"""


def test_the_public_names_are_these() -> None:
    """The list is sorted as ruff sorts it (constants, classes, functions), each name exists, and `dir` shows it."""
    names = [
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
    found = [name for name in names if getattr(inference, name) is not None]

    assert (inference.__all__, found, [name for name in dir(inference) if name in names]) == (names, names, sorted(names))


def test_scripts_can_be_written_without_loading_anything_heavy() -> None:
    """Importing the room, scripts and even the server's class loads only the standard library, and what both packages share."""
    code = [sys.executable, "-c", LIGHT]
    loaded = subprocess.run(code, capture_output=True, text=True, check=True).stdout.split()

    assert loaded == ["hermes_env_shared", "pytest_hermes_env"]
