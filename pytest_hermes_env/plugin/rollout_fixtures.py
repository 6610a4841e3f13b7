"""Fixture of the rollout room."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pytest_hermes_env.errors import FailedRewards
from pytest_hermes_env.plugin.fault_fixtures import planned_faults
from pytest_hermes_env.plugin.live_hooks import live_access
from pytest_hermes_env.plugin.plain_failure import verifying
from pytest_hermes_env.plugin.tool_answers import CASSETTE, SEAM, allows_leftovers
from pytest_hermes_env.rollout.hermes_home import restore_environment

FAILED = "compute_reward failed"


def refuse_failed_rewards() -> None:
    """Raise if the layer survived a reward that failed in this test. Raises: FailedRewards."""
    told_once = sys.modules.get("environments.told_once")
    if told_once is not None and (failed := told_once.told(FAILED)):
        seen = "\n".join(f"  seen      {error}{f' ({count} times)' if count > 1 else ''}" for error, count in failed.items())
        raise FailedRewards(
            "compute_reward failed in rollouts of this test: their score 0.0 is no reward, and no trainer gets it.\n"
            f"{seen}\n"
            "  fix       the traceback is in the captured log; if the reward is meant to fail, mark the test hermes_allow_leftovers"
        )


def _accept() -> None:
    """Check nothing."""


@pytest.fixture
def make_env(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """``make_env(EnvClass, *, script=None, server=None, config=None, in_process=False, **fields)``: on a mock model.

    Its tools are hermes' own, or those of ``fake_sandbox`` or ``local_sandbox`` if the test has one of them.
    See `pytest_hermes_env.rollout.builder.EnvironmentBuilder.build`. At teardown clients are closed, scripts verified,
    rewards that failed reported and ``os.environ`` restored.
    """
    from pytest_hermes_env.rollout.builder import EnvironmentBuilder  # noqa: PLC0415

    before = dict(os.environ)
    faults = planned_faults(request)
    if faults is not None:
        request.getfixturevalue("tool_journal")  # whose seam plays the faults of tools
    cassette = request.node.stash.get(CASSETTE, None)
    builder = EnvironmentBuilder(
        allow_leftovers=allows_leftovers(request),
        seam=lambda: request.node.stash.get(SEAM, None),
        allow_unconfined=request.config.getoption("hermes_allow_unconfined"),
        live=None if cassette is not None and cassette.is_only_played else live_access(request.node),
        watch=None if cassette is None else cassette.session.watch.watch,
        default_server=None if cassette is None else cassette.default_server(),
        use_wandb="wandb_capture" in request.fixturenames,
        faults=faults,
    )
    check = refuse_failed_rewards if faults is None and not allows_leftovers(request) else _accept
    try:
        with verifying(request.node, check), verifying(request.node, builder.verify), contextlib.ExitStack() as built:
            built.callback(builder.release)
            yield builder.build
    finally:
        restore_environment(before)
