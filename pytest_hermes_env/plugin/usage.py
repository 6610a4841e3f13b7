"""Tells which tests use this plugin. All others are left alone."""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path
from typing import Any

import pytest

HERMES = "model_tools"
"""The module of hermes-agent that every use of it loads."""
IMPORT = re.compile(
    r"^\s*(?:from|import)\s+(?:(?:atroposlib|environments|model_tools|pytest_hermes_env|run_agent|tools|toolsets)\b|hermes)",
    re.MULTILINE,
)
"""An import of hermes-agent, or of what imports it. A project's own ``tools`` looks the same, and does no harm."""
PLUGIN = "pytest_hermes_env.plugin"
FIXTURES = pytest.StashKey[frozenset[str]]()


def has_hermes() -> bool:
    """Tell whether hermes-agent is loaded."""
    return HERMES in sys.modules


def fixture_names(config: pytest.Config) -> frozenset[str]:
    """Return the names of all fixtures that the modules of this plugin define."""
    if FIXTURES not in config.stash:
        modules = [plugin for name, plugin in config.pluginmanager.list_name_plugin() if name.startswith(f"{PLUGIN}.")]
        names = frozenset(name for module in modules for name, value in vars(module).items() if _is_fixture(value))
        config.stash[FIXTURES] = names
    return config.stash[FIXTURES]


def _is_fixture(value: Any) -> bool:
    """Tell whether ``@pytest.fixture`` returned a value. pytest 8.3 marks the function; later versions wrap it in a class."""
    return type(value).__name__ == "FixtureFunctionDefinition" or hasattr(value, "_pytestfixturefunction")


def judges_a_rule(item: pytest.Item) -> bool:
    """Tell whether an item judges a rule: of ``--hermes-env`` or of ``@env_contract``."""
    return hasattr(item, "check") or "hermes_rule" in getattr(item, "fixturenames", ())


def uses_plugin(item: pytest.Item) -> bool:
    """Tell whether a test has a fixture or a marker of this plugin, or judges a rule."""
    return (
        not fixture_names(item.config).isdisjoint(getattr(item, "fixturenames", ()))
        or any(mark.name.startswith("hermes_") for mark in item.iter_markers())
        or hasattr(item, "check")
    )


def imports_hermes(item: pytest.Item) -> bool:
    """Tell whether the file of a test has an import of hermes-agent, also one inside a function."""
    return _imports_hermes(item.path)


@functools.cache
def _imports_hermes(path: Path) -> bool:
    try:
        return bool(IMPORT.search(path.read_text(encoding="utf-8", errors="replace")))
    except OSError:  # the file of the item may not exist
        return False


def uses_hermes(item: pytest.Item) -> bool:
    """Tell whether a test may run hermes' tools."""
    return has_hermes() or "make_env" in getattr(item, "fixturenames", ()) or judges_a_rule(item)
