"""The everyday commands that work on an in-memory machine without being scripted.

Outputs, complaints and exit codes are GNU's under LC_ALL=C. An option that a command does not know raises `UnsupportedOption`
rather than being ignored.
"""

from __future__ import annotations

from pytest_hermes_env.sandbox.commands.facts import FACTS
from pytest_hermes_env.sandbox.commands.process import Process, Program, UnsupportedOption
from pytest_hermes_env.sandbox.commands.search import SEARCH
from pytest_hermes_env.sandbox.commands.stream_editor import sed
from pytest_hermes_env.sandbox.commands.texts import TEXTS
from pytest_hermes_env.sandbox.commands.trees import TREES
from pytest_hermes_env.sandbox.commands.words import WORDS

__all__ = ["COMMANDS", "Process", "Program", "UnsupportedOption"]

COMMANDS: dict[str, Program] = {**WORDS, **TEXTS, **TREES, **SEARCH, **FACTS, "sed": sed}
"""Name → program."""
