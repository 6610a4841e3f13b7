"""What one pytest run shares between hooks and fixtures: hermes' home and the contract session, each made on first use."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from pytest_hermes_env.leftover_package import leftover_explained
from pytest_hermes_env.play.hermes_home import HermesHome
from pytest_hermes_env.plugin.progress_line import scenario_listener

if TYPE_CHECKING:
    from pytest_hermes_env.contract.run.session import ContractSession

HOME = pytest.StashKey[HermesHome]()
CONTRACT = pytest.StashKey["ContractSession"]()
RUN_ID = pytest.StashKey[str]()
"""The id of a run of pytest-xdist, in its controller."""


def home_of(config: pytest.Config) -> HermesHome:
    """Return hermes' home of this run. It is left when ``config`` goes out of use."""
    if HOME not in config.stash:
        chosen = config.known_args_namespace.hermes_home or config.getini("hermes_home") or None
        config.stash[HOME] = home = HermesHome(chosen)
        config.add_cleanup(home.leave)
    return config.stash[HOME]


def explain_leftovers(config: pytest.Config) -> None:
    """Name a leftover ``environments/__init__.py`` in every import error of this run that it causes."""
    stack = contextlib.ExitStack()
    stack.enter_context(leftover_explained())
    config.add_cleanup(stack.close)


def contract_of(config: pytest.Config) -> ContractSession:
    """Return the contract session of this run."""
    if CONTRACT not in config.stash:
        from pytest_hermes_env.contract.run.plays import Plays  # noqa: PLC0415 - only where it is used
        from pytest_hermes_env.contract.run.session import ContractSession  # noqa: PLC0415

        run_id = getattr(config, "workerinput", {}).get("testrunuid") or config.stash.get(RUN_ID, "")
        plays = Plays(config, scenario_listener(config), run_id)
        config.stash[CONTRACT] = ContractSession(config, plays)
        config.add_cleanup(plays.close)
    return config.stash[CONTRACT]
