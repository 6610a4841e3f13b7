"""Fixtures of rollouts: environments that play them, and what one leaves."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_hermes_env.errors import FailedRewards, UnreachableServer
from pytest_hermes_env.options import requires_confinement
from pytest_hermes_env.play.hermes_home import restore_environment
from pytest_hermes_env.plugin.fault_fixtures import planned_faults
from pytest_hermes_env.plugin.live_hooks import live_access
from pytest_hermes_env.plugin.plain_failure import verifying
from pytest_hermes_env.plugin.tool_answers import CASSETTE, SEAM, allows_leftovers
from pytest_hermes_env.redaction.shown_text import shown

if TYPE_CHECKING:
    from pytest_hermes_env.results import Result

FAILED = "compute_reward failed"
UNANSWERED = "The inference server failed"


def refuse_failed_rewards() -> None:
    """Raise if the layer survived a reward that failed in this test. Raises: FailedRewards."""
    if seen := _seen(FAILED):
        raise FailedRewards(
            "compute_reward failed in rollouts of this test: their score 0.0 is not a reward, and no trainer gets it.\n"
            f"{seen}\n"
            "  fix       the traceback is in the captured log; if the reward is meant to fail, mark the test hermes_allow_leftovers"
        )


def refuse_unreachable(addresses: Collection[str]) -> None:
    """Raise if the layer survived that nobody listened at one of ``addresses``. Raises: UnreachableServer."""
    if addresses and (seen := _seen(UNANSWERED, "APIConnectionError")):
        raise UnreachableServer(
            "rollouts of this test could not connect to their model's server: no model answered them.\n"
            f"  expected  a server at {shown(', '.join(sorted(addresses)))}\n"
            f"{seen}\n"
            "  fix       start it, or leave out server= to use a mock model; if it is meant, mark the test hermes_allow_leftovers"
        )


def _seen(beginning: str, kind: str = "") -> str:
    """Return a line for each error of that kind which the layer survived and logged with this beginning."""
    log_once = sys.modules.get("environments.loop.log_once")
    failed = log_once.logged(beginning).items() if log_once is not None else ()
    lines = [
        f"  seen      {error}{f' ({count} times)' if count > 1 else ''}" for error, count in failed if error.startswith(kind)
    ]
    return "\n".join(lines)


def _accept() -> None:
    """Check nothing."""


@pytest.fixture
def make_env(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """``make_env(EnvClass, *, script=None, server=None, config=None, in_process=False, mode="chat", **fields)``: on a mock model.

    Its tools are hermes' own, or those of ``fake_sandbox`` or ``local_sandbox`` if the test has one of them.
    See `pytest_hermes_env.play.builder.EnvironmentBuilder.build`. At teardown clients are closed, scripts verified,
    rewards that failed reported and ``os.environ`` restored.
    """
    from pytest_hermes_env.play.builder import EnvironmentBuilder  # noqa: PLC0415

    before = dict(os.environ)
    faults = planned_faults(request)
    if faults is not None:
        request.getfixturevalue("tool_journal")  # whose seam plays the faults of tools
    cassette = request.node.stash.get(CASSETTE, None)
    builder = EnvironmentBuilder(
        allow_leftovers=allows_leftovers(request),
        seam=lambda: request.node.stash.get(SEAM, None),
        allow_unconfined=not requires_confinement(request.config),
        live=None if cassette is not None and cassette.is_only_played else live_access(request.node),
        watch=None if cassette is None else cassette.session.watch.watch,
        default_server=None if cassette is None else cassette.default_server(),
        use_wandb="wandb_capture" in request.fixturenames,
        faults=faults,
    )
    is_checked = faults is None and not allows_leftovers(request)
    check = refuse_failed_rewards if is_checked else _accept
    check_server = functools.partial(refuse_unreachable, builder.addresses) if is_checked else _accept
    try:
        with (
            verifying(request.node, check),
            verifying(request.node, check_server),
            verifying(request.node, builder.verify),
            contextlib.ExitStack() as built,
        ):
            built.callback(builder.release)
            yield builder.build
    finally:
        restore_environment(before)


@pytest.fixture
def agent_result() -> Result:
    """The beginning of AgentResults: ``agent_result.call("terminal", command="ls").returns({...}).say("42")``."""
    from pytest_hermes_env import results  # noqa: PLC0415

    return results.agent_result
