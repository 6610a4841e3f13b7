"""The installed package is complete: the tests run against the wheel, so a missing file fails here."""

from __future__ import annotations

import inspect
import os
import sys
from importlib import metadata
from pathlib import Path

import pytest

import environments.hermes_base_env
import hermes_env_shared
import pytest_hermes_env

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.skipif("HERMES_ENV_INSTALLED" not in os.environ, reason="run by tox, which installs the wheel")
def test_the_tests_run_against_the_installed_wheel() -> None:
    """No package is imported from the checkout."""
    modules = (pytest_hermes_env, environments.hermes_base_env, hermes_env_shared)

    assert [Path(module.__file__).is_relative_to(Path(sys.prefix)) for module in modules] == [True, True, True]


def test_every_file_of_the_packages_is_in_the_distribution() -> None:
    """Sources, the type marker and the YAML files of the checkout are all installed."""
    wanted = {
        path.relative_to(REPOSITORY)
        for package in ("pytest_hermes_env", "environments", "hermes_env_shared")
        for path in (REPOSITORY / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and ".mypy_cache" not in path.parts
    }
    roots = [Path(pytest_hermes_env.__file__).parents[1], Path(environments.hermes_base_env.__file__).parents[1]]

    missing = [str(path) for path in sorted(wanted) if not any((root / path).is_file() for root in roots)]
    assert missing == []


def test_environments_is_a_namespace_package() -> None:
    """There is no __init__.py, so a user can also have an environments/ folder."""
    assert environments.__file__ is None


def test_the_entry_points_load_the_plugin_and_the_command() -> None:
    """pytest finds the plugin, the shell finds hermes-env."""
    found = {(point.group, point.name): point.value for point in metadata.distribution("pytest-hermes-env").entry_points}

    assert found == {
        ("pytest11", "hermes_env"): "pytest_hermes_env.plugin",
        ("console_scripts", "hermes-env"): "pytest_hermes_env.cli:main",
    }


def test_the_public_names_are_these() -> None:
    """A change of the public names must be deliberate, so it fails this test."""
    names = [
        "Answer",
        "FakeSandbox",
        "FakeToolContext",
        "FaultPlan",
        "LocalSandbox",
        "MockServer",
        "Script",
        "ToolSeam",
        "agent_result",
        "call",
        "call_raw",
        "case",
        "cases",
        "check_reward",
        "check_rule",
        "empty_choices",
        "env_contract",
        "fail",
        "garbage",
        "hang",
        "item_cases",
    ]
    names += ["sampled", "say", "think", "token_view", "train_steps", "turn", "unoffered"]

    found = [name for name in names if not inspect.ismodule(getattr(pytest_hermes_env, name))]

    assert (pytest_hermes_env.__all__, found) == (names, names)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A misspelt name raises the same error in the lazy package as in any module."""
    with pytest.raises(AttributeError, match=r"^module 'pytest_hermes_env' has no attribute 'Mock'$"):
        _ = pytest_hermes_env.Mock
