"""The programs of the in-memory machine, by their names."""

from __future__ import annotations

from pytest_hermes_env.sandbox.commands.facts import FACTS
from pytest_hermes_env.sandbox.commands.find import find
from pytest_hermes_env.sandbox.commands.grep import grep
from pytest_hermes_env.sandbox.commands.lines import LINES
from pytest_hermes_env.sandbox.commands.process import Program
from pytest_hermes_env.sandbox.commands.sed import sed
from pytest_hermes_env.sandbox.commands.tree import TREE

__all__ = ["PROGRAMS"]

PROGRAMS: dict[str, Program] = {
    **FACTS,
    **LINES,
    **TREE,
    "find": find,
    "grep": grep,
    "sed": sed,
}
"""Name → program."""
